// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The sharding property as a test: every sharding of a model on several meshes gives the results of one device.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/testing/all_shardings.hpp>
#include <gshard/testing/run_program.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if GSHARD_HAS_BODIES
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#endif

namespace gshard { inline namespace v0 {

namespace testing {

inline const std::vector<std::vector<int>> meshes{{1}, {2}, {3}, {2, 2}, {2, 3}};

/// How a program is swept over shardings.
struct sweep {
  /// Extents to try: divisible by every axis, not divisible, smaller than an axis.
  std::vector<gshard::dims> dims;
  double tolerance = 0;  ///< of the relative difference from one device
  bool pending_sources = true;  ///< Inputs may also be partial sums.
  std::size_t most = 1000;  ///< the most shardings on one mesh; more of them are sampled
  compile_options options{};
  std::function<void(arrays&)> prepare{};  ///< changes the inputs, which are multiples of 1/4
  std::function<void(std::string_view, const plan_view&)> observer = no_observer;
};

/// Runs a traced program with every sharding of its free values on every mesh, and compares the results with those of one device. Returns a
/// line for each of the first three differences, with mesh, extents and shardings. Empty if there is none.
std::string differences(const traced& t, const sweep& how);
/// Compares the gradients of a traced program on one device with central differences. Its results are a tensor, a loss, and the gradient of
/// each input. Returns a line for each difference.
std::string wrong_gradients(const traced& t, const std::vector<gshard::dims>& sizes);

}  // namespace testing

/// Options of `check_shardings`.
struct sharding_check {
  std::vector<gshard::dims> sizes;  ///< extents of all letters of the inputs; try even, uneven and small ones
  double tolerance = 1e-12;         ///< of the relative difference between a mesh and one device; all runs are in double
  bool gradients = true;            ///< also checks the gradients of all inputs
};

/// check_shardings(model, {"BM", "NM"}, {.sizes = {{{'B', 4}, {'M', 6}, {'N', 2}}}}): runs model(m, x...) with every sharding of its inputs
/// and of its result, on simulated meshes of 1 to 6 devices. It compares result and gradients with one device. On one device, it compares
/// the gradients with central differences. `model`: as for a program; its result is one tensor.
/// Returns a line for each difference; empty if there is none. For tests of models and of custom operations.
/// Throws: `gshard::error` if the model cannot be traced.
/// @see custom
template <class Model, std::size_t N>
std::string check_shardings(const Model& model, const char* const (&inputs)[N], const sharding_check& how) {
  std::vector<testing::input> letters;
  for (const char* const text : inputs) letters.push_back({.letters = text});
  const auto apply = [&](const parameter_scope& m, std::span<const symbol> x) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return model(m, x[I]...); }(std::make_index_sequence<N>{});
  };
  // The slope of this loss is not constant, and does not vanish for large results.
  const auto loss_of = [](symbol y) { return sum(map<[](auto v) { return gshard::sqrt(v * v + 1.0); }>(y)); };
  const testing::traced program = testing::trace(letters, [&](const parameter_scope& m, std::span<const symbol> x) {
    const symbol y = testing::lay_out(apply(m, x));
    list<symbol> results{y};
    if (!how.gradients) return results;
    results.push_back(loss_of(y));
    for (const symbol& g : gshard::gradients(results.back(), list_view(x.data(), x.size()))) results.push_back(g);
    return results;
  });
  std::string wrong = testing::differences(program, {.dims = how.sizes, .tolerance = how.tolerance, .most = 300});
  if (how.gradients) wrong += testing::wrong_gradients(program, how.sizes);
  return wrong;
}

#if GSHARD_HAS_BODIES

namespace testing {

GSHARD_INLINE std::string differences(const traced& t, const sweep& how) {
  std::int64_t runs = 0, wrong = 0;
  std::string text;
  for (const gshard::dims& dims : how.dims) {
    arrays sources = random_sources(t, dims, 1);
    if (how.prepare) how.prepare(sources);
    const arrays expected = run(t, serial(t, dims), sources);
    for (const std::vector<int>& mesh : meshes) {
      std::vector<std::vector<sharding>> choices;
      std::size_t all = 1;
      for (std::size_t i = 0; i < t.free.size(); ++i) {
        const bool pending = how.pending_sources && i < t.inputs.size() && has_sums(t.inputs[i].type);
        choices.push_back(all_shardings(t.graph.at(t.free[i]).rank(), int(mesh.size()), pending));
        all = all > 1000000 ? all : all * choices.back().size();
      }
      std::mt19937 gen(7);
      std::vector<std::vector<std::size_t>> decks(choices.size());  // a sample has every sharding of a value before it repeats one
      const auto draw = [&](std::size_t i) {
        std::vector<std::size_t>& deck = decks[i];
        if (deck.empty()) {
          deck.resize(choices[i].size());
          for (std::size_t k = 0; k < deck.size(); ++k) deck[k] = k;
          std::shuffle(deck.begin(), deck.end(), gen);
        }
        const std::size_t k = deck.back();
        deck.pop_back();
        return k;
      };
      for (std::size_t n = 0; n < std::min(all, how.most); ++n) {
        setting s{.mesh = mesh, .dims = dims, .layouts = {}, .options = how.options, .observer = how.observer};
        std::size_t rest = n;
        for (std::size_t i = 0; i < choices.size(); ++i) {
          s.layouts.push_back(choices[i][all <= how.most ? rest % choices[i].size() : draw(i)]);
          rest /= choices[i].size();
        }
        if (n % 2) s.options.known = dims;  // plans depend on known extents
        ++runs;
        double d = std::numeric_limits<double>::infinity();
        std::string said;
        try {
          d = distance(run(t, s, sources), expected);
        } catch (const error& e) {
          said = e.what();
        }
        if (d <= how.tolerance) continue;
        if (++wrong <= 3) text += text_of(s) + ": differs by " + std::to_string(d) + " " + said + "\n";
      }
    }
  }
  if (wrong > 3) text += std::to_string(wrong) + " of " + std::to_string(runs) + " runs differ\n";
  return runs > 0 ? text : "nothing was run\n";
}

GSHARD_INLINE std::string wrong_gradients(const traced& t, const std::vector<gshard::dims>& sizes) {
  std::string wrong;
  for (const gshard::dims& dims : sizes) {
    const setting alone = serial(t, dims);
    const arrays at = random_sources(t, dims, 1), results = run(t, alone, at);
    for (std::size_t i = 0; i < t.inputs.size(); ++i) {
      // Along one random direction: (loss(x + h d) - loss(x - h d)) / 2h = <gradient, d>.
      constexpr double h = 1e-5;
      std::mt19937 gen(std::uint32_t(i + 1));
      arrays up = at, down = at;
      double slope = 0, scale = 1;
      for (std::size_t e = 0; e < at[i].size(); ++e) {
        const double d = double(int(gen() % 9) - 4) / 4;
        up[i][e] += h * d;
        down[i][e] -= h * d;
        slope += results[2 + i][e] * d;
        scale += std::abs(results[2 + i][e] * d);
      }
      const double measured = (run(t, alone, up)[1][0] - run(t, alone, down)[1][0]) / (2 * h);
      if (!(std::abs(measured - slope) <= 1e-6 * scale))
        wrong += "the gradient of input " + std::to_string(i) + " along a direction is " + std::to_string(slope) +
                 ", central differences give " + std::to_string(measured) + "\n";
    }
  }
  return wrong;
}

}  // namespace testing

#endif

}}  // namespace gshard::v0
