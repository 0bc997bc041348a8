// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "calibrate/training_step.hpp"

#include <gshard/gshard.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

// The training step of the benchmarks, and tokens for it.
namespace bench {

using calibrate::expert_mesh;

template <int Layers, class... Options>
using transformer_program = calibrate::transformer_program<Layers, false, Options...>;

/// Source, target and shifted target of a batch: ids from 1 to `vocabulary` - 1.
inline std::array<std::vector<std::int32_t>, 3> random_tokens(std::int64_t tokens, std::int64_t vocabulary) {
  std::array<std::vector<std::int32_t>, 3> all;
  for (std::uint64_t i = 0; i < std::uint64_t(tokens); ++i)
    for (std::size_t k = 0; k < all.size(); ++k) {
      const std::uint64_t h = gshard::fnv1a<std::uint64_t>().add(i).add(std::uint64_t(k + 1)).value();
      all[k].push_back(std::int32_t(1 + h % std::uint64_t(vocabulary - 1)));
    }
  return all;
}

}  // namespace bench
