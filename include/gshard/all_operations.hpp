// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The list of all operations, for tables of all kernels, files that name operations, and tests.

#include <gshard/core/ir/op.hpp>
#include <gshard/moe/routing/expert_groups.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/grouped_product.hpp>
#include <gshard/moe/routing/routing.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/attention/attention.hpp>
#include <gshard/ops/check/check_finite.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/ops/rows/layer_norm.hpp>
#include <gshard/ops/rows/softmax.hpp>
#include <gshard/ops/user/call_on_shards.hpp>
#include <gshard/ops/user/custom.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/convolution.hpp>
#include <gshard/ops/window/moved.hpp>
#include <gshard/ops/window/pool.hpp>
#include <gshard/train/adam.hpp>
#include <gshard/train/gradient_wire.hpp>

namespace gshard { inline namespace v0 {

inline constexpr op_ref all_operations[]{
    op::einsum, op::map, op::scale, op::reduce, op::argmax, op::cast, op::softmax, op::softmax_grad, op::layer_norm,
    op::layer_norm_grad, op::cross_entropy, op::cross_entropy_grad, op::block_cross_entropy, op::attention, op::attention_grad,
    op::cumsum, op::block_sum, op::sort, op::top_k, op::scatter_along, op::gather, op::scatter_add, op::iota, op::check_finite,
    op::count_not_finite, op::sum_of_squares, op::reshape, op::annotate, op::strided_slice, op::pad, op::reverse, op::roll,
    op::permute, op::concat, op::convolution, op::pool, op::pool_grad, op::call_on_shards, op::custom, op::dropout, op::random,
    op::top_k_gating, op::top_k_gating_grad, op::expert_group_slots, op::expert_group_slots_grad, op::expert_rows,
    op::grouped_product, op::grouped_weight_grad, op::one_hot, op::one_hot_grad, op::dispatch, op::combine,
    op::combine_weight_grad, op::feedback, op::adam, op::carry, op::loop_begin, op::loop_test, op::loop_end, op::slice,
    op::all_gather, op::all_reduce, op::reduce_scatter, op::all_to_all, op::ragged_all_to_all, op::collective_permute,
    op::looped_einsum,
};

}}  // namespace gshard::v0
