// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/gshard.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

// The training step of the benchmarks: an encoder-decoder Transformer with a mixture of experts in every second layer; loss, gradients,
// Adam.
namespace bench {

using expert_mesh = gshard::mesh<gshard::axis<"expert">>;

template <int Layers>
inline constexpr gshard::nn::transformer_options transformer_model{
    .encoder_layers = Layers, .decoder_layers = Layers, .dropout = 0, .moe = {gshard::capacity{2}, gshard::second_expert::always}};

template <int Layers>
inline constexpr auto transformer_step = [](auto& m, auto source, auto target_in, auto target_out, auto rate) {
  namespace gs = gshard;
  gs::nn::routing_summary routing;
  const auto table = m.param("embedding", "VM", gs::init::fan_in("M"));
  const auto source_mask = gs::nn::real_tokens(m, source), target_mask = gs::nn::real_tokens(m, target_in);
  const auto memory = gs::nn::encode<"expert">(m.scope("encoder"), table, source, source_mask, transformer_model<Layers>, routing);
  const auto y =
      gs::nn::decode<"expert">(m.scope("decoder"), table, target_in, target_mask, memory, source_mask, transformer_model<Layers>, routing);
  const auto loss = gs::mean(gs::cross_entropy(gs::einsum<"GBTM,VM->GBTV">(y, table), target_out, 0.1));
  gs::adam{}.minimize(m, loss + 0.01 * m.auxiliary(), rate);
  return loss;
};
template <gshard::fixed_string Letters>
using token_ids = gshard::in<Letters, gshard::P<"expert", gshard::none, gshard::none>, std::int32_t>;
template <int Layers, class... Options>
using transformer_program = gshard::program<transformer_step<Layers>, expert_mesh, token_ids<"GBS">, token_ids<"GBT">, token_ids<"GBT">,
                                            gshard::in<"">, Options...>;

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
