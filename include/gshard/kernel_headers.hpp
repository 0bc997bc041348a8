// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The headers of the kernels of all operations, and the list by which all of them are compiled.

#include <gshard/all_operations.hpp>
#include <gshard/exec/bind/kernel_table.hpp>
#include <gshard/moe/routing/expert_groups_kernel.hpp>
#include <gshard/moe/routing/gating_kernel.hpp>
#include <gshard/moe/routing/grouped_product_kernel.hpp>
#include <gshard/moe/routing/routing_kernel.hpp>
#include <gshard/ops/along/cumsum_kernel.hpp>
#include <gshard/ops/along/sort_kernel.hpp>
#include <gshard/ops/attention/attention_kernel.hpp>
#include <gshard/ops/check/check_finite_kernel.hpp>
#include <gshard/ops/index/gather_kernel.hpp>
#include <gshard/ops/loop/loop_kernel.hpp>
#include <gshard/ops/random/dropout_kernel.hpp>
#include <gshard/ops/random/random_kernel.hpp>
#include <gshard/ops/reduce/argmax_kernel.hpp>
#include <gshard/ops/reduce/reduce_kernel.hpp>
#include <gshard/ops/rows/cross_entropy_kernel.hpp>
#include <gshard/ops/rows/layer_norm_kernel.hpp>
#include <gshard/ops/rows/softmax_kernel.hpp>
#include <gshard/ops/user/call_on_shards_kernel.hpp>
#include <gshard/ops/user/custom_kernel.hpp>
#include <gshard/ops/window/concat_kernel.hpp>
#include <gshard/ops/window/convolution_kernel.hpp>
#include <gshard/ops/window/moved_kernel.hpp>
#include <gshard/ops/window/pool_kernel.hpp>
#include <gshard/train/adam_kernel.hpp>
#include <gshard/train/gradient_wire_kernel.hpp>
#include <gshard/exec/core_kernels/einsum_kernel.hpp>
#include <gshard/exec/core_kernels/iota_kernel.hpp>
#include <gshard/exec/core_kernels/map_kernel.hpp>
#include <gshard/exec/core_kernels/shape_kernel.hpp>

#include <array>
#include <cstddef>
#include <iterator>

namespace gshard { inline namespace v0 { namespace detail {

/// All kernels of the library.
struct every_kernel {
  static constexpr auto used = [] {
    std::array<used_kernels, std::size(all_operations)> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = {all_operations[i], all_elements};
    return all;
  }();
};

}}}  // namespace gshard::v0::detail
