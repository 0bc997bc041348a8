// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The model of a run, as two plans made at run time: for training steps and for validation.

#include "configuration.hpp"

#include <gshard/core/program/compile.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/exec/process/diagnostic.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/train/adam.hpp>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

namespace scaling {

inline constexpr double label_smoothing = 0.1;

/// The outputs of the training plan, in order. A dense model has only the first two.
struct training_output {
  static constexpr std::size_t loss = 0, tokens = 1, load = 2, refused = 3;
};
/// The outputs of the validation plan.
struct validation_output {
  static constexpr std::size_t nats = 0, tokens = 1;
};

namespace detail {

/// A program under construction: its inputs, and its outputs by name.
struct traced_model {
  gs::builder b;
  gs::parameter_scope m{b};

  traced_model() { b.mesh = gs::mesh<gs::axis<"expert">>::shape; }
  traced_model(const traced_model&) = delete;
  traced_model& operator=(const traced_model&) = delete;

  gs::symbol input(std::string_view name, std::string_view letters, gs::dtype type) {
    const gs::symbol s{&b, b.add_value(b.dims_of(letters, letters), type)};
    if (s.rank() > 0) {  // groups are sharded over the devices, like the experts
      gs::sharding by_group = gs::sharding::replicated(s.rank());
      by_group[0].push_back(0);
      b.program.at(s.id).layout = by_group;
    }
    b.program.inputs.push_back({gs::tensor_name(name), s.id});
    return s;
  }
  void output(std::string_view name, gs::symbol s) {
    if (!b.failed()) b.program.outputs.push_back({gs::tensor_name(name), s.id});
  }
  gs::plan_tables plan() {
    gs::plan_tables p = gs::compile(b.program, b.mesh, {.uneven = true});
    if (p.problem) throw std::runtime_error("scaling: " + gs::describe(p.problem));
    return p;
  }
};

/// The losses per target position [G,B,T], and the mask of real tokens.
struct prediction {
  gs::symbol logits, mask;
};
inline prediction predict(traced_model& t, gs::symbol source, gs::symbol target_in, const gs::nn::transformer_options& o,
                          gs::nn::routing_summary& routing) {
  const gs::symbol table = t.m.param("embedding", "VM", gs::init::fan_in("M"));
  const gs::symbol source_mask = gs::nn::real_tokens(t.m, source), mask = gs::nn::real_tokens(t.m, target_in);
  const gs::symbol memory = gs::nn::encode<"expert">(t.m.scope("encoder"), table, source, source_mask, o, routing);
  const gs::symbol y = gs::nn::decode<"expert">(t.m.scope("decoder"), table, target_in, mask, memory, source_mask, o, routing);
  return {gs::einsum<"GBTM,VM->GBTV">(y, table), mask};
}

}  // namespace detail

/// Loss, gradients and the update by Adam. Inputs: source [G,B,S], target_in and target_out [G,B,T], rate. Outputs: @see training_output
inline gs::plan_tables training_plan(const configuration& c) {
  detail::traced_model t;
  const gs::symbol source = t.input("source", "GBS", gs::dtype::i32), in = t.input("target_in", "GBT", gs::dtype::i32),
                   out = t.input("target_out", "GBT", gs::dtype::i32), rate = t.input("rate", "", gs::dtype::f32);
  gs::nn::routing_summary routing;
  const detail::prediction p = detail::predict(t, source, in, c.options(true), routing);
  const gs::symbol tokens = gs::sum(p.mask);
  const gs::symbol loss = gs::sum(gs::cross_entropy(p.logits, out, label_smoothing) * p.mask) / tokens;
  gs::adam{}.minimize(t.m, t.m.objective(loss, c.auxiliary_weight()), rate);
  t.output("loss", loss);
  t.output("tokens", tokens);
  if (!c.is_dense()) {
    t.output("load", gs::nn::routing_summary::total(routing.load));
    t.output("refused", gs::nn::routing_summary::total(routing.overflow));
  }
  return t.plan();
}

/// The negative log-likelihood of all target tokens, in nats, without dropout and smoothing. Inputs: as for training, without the rate.
inline gs::plan_tables validation_plan(const configuration& c) {
  detail::traced_model t;
  const gs::symbol source = t.input("source", "GBS", gs::dtype::i32), in = t.input("target_in", "GBT", gs::dtype::i32),
                   out = t.input("target_out", "GBT", gs::dtype::i32);
  gs::nn::routing_summary routing;
  const detail::prediction p = detail::predict(t, source, in, c.options(false), routing);
  t.output("nats", gs::sum(gs::cross_entropy(p.logits, out) * p.mask));
  t.output("tokens", gs::sum(p.mask));
  return t.plan();
}

}  // namespace scaling
