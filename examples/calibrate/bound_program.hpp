// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/kernel/move/fill.hpp>
#include <gshard/gshard.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace calibrate {

namespace gs = gshard;

/// Writes inputs that are valid in every program here: random numbers, which spread tokens over experts; small scalars, such as the rate of
/// an optimizer; and ids below 500. A run may overwrite its inputs.
inline void write_inputs(const gs::executor& run) {
  for (std::size_t i = 0; i < run.plan().inputs.size(); ++i) {
    const auto& in = run.input(i);
    const std::int64_t n = in.elements(0);
    if (in.type != gs::dtype::f32)
      for (std::int64_t k = 0; k < n; ++k) in.as<std::int32_t>(0)[k] = std::int32_t(1 + k % 499);
    else if (n == 1) *in.as<float>(0) = 1e-3f;
    else gs::kernel::fill_normal(in.as<float>(0), gs::kernel::whole(1, {n}), 1, {1, std::uint32_t(i), 3});
  }
}

/// Runs with generated inputs until the program has chosen whether its collectives overlap. Communicates: as the program, equally often on
/// every rank.
inline void choose_overlap(gs::executor& run) {
  do {
    write_inputs(run);
    run.run({});
  } while (run.measures_overlap());
}

/// A program whose steps run alone: the ranks do not compare their calls. It has not run yet, and has no inputs.
template <class Program>
std::shared_ptr<gs::executor> unprepared_program(const gs::any_cluster& on, const gs::dims& sizes, int threads) {
  auto run = std::make_shared<gs::executor>(Program::plan, gs::kernels_of<Program>, on, sizes, gs::parameter_store(on));
  run->agreed_by_caller();
  run->threads = threads;
  return run;
}

/// Writes inputs, and chooses whether collectives overlap.
inline void prepare(gs::executor& run) {
  if (run.measures_overlap()) choose_overlap(run);
  write_inputs(run);
}

template <class Program>
std::shared_ptr<gs::executor> bound_program(const gs::any_cluster& on, const gs::dims& sizes, int threads) {
  auto run = unprepared_program<Program>(on, sizes, threads);
  prepare(*run);
  return run;
}

}  // namespace calibrate
