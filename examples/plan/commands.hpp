// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"
#include "order.hpp"
#include "products.hpp"
#include "rows.hpp"
#include "shapes.hpp"
#include "windows.hpp"

#include <vector>

namespace planning {

/// All subcommands. To add one, write a function like these and add its name here.
inline std::vector<command> commands() {
  return {einsum_command(), reshard_command(), map_command(),     reduce_command(),     softmax_command(),   layer_norm_command(),
          conv_command(),   pool_command(),    pad_command(),     slice_command(),      reverse_command(),   roll_command(),
          concat_command(), reshape_command(), transpose_command(), sort_command(),     top_k_command(),     cumsum_command(),
          gather_command(), scatter_command()};
}

}  // namespace planning
