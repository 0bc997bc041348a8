// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/program/executable.hpp>
#include <gshard/models/transformer.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/train/adam.hpp>

#include "../allocations.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

/// A training step of a Transformer with a layer of every kind: groups of sequences and experts over the axis "data", heads and hidden
/// units over "model".
namespace small_step {

namespace gs = gshard;
using gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"model">>;

inline constexpr gs::nn::transformer_options options{.encoder_layers = 2, .decoder_layers = 2, .dropout = 0.1, .moe = {}};

inline constexpr auto model = [](auto& m, auto source, auto target, auto next, auto rate) {
  gs::nn::routing_summary routing;
  const auto table = m.param("embedding", "VM", P<"model", none>{}, gs::init::fan_in("M"));
  const auto source_mask = gs::nn::real_tokens(m, source), target_mask = gs::nn::real_tokens(m, target);
  const auto memory = gs::nn::encode<"data">(m.scope("encoder"), table, source, source_mask, options, routing);
  const auto y = gs::nn::decode<"data">(m.scope("decoder"), table, target, target_mask, memory, source_mask, options, routing);
  const auto loss = gs::sum(gs::cross_entropy(gs::einsum<"GBTM,VM->GBTV">(y, table), next, 0.1) * target_mask) / gs::sum(target_mask);
  gs::adam{}.minimize(m, m.objective(loss, 0.3), rate);
  return loss;
};
template <gs::fixed_string Letters>
using ids = gs::in<Letters, P<"data", none, none>, std::int32_t>;
using program = gs::program<model, mesh, ids<"GBS">, ids<"GBT">, ids<"GBT">, gs::in<"">>;

inline constexpr std::int64_t groups = 4, sequences = 2, source_length = 6, target_length = 5, vocabulary = 16;
inline constexpr gs::dims sizes{{'G', groups}, {'B', sequences}, {'S', source_length}, {'T', target_length}, {'M', 16}, {'H', 2},
                                {'D', 8},      {'F', 24},        {'E', 4},             {'V', vocabulary},    {'L', 10}};

/// Writes some sequences into the inputs of a run.
inline void write_inputs(const gs::executor& step) {
  const auto write = [&]<class T>(std::size_t input, const std::vector<T>& whole) {
    const auto& to = step.input(input);
    for (std::size_t d = 0; d < to.places.size(); ++d) {
      const gs::kernel::placement& at = to.places[d];
      gs::detail::copy_shard_of(reinterpret_cast<const std::byte*>(whole.data()), gs::kernel::row_major_strides(at.rank, at.global),
                                to.data[d], at, sizeof(T));
    }
  };
  const auto words = [](std::int64_t length, std::int64_t first) {
    std::vector<std::int32_t> v(std::size_t(groups * sequences * length));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::int32_t(1 + (std::int64_t(i) * 7 + first) % (vocabulary - 1));
    return v;
  };
  write(0, words(source_length, 0));
  write(1, words(target_length, 3));
  write(2, words(target_length, 5));
  write(3, std::vector{1e-3f});
}

/// Allocations while a step runs.
inline std::int64_t allocations_of_run(gs::executor& step, const gs::run_context& context) {
  return allocations::during([&] { step.run(context); });
}

}  // namespace small_step
