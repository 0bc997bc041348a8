// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/gshard.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace calibrate {

namespace gs = gshard;

/// Writes inputs that are valid in every program here: small numbers, and ids below 500. A run may overwrite its inputs.
inline void write_inputs(const gs::executor& run) {
  for (std::size_t i = 0; i < run.plan().inputs.size(); ++i) {
    const gs::detail::bound_value& in = run.input(i);
    if (in.type == gs::dtype::f32) std::fill_n(in.as<float>(0), in.elements(0), 1e-3f);
    else
      for (std::int64_t k = 0; k < in.elements(0); ++k) in.as<std::int32_t>(0)[k] = std::int32_t(1 + k % 499);
  }
}

/// A program whose steps run alone: the ranks do not compare their calls.
template <class Program>
std::shared_ptr<gs::executor> bound_program(const gs::any_cluster& on, const gs::dims& sizes, int threads) {
  auto run = std::make_shared<gs::executor>(Program::plan, gs::kernels_of<Program>, on, sizes, gs::parameter_store(on));
  run->agreed_by_caller();
  run->threads = threads;
  write_inputs(*run);
  return run;
}

}  // namespace calibrate
