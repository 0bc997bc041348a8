// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program_layer_steps.hpp"

#include <array>
#include <string>

// Generates random recipes.
namespace random_program {

namespace detail {

class writer : layers {
 public:
  using layers::layers;

  recipe write() {
    r_.on.known_axes = some(run_graph::axis_letters.substr(0, r_.on.mesh.size()));
    r_.on.known_dims = some("ABCDKL");
    r_.on.keep_pending = below(4) == 0;
    if (below(2)) special_ = std::array{1, 1, 2, 3, 8, 16, 31}[std::size_t(below(7))] | (below(2) ? on_mesh::negative_zero : 0);
    const int density = below(10);
    for (bool& b : left_out_) b = below(10) < density;
    for (int i = 0; i < 3; ++i) new_input(letters(4), gs::dtype::f64);
    const int wanted = 3 + below(28);
    for (int made = 0; made < wanted;) made += operation();
    finish();
    return r_;
  }

 private:
  /// All, none, or some of these letters.
  std::string some(std::string_view letters) {
    const int often = below(3);
    std::string chosen;
    for (const char c : letters)
      if (below(2) < often) chosen += c;
    return chosen;
  }

  using trial = bool (writer::*)();
  static constexpr std::size_t most_trials = 62;
  std::array<bool, most_trials> left_out_{};

  bool operation() {
    static constexpr std::array<trial, most_trials> trials{
        &writer::einsum, &writer::einsum, &writer::einsum, &writer::einsum, &writer::annotate, &writer::annotate, &writer::annotate,
        &writer::map, &writer::map, &writer::linear, &writer::linear, &writer::scale, &writer::over, &writer::over, &writer::extremum,
        &writer::softmax, &writer::softmax, &writer::layer_norm, &writer::merge, &writer::split, &writer::split, &writer::slice,
        &writer::slice, &writer::pad, &writer::pad, &writer::reverse, &writer::roll, &writer::concat, &writer::cumsum, &writer::sort,
        &writer::top_k, &writer::gather, &writer::scatter, &writer::iota, &writer::conv, &writer::conv, &writer::pool, &writer::dropout,
        &writer::cast, &writer::argmax, &writer::cross_entropy, &writer::loop, &writer::loop, &writer::mismatched, &writer::dynamic_slice,
        &writer::dynamic_slice, &writer::dynamic_update, &writer::relu, &writer::larger_or_smaller, &writer::broadcast,
        &writer::check_finite, &writer::attention, &writer::attention, &writer::attention, &writer::scan, &writer::scan, &writer::scan,
        &writer::one_hot, &writer::experts, &writer::experts, &writer::experts, &writer::experts};
    const std::size_t at = std::size_t(below(int(trials.size())));
    // Each program uses only some of the verbs, so that these are combined more often.
    if (below(8) > 0 && left_out_[at]) return false;
    return (this->*trials[at])();
  }
};

}  // namespace detail

/// The program of a seed, on this mesh, or on a random one.
inline recipe written(std::uint32_t seed, const std::vector<int>& mesh = {}) { return detail::writer(seed, mesh).write(); }

}  // namespace random_program
