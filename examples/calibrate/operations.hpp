// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "bound_program.hpp"
#include "sampler.hpp"
#include "training_step.hpp"

#include <gshard/all_operations.hpp>
#include <gshard/core/cost/step_time.hpp>
#include <gshard/gshard.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Measures matrix products by their smallest extent, and all other operations in a training step. All ranks run it at once, each on its
// own.
namespace calibrate {

using one_axis = expert_mesh;

inline constexpr auto multiply = [](auto&, auto a, auto b) { return gs::einsum<"NM,MH->NH">(a, b); };
inline constexpr auto multiply_batch = [](auto&, auto a, auto b) { return gs::einsum<"BNM,BMH->BNH">(a, b); };
using product = gs::program<multiply, one_axis, gs::in<"NM">, gs::in<"MH">>;
using batched_product = gs::program<multiply_batch, one_axis, gs::in<"BNM">, gs::in<"BMH">>;
inline constexpr auto add_up = [](auto&, auto x, auto y) { return x + y; };
using stream = gs::program<add_up, one_axis, gs::in<"A">, gs::in<"A">>;

class product_points {
 public:
  product_points(sampler& samples, const gs::any_cluster& alone, int threads) : samples_(samples), alone_(alone), threads_(threads) {
    for (const std::int64_t k : {8, 32, 96, 256, 512}) {
      add<product>({{'N', k}, {'M', 512}, {'H', 512}}, false);
      add<product>({{'N', 512}, {'M', k}, {'H', 512}}, false);
      add<product>({{'N', 512}, {'M', 512}, {'H', k}}, false);
    }
    for (const std::int64_t k : {8, 32, 96, 256}) {
      add<batched_product>({{'B', 8}, {'N', k}, {'M', 128}, {'H', 256}}, true);
      add<batched_product>({{'B', 8}, {'N', 128}, {'M', k}, {'H', 256}}, true);
      add<batched_product>({{'B', 8}, {'N', 256}, {'M', 128}, {'H', k}}, true);
    }
  }
  void store(gs::machine& m) const {
    for (const bool batched : {false, true}) {
      gs::measured_curve& curve = batched ? m.measured.batched_product : m.measured.product;
      for (const std::int64_t k : {8, 32, 96, 128, 256, 512}) {
        double flops = 0, seconds = 0;
        for (const point& p : points_)
          if (p.batched == batched && p.smallest == k) {
            flops += 1;
            seconds += samples_.of(p.sample).typical / p.flops;
          }
        if (flops > 0) curve.add(double(k), seconds / flops);
      }
    }
    m.flops = 1 / m.measured.product.value[std::size_t(m.measured.product.count - 1)];
  }

 private:
  struct point {
    std::int64_t smallest = 0;
    bool batched = false;
    double flops = 0;
    std::size_t sample = 0;
  };
  sampler& samples_;
  gs::any_cluster alone_;
  int threads_;
  std::vector<point> points_;

  template <class Program>
  void add(const gs::dims& sizes, bool batched) {
    const auto run = bound_program<Program>(alone_, sizes, threads_);
    const double flops = gs::flops(run->plan(), run->sizes());
    std::int64_t smallest = 0;
    for (const gs::node& step : run->plan().steps)
      if (step.kind == gs::op::einsum) smallest = gs::extents_of_product(run->plan(), step, run->sizes()).smallest();
    points_.push_back({smallest, batched, flops, samples_.add("product", [run] { run->run({}); }, 10e-3)});
  }
};

using training = transformer_program<transformer_model<2, true>>;

/// The seconds of each kind of operation in a training step of two sizes.
class operation_times {
 public:
  operation_times(const gs::any_cluster& alone, int threads) {
    const auto sizes = [](std::int64_t b, std::int64_t t, std::int64_t m, std::int64_t h, std::int64_t v) {
      return gs::dims{{'G', 1}, {'B', b}, {'S', t}, {'T', t}, {'L', t}, {'M', m}, {'H', h}, {'D', 32}, {'F', 4 * m}, {'E', 4}, {'V', v}};
    };
    runs_[0] = bound_program<training>(alone, sizes(2, 16, 64, 2, 512), threads);
    runs_[1] = bound_program<training>(alone, sizes(8, 24, 192, 4, 2048), threads);
    for (std::size_t r = 0; r < 2; ++r) runs_[r]->hook = [this](const gs::node& step, bool begins) { note(step, begins); };
  }
  void measure(int rounds) {
    for (int round = -1; round < rounds; ++round)
      for (std::size_t r = 0; r < 2; ++r) {
        now_.fill(0);
        write_inputs(*runs_[r]);
        MPI_Barrier(MPI_COMM_WORLD);
        runs_[r]->run({});
        if (round < 0) continue;
        MPI_Allreduce(MPI_IN_PLACE, now_.data(), int(now_.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (std::size_t k = 0; k < now_.size(); ++k) seconds_[r][k].push_back(now_[k]);
      }
  }
  /// A line through the times of both sizes. If its start or slope would be negative: a line through the larger size and 0. The times of
  /// products are scaled by their seconds in the larger training step, in which their operands have other layouts.
  void store(gs::measured_times& times, int processes) const {
    std::array<std::array<double, kinds>, 2> steps{}, bytes{};
    double expected = 0;
    for (std::size_t r = 0; r < 2; ++r)
      for (const gs::node& step : runs_[r]->plan().steps) {
        const auto k = index(step.kind);
        const std::int64_t touched = gs::bytes_touched(runs_[r]->plan(), step, runs_[r]->sizes());
        if (touched > 0) ++steps[r][k];
        bytes[r][k] += double(touched);
        const double flops = gs::flops(runs_[r]->plan(), step, runs_[r]->sizes());
        if (r == 1 && flops > 0) {
          const gs::product_extents p = gs::extents_of_product(runs_[r]->plan(), step, runs_[r]->sizes());
          expected += flops * times.products(p.batch > 1).clamped(double(p.smallest()));
        }
      }
    for (std::size_t k = 0; k < kinds; ++k) {
      if (seconds_[0][k].empty() || bytes[1][k] <= 0 || gs::all_operations[k]->collective) continue;
      const double small = summarize(seconds_[0][k]).typical / processes, large = summarize(seconds_[1][k]).typical / processes;
      if (gs::all_operations[k] == gs::op::einsum) {
        scale(times.product, large / expected);
        scale(times.batched_product, large / expected);
        continue;
      }
      gs::operation_time& t = times.operations[k];
      const double det = steps[0][k] * bytes[1][k] - steps[1][k] * bytes[0][k];
      t = {(small * bytes[1][k] - large * bytes[0][k]) / det, (steps[0][k] * large - steps[1][k] * small) / det};
      if (!(t.start >= 0 && t.per_byte >= 0)) t = {0, large / bytes[1][k]};
    }
  }

 private:
  static constexpr std::size_t kinds = std::size(gs::all_operations);
  std::array<std::shared_ptr<gs::executor>, 2> runs_;
  std::array<std::array<std::vector<double>, kinds>, 2> seconds_;  // by size and kind: the sum over all ranks, in each round
  std::array<double, kinds> now_{};
  std::chrono::steady_clock::time_point begun_;

  static std::size_t index(gs::op_ref kind) { return std::size_t(gs::measured_as(kind)->id); }
  static void scale(gs::measured_curve& c, double factor) {
    for (double& v : c.value) v *= factor;
  }
  void note(const gs::node& step, bool begins) {
    const auto t = std::chrono::steady_clock::now();
    if (begins) begun_ = t;
    else now_[index(step.kind)] += std::chrono::duration<double>(t - begun_).count();
  }
};

}  // namespace calibrate
