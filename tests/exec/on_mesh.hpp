// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "run_graph.hpp"

#include <gshard/pass/differentiate.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/map.hpp>

#include <exception>
#include <random>
#include <span>
#include <string>
#include <vector>

// One program, in the layouts that it says itself, on one mesh, against the same on one device.
namespace on_mesh {

namespace gs = gshard;
using gs::symbol;

/// Where and how a program is run.
struct place {
  std::vector<int> mesh{1};
  gs::dims dims{};
  std::string known_axes{}, known_dims{};  // to the compiler
  bool keep_pending = false;               // outputs may leave as pending sums
};

struct input {
  run_graph::input what;
  gs::sharding layout;
  int data = 0;  // a number for each input, of which its elements are made
};

/// The layout that a spec means.
template <class Spec>
gs::sharding layout_of(Spec) {
  gs::diagnostic problem;
  return gs::resolve(Spec::named, run_graph::mesh_of_rank(4), "layout", problem);
}

/// x in a layout.
inline symbol annotate(symbol x, const gs::sharding& layout) {
  gs::builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  const symbol y = run_graph::lay_out(x);
  if (layout.rank == x.rank()) b.program.at(y.id).layout = layout;
  else b.fail(gs::fault::rank_mismatch, "annotate");
  return y;
}

/// The gradients of the sum of tanh of all these tensors.
inline gs::list<symbol> gradients_of(gs::list_view<symbol> terms, gs::list_view<symbol> wanted) {
  const auto term = [&](std::size_t i) { return gs::sum(gs::map<[](auto v) { return gs::tanh(v); }>(terms[i])); };
  symbol loss = term(0);
  for (std::size_t i = 1; i < terms.size() && !loss.owner->failed(); ++i) loss = loss + term(i);
  return gs::gradients(loss, wanted);
}

/// Numbers for an input: multiples of 1/4, whose sums and products are exact in any order.
inline run_graph::array elements_of(const input& i, std::size_t count, const gs::dims& dims) {
  const bool ids = i.what.type == gs::dtype::i32;
  std::mt19937 gen(std::uint32_t(i.data));
  std::uniform_int_distribution<int> pick(ids ? i.what.least : -8, ids ? int(dims.find(i.what.below)) - 1 : 8);
  run_graph::array a(count);
  for (double& v : a) v = ids ? pick(gen) : double(pick(gen)) / 4;
  return a;
}

/// A program that cannot be traced.
struct ill_formed : gs::error {
  using error::error;
};

inline constexpr std::string_view on_one_device = "one device: ";

/// How the program goes wrong on its mesh, or already on one device, or nothing. Throws `ill_formed`.
inline std::string failure(const place& on, const std::vector<input>& inputs, const run_graph::model& f) {
  run_graph::traced t;
  run_graph::arrays sources, expected;
  try {
    std::vector<run_graph::input> letters;
    for (const input& i : inputs) letters.push_back(i.what);
    t = run_graph::trace(letters, f);
  } catch (const std::exception& e) {
    throw ill_formed(e.what());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    sources.push_back(elements_of(inputs[i], run_graph::element_count(t, t.free[i], on.dims), on.dims));
  try {
    expected = run_graph::run(t, run_graph::serial(t, on.dims), sources);
  } catch (const std::exception& e) {
    return std::string(on_one_device) + e.what();
  }
  run_graph::setting s{.mesh = on.mesh, .dims = on.dims, .layouts = {}, .known_axes = on.known_axes};
  for (const input& i : inputs) s.layouts.push_back(i.layout);
  for (std::size_t i = inputs.size(); i < t.free.size(); ++i) s.layouts.push_back(t.graph.at(t.free[i]).layout);
  s.options.uneven = true;
  s.options.keep_pending_outputs = on.keep_pending;
  for (const char d : on.known_dims)
    if (on.dims.find(d) >= 0) s.options.known.set(d, on.dims.find(d));
  try {
    const double d = run_graph::distance(run_graph::run(t, s, sources), expected);
    return d <= 1e-9 ? "" : "differs by " + std::to_string(d);
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace on_mesh
