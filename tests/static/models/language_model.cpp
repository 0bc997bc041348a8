// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The communication of training a decoder-only language model of one layer, and refused programs. More layers, and decoding:
// tests/models/language_model_plan_test.cpp.
#include <gshard/models/language_model.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "../soundness.hpp"
#include "../tracing.hpp"

#include <cstdint>
#include <limits>
#include <string_view>

namespace gs = gshard;
namespace nn = gshard::nn;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert">>;
inline constexpr nn::language_model_options options{.layers = 1, .moe_every = 1, .moe = {.swiglu = true}, .tied_head = false};

inline constexpr auto train = [](auto& m, auto ids, auto labels, auto rate) {
  nn::routing_summary routing;
  const auto loss = nn::token_loss(nn::language_model<"expert">(m, ids, options, routing), labels);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return loss;
};
inline constexpr auto all = gs::axes<"data", "expert">;
using sequences = in<"GBT", P<all, none, none>, std::int32_t>;
constexpr gs::plan_view step = gs::program<train, mesh, sequences, sequences, in<"">>::plan;

static_assert(step.count(op::all_to_all) == 4 && step.count(op::all_gather) == 0);
static_assert(soundness::is_sound(step));

template <gs::fixed_string Letters, gs::dtype Type>
inline constexpr gs::fault fault_of_order = tracing::problem_of([](auto& b, auto& m) {
                                       nn::language_model_step<"expert">(m, tracing::input(b, "GB", gs::dtype::i32),
                                                                         tracing::input(b, "", gs::dtype::i32), {.moe_every = 0},
                                                                         tracing::input(b, Letters.view(), Type));
                                     }).what;
static_assert(fault_of_order<"GB", gs::dtype::i32> == gs::fault::nothing);
static_assert(fault_of_order<"GB", gs::dtype::f32> == gs::fault::wrong_type);
static_assert(fault_of_order<"B", gs::dtype::i32> == gs::fault::dims_differ);
static_assert(fault_of_order<"GC", gs::dtype::i32> == gs::fault::dims_differ);
// A fault before token_loss is the fault of the program.
static_assert(tracing::problem_of([](auto& b, auto& m) {
                nn::routing_summary routing;
                const auto logits = nn::language_model<"expert">(m, tracing::input(b, "GBT"), {.moe_every = 0}, routing);
                nn::token_loss(logits, tracing::input(b, "GBT", gs::dtype::i32));
              }).what == gs::fault::wrong_type);

// Options without a meaning.
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
template <auto Temperature>  // a function, because clang 16 accepts no number
constexpr bool has_no_samples = tracing::out_of_range("sample_token", "temperature", {}, [](auto& b, auto& m) {
  nn::sample_token(m, tracing::input(b, "GBV"), Temperature());
});
static_assert(has_no_samples<[] { return -1.0; }> && has_no_samples<[] { return nan; }>);
constexpr bool refuses_odd_heads = [] {
  const gs::diagnostic d = tracing::problem_of([](auto& b, auto&) {
    b.options.known.set('D', 5);
    nn::rotary(tracing::input(b, "TD"), tracing::input(b, "T", gs::dtype::i32), 0);
  });
  return d.what == gs::fault::odd_extent && d.subject.view() == "rotary" && d.word.view() == "D" && d.first == 5;
}();
static_assert(refuses_odd_heads);
template <auto Base>
constexpr bool rotates_nothing = tracing::out_of_range("rotary", "base", {}, [](auto& b, auto&) {
  nn::rotary(tracing::input(b, "TD"), tracing::input(b, "T", gs::dtype::i32), 0, Base());
});
static_assert(rotates_nothing<[] { return 0.0; }> && rotates_nothing<[] { return -2.0; }> && rotates_nothing<[] { return nan; }>);

}  // namespace
