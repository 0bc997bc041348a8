// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The lists of all functions that the library maps, except those with numbers (core/ir/arithmetic.hpp), and of its custom operations, for
// files that name functions.

#include <gshard/core/ir/pointwise.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/models/language_model.hpp>
#include <gshard/models/rotary.hpp>
#include <gshard/models/transformer.hpp>
#include <gshard/moe/layer/router.hpp>
#include <gshard/moe/layer/swiglu.hpp>
#include <gshard/moe/routing/chunks.hpp>
#include <gshard/moe/routing/expert_replicas.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/ops.hpp>
#include <gshard/train/accumulate.hpp>
#include <gshard/train/adafactor.hpp>
#include <gshard/train/clip.hpp>
#include <gshard/train/master_value.hpp>

#include <string_view>
#include <utility>

namespace gshard { inline namespace v0 {

namespace detail {
/// A function of `op::map` as files name it.
struct named_function {
  std::string_view name;
  const pointwise* function;
};
}  // namespace detail

/// Sorted by name. A derivative has no entry: its function and the number of its operand identify it. The list is read at run time only,
/// because g++ under -fsanitize=undefined does not compare addresses of inline variables in constants.
inline constexpr detail::named_function all_functions[]{
    {"accumulate.share_of_weights", &pointwise_of<detail::share_of_weights, 2>},
    {"adafactor.average", &pointwise_of<detail::adafactor_average, 3>},
    {"adafactor.average_share", &pointwise_of<detail::adafactor_average_share, 2>},
    {"adafactor.average_unless", &undifferentiated<detail::adafactor_average_unless, 4>},
    {"adafactor.clipped", &pointwise_of<detail::adafactor_clipped, 2>},
    {"adafactor.decayed_step", &pointwise_of<detail::adafactor_decayed_step, 4>},
    {"adafactor.decayed_step_unless", &undifferentiated<detail::adafactor_decayed_step_unless, 5>},
    {"adafactor.inverse_root", &pointwise_of<detail::adafactor_inverse_root, 1>},
    {"adafactor.kept_share", &pointwise_of<detail::adafactor_kept_share, 2>},
    {"adafactor.moment", &pointwise_of<detail::adafactor_moment, 4>},
    {"adafactor.moment_unless", &undifferentiated<detail::adafactor_moment_unless, 5>},
    {"adafactor.next_unless", &undifferentiated<detail::adafactor_next_unless, 3>},
    {"adafactor.over_root", &pointwise_of<detail::adafactor_over_root, 2>},
    {"adafactor.product", &pointwise_of<detail::adafactor_product, 2>},
    {"adafactor.product_of_three", &pointwise_of<detail::adafactor_product_of_three, 3>},
    {"adafactor.rate", &pointwise_of<detail::adafactor_rate, 1>},
    {"adafactor.root_of_share", &pointwise_of<detail::adafactor_root_of_share, 2>},
    {"adafactor.scaled_rate", &pointwise_of<detail::adafactor_scaled_rate, 3>},
    {"adafactor.step", &pointwise_of<detail::adafactor_step, 3>},
    {"adafactor.step_unless", &undifferentiated<detail::adafactor_step_unless, 4>},
    {"attention.merged_log_sum", &pointwise_of<detail::merged_log_sum, 2>},
    {"attention.only_part_with_keys", &pointwise_of<detail::only_part_with_keys, 2>},
    {"attention.share_of_part", &pointwise_of<detail::share_of_part, 2>},
    {"attention.weighted_parts", &pointwise_of<detail::weighted_parts, 5>},
    {"clip.factor", &undifferentiated<detail::clip_factor, 2>},
    {"cross_entropy.exponential", &undifferentiated<detail::cross_entropy_exponential, 2>},
    {"cross_entropy.log_sum", &undifferentiated<detail::cross_entropy_log_sum, 2>},
    {"gating.sampling_score", &pointwise_of<detail::sampling_score, 4>},
    {"gating.share_of_sum", &pointwise_of<detail::share_of_sum, 2>},
    {"language_model.count_or_one", &pointwise_of<nn::detail::count_or_one, 1>},
    {"language_model.one_if_label", &pointwise_of<nn::detail::one_if_label, 1>},
    {"layer_norm.affine", &undifferentiated<detail::layer_norm_affine, 3>},
    {"layer_norm.scale", &undifferentiated<detail::layer_norm_scale, 2>},
    {"layer_norm.slope", &undifferentiated<detail::layer_norm_slope, 5>},
    {"layer_norm.square", &undifferentiated<detail::layer_norm_square, 1>},
    {"logsumexp.exponential", &pointwise_of<detail::shifted_exponential, 2>},
    {"logsumexp.logarithm", &pointwise_of<detail::shifted_logarithm, 2>},
    {"loop.plus_one", &pointwise_of<detail::plus_one, 1>},
    {"map.relu", &pointwise_by_result<detail::relu_of_number>},
    {"master_value.choice", &undifferentiated<detail::master_value_choice, 3>},
    {"random.gumbel_of_uniform", &pointwise_of<detail::gumbel_of_uniform, 1>},
    {"reduce.one_for_zero", &undifferentiated<detail::one_for_zero, 1>},
    {"reduce.product_slope", &undifferentiated<detail::product_slope, 4>},
    {"reduce.zero_indicator", &undifferentiated<detail::zero_indicator, 1>},
    {"rms_norm.normalized", &pointwise_of<nn::detail::rms_normalized, 3>},
    {"rotary.cosine", &pointwise_of<nn::detail::rotary_cosine, 2>},
    {"rotary.exp", &pointwise_of<nn::detail::rotary_exp, 1>},
    {"rotary.log", &pointwise_of<nn::detail::rotary_log, 1>},
    {"rotary.sine", &pointwise_of<nn::detail::rotary_sine, 2>},
    {"rotary.turn", &pointwise_of<nn::detail::rotary_turn, 5>},
    {"router.at_least_one", &pointwise_of<nn::detail::at_least_one, 1>},
    {"router.demand_over_mean", &pointwise_of<nn::detail::demand_over_mean, 2>},
    {"router.entropy_term", &pointwise_of<nn::detail::entropy_term, 1>},
    {"router.score_if_chosen", &pointwise_of<nn::detail::score_if_chosen, 2>},
    {"router.share_of_choices", &pointwise_of<nn::detail::share_of_choices, 2>},
    {"router.sigmoid", &pointwise_of<nn::detail::sigmoid_score, 1>},
    {"router.square_if_real", &pointwise_of<nn::detail::square_if_real, 2>},
    {"router.towards_mean", &pointwise_of<nn::detail::towards_mean, 2>},
    {"softmax.exponential", &undifferentiated<detail::softmax_exponential, 2>},
    {"softmax.slope", &undifferentiated<detail::softmax_slope, 3>},
    {"swiglu.gated_by_silu", &pointwise_of<nn::detail::gated_by_silu, 2>},
    {"transformer.bias_of_later_keys", &pointwise_of<nn::detail::bias_of_later_keys, 2>},
    {"transformer.bias_of_padding", &pointwise_of<nn::detail::bias_of_padding, 1>},
    {"transformer.one_if_real", &pointwise_of<nn::detail::one_if_real, 1>},
    {"transformer.second_operand", &pointwise_of<nn::detail::second_operand, 2>},
};

/// The library's own operations of `custom`, which have names.
inline constexpr const custom_operation* all_custom_operations[]{
    &detail::custom_of<detail::lost_choices, std::make_index_sequence<2>>,
    &detail::custom_of<detail::rows_with_sums, std::make_index_sequence<3>>,
    &detail::custom_of<detail::slots_of_chunk, std::make_index_sequence<4>>,
    &detail::custom_of<detail::slots_of_replicas, std::make_index_sequence<4>>,
    &detail::custom_of<detail::sum_of_replicas, std::make_index_sequence<2>>,
};

}}  // namespace gshard::v0
