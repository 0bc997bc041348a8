// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "run_graph.hpp"

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/shape.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Compares a program on a mesh, in its own layouts, with the same program on one device.
namespace on_mesh {

namespace gs = gshard;
using gs::symbol;

/// The mesh and the options of a run.
struct place {
  std::vector<int> mesh{1};
  gs::dims dims{};
  std::string known_axes{}, known_dims{};  // known at compile time
  bool keep_pending = false;               // outputs may leave as partial sums
  std::string agreement{};                 // the agreement of each result with that of one device; `nearly` for further results
};

/// The required agreement of two runs. All NaNs are equal.
inline constexpr char same_bits = 'b';
inline constexpr char same_values = '=';   // zeros of both signs are equal
inline constexpr char nearly = '~';        // finite numbers up to rounding, others equal
inline constexpr char finite_alike = 'f';  // the same elements are finite, and these agree up to rounding

/// Special numbers that inputs may have in addition to ordinary ones.
inline constexpr int not_a_number = 1, infinity = 2, negative_zero = 4, subnormal = 8, largest = 16;

struct input {
  run_graph::input what;
  gs::sharding layout;
  int data = 0;     // the seed of its elements
  int special = 0;  // the special numbers among them
};

// Constexpr, because the compiler plans random programs as well.

/// The layout of a spec.
template <class Spec>
constexpr gs::sharding layout_of(Spec) {
  gs::diagnostic problem;
  gs::mesh_shape mesh;
  for (std::size_t a = 0; a < run_graph::axis_letters.size(); ++a) mesh.push_back(run_graph::axis_letters.substr(a, 1), gs::dynamic);
  return gs::resolve(Spec::named, mesh, "layout", problem);
}

/// x with a layout.
constexpr symbol annotate(symbol x, const gs::sharding& layout) {
  gs::builder& b = *x.owner;
  if (!b.failed() && layout.rank != x.rank()) b.fail(gs::fault::rank_mismatch, "annotate");
  return gs::detail::emit_annotate(x, layout);
}

/// The gradients of the sum of tanh of all these tensors.
constexpr gs::list<symbol> gradients_of(gs::list_view<symbol> terms, gs::list_view<symbol> wanted) {
  const auto term = [&](std::size_t i) { return gs::sum(gs::map<[](auto v) { return gs::tanh(v); }>(terms[i])); };
  symbol loss = term(0);
  for (std::size_t i = 1; i < terms.size() && !loss.owner->failed(); ++i) loss = loss + term(i);
  return gs::gradients(loss, wanted);
}

/// Picks one of these special numbers.
inline double special_number(int which, std::mt19937& gen) {
  using limits = std::numeric_limits<double>;
  std::vector<double> list;
  if (which & not_a_number) list.push_back(limits::quiet_NaN());
  if (which & infinity) list.insert(list.end(), {limits::infinity(), -limits::infinity()});
  if (which & negative_zero) list.push_back(-0.0);
  if (which & subnormal) list.insert(list.end(), {limits::denorm_min(), -0x1p-1040, 0x1p-140});  // the last one is subnormal as float
  if (which & largest) list.insert(list.end(), {limits::max(), limits::lowest(), double(std::numeric_limits<float>::max())});
  return list[gen() % list.size()];
}

/// Numbers for an input: multiples of 1/4, whose sums and products are exact in any order, and special numbers.
inline run_graph::array elements_of(const input& i, std::size_t count, const gs::dims& dims) {
  const bool ids = i.what.type == gs::dtype::i32;
  std::mt19937 gen(std::uint32_t(i.data));
  std::uniform_int_distribution<int> pick(ids ? i.what.least : -8, ids ? int(dims.find(i.what.below)) - 1 : 8);
  run_graph::array a(count);
  for (double& v : a) v = ids ? pick(gen) : double(pick(gen)) / 4;
  if (ids || i.special == 0) return a;
  const unsigned one_in = std::array{2u, 8u, 40u}[gen() % 3];
  for (double& v : a)
    if (gen() % one_in == 0) v = special_number(i.special, gen);
  return a;
}

/// The first difference of two tensors as text, or nothing.
inline std::string difference(const run_graph::array& a, const run_graph::array& expected, char how) {
  if (a.size() != expected.size()) return std::to_string(a.size()) + " elements instead of " + std::to_string(expected.size());
  constexpr double large = 1e100;  // larger numbers do not count for the scale
  double scale = 1;
  for (const double v : expected)
    if (std::abs(v) < large) scale = std::max(scale, std::abs(v));
  const auto agree = [&](double x, double y) {
    if (std::isnan(x) && std::isnan(y)) return true;
    if (how == same_bits) return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
    if (x == y) return true;
    if (how == finite_alike && !std::isfinite(x) && !std::isfinite(y)) return true;
    return how != same_values && std::isfinite(x) && std::isfinite(y) && std::abs(x - y) <= 1e-9 * std::max(scale, std::abs(y));
  };
  for (std::size_t e = 0; e < a.size(); ++e)
    if (!agree(a[e], expected[e])) {
      std::array<char, 100> text{};
      std::snprintf(text.data(), text.size(), "element %zu is %.17g instead of %.17g", e, a[e], expected[e]);
      return text.data();
    }
  return {};
}
inline std::string difference(const run_graph::arrays& a, const run_graph::arrays& expected, std::string_view agreement) {
  if (a.size() != expected.size()) return std::to_string(a.size()) + " results instead of " + std::to_string(expected.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    if (const std::string said = difference(a[i], expected[i], i < agreement.size() ? agreement[i] : nearly); !said.empty())
      return "result " + std::to_string(i) + ": " + said;
  return {};
}

/// A program that cannot be traced.
struct ill_formed : gs::error {
  using error::error;
};

inline constexpr std::string_view on_one_device = "one device: ";

/// A program with its inputs, and the setting on its mesh.
struct prepared {
  run_graph::traced program;
  run_graph::setting setting;
  run_graph::arrays sources;
};

/// Throws `ill_formed`.
inline prepared prepare(const place& on, const std::vector<input>& inputs, const run_graph::model& f) {
  prepared p;
  try {
    std::vector<run_graph::input> letters;
    for (const input& i : inputs) letters.push_back(i.what);
    p.program = run_graph::trace(letters, f);
  } catch (const std::exception& e) {
    throw ill_formed(e.what());
  }
  const run_graph::traced& t = p.program;
  p.setting = {.mesh = on.mesh, .dims = on.dims, .layouts = {}, .known_axes = on.known_axes};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    p.sources.push_back(elements_of(inputs[i], run_graph::element_count(t, t.free[i], on.dims), on.dims));
    p.setting.layouts.push_back(inputs[i].layout);
  }
  for (std::size_t i = inputs.size(); i < t.free.size(); ++i) p.setting.layouts.push_back(t.graph.at(t.free[i]).layout);
  p.setting.options.uneven = true;
  p.setting.options.partial_outputs = on.keep_pending;
  for (const char d : on.known_dims)
    if (on.dims.find(d) >= 0) p.setting.options.known.set(d, on.dims.find(d));
  return p;
}

/// The program without shardings. Loops carry gradients in the shardings of annotated tensors.
inline run_graph::traced without_axes(run_graph::traced t) {
  for (gs::value& v : t.graph.values)
    if (v.layout.used()) v.layout = gs::sharding::replicated(v.rank());
  return t;
}

/// Returns a problem of the inputs and the results on one device, or nothing.
using judge = std::function<std::string(const run_graph::arrays&, const run_graph::arrays&)>;

/// The failure of the program on its mesh, or already on one device, or nothing. Throws `ill_formed`.
inline std::string failure(const place& on, const std::vector<input>& inputs, const run_graph::model& f, const judge& right = {}) {
  const prepared p = prepare(on, inputs, f);
  run_graph::arrays expected;
  try {
    expected = run_graph::run(without_axes(p.program), run_graph::serial(p.program, on.dims), p.sources);
    if (const std::string said = right ? right(p.sources, expected) : std::string(); !said.empty())
      return std::string(on_one_device) + said;
  } catch (const std::exception& e) {
    return std::string(on_one_device) + e.what();
  }
  try {
    return difference(run_graph::run(p.program, p.setting, p.sources), expected, on.agreement);
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace on_mesh
