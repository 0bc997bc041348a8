// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Greedy decoding of a language model with experts on one device: with a cache of keys and values, and without one, where each token costs
// a run over all positions before it. Also reads the decoded text as a prompt: in one step, and token by token. Fails if the decoded tokens
// differ.
// usage: bench_decoding [rounds]
#include <gshard/gshard.hpp>

#include "timing.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace gs = gshard;
namespace nn = gshard::nn;

namespace {

using mesh = gs::mesh<gs::axis<"expert">>;
constexpr std::size_t sequences = 4, tokens = 64;

// With a slot for each token, both models compute the same logits.
inline constexpr nn::language_model_options options{
    .layers = 4, .moe = {.routing = {.k = 2, .slots = gs::capacity{8}}, .swiglu = true}};

inline constexpr auto with_cache = [](auto& m, auto ids, auto position) {
  return nn::sample_token(m, nn::language_model_step<"expert">(m, ids, position, options));
};
inline constexpr auto of_prompt = [](auto& m, auto ids, auto position) {
  return gs::argmax<"GBTV->GBT">(nn::language_model_step<"expert">(m, ids, position, options));
};
inline constexpr auto without_cache = [](auto& m, auto ids) {
  nn::routing_summary routing;
  return gs::argmax<"GBTV->GBT">(nn::language_model<"expert">(m, ids, options, routing));
};
using cached = gs::program<with_cache, mesh, gs::in<"GB", void, std::int32_t>, gs::in<"", void, std::int32_t>>;
using whole_prompt = gs::program<of_prompt, mesh, gs::in<"GBT", void, std::int32_t>, gs::in<"", void, std::int32_t>>;
using uncached = gs::program<without_cache, mesh, gs::in<"GBT", void, std::int32_t>>;

gs::dims sizes(std::size_t positions) {
  return {{'G', 1},  {'B', std::int64_t(sequences)}, {'T', std::int64_t(positions)}, {'L', std::int64_t(tokens)}, {'M', 256}, {'H', 4}, {'R', 2},
          {'D', 32}, {'F', 1024},                    {'E', 8},                       {'V', 4096}};
}

/// The tokens of all sequences, by position; the first ones are given.
using text = std::vector<std::vector<std::int32_t>>;
text beginning() {
  std::vector<std::int32_t> first;
  for (std::size_t b = 0; b < sequences; ++b) first.push_back(std::int32_t(1 + 37 * b));
  return {first};
}

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 5;
  const auto on = gs::on_one_device<mesh>();
  gs::parameter_store model(on, 1);
  gs::executable<cached> step(on, sizes(tokens), model);
  gs::executable<whole_prompt> at_once(on, sizes(tokens), model);
  std::vector<std::unique_ptr<gs::executable<uncached>>> whole;  // by number of positions
  for (std::size_t n = 1; n <= tokens; ++n) whole.push_back(std::make_unique<gs::executable<uncached>>(on, sizes(n), model));
  const gs::kernel::use_threads sharing(gs::kernel::default_threads(1));

  text by_step, by_whole;
  const auto decode_by_step = [&] {
    by_step = beginning();
    for (std::size_t t = 0; t < tokens; ++t) by_step.push_back(gs::to_global(step(by_step[t], std::array{std::int32_t(t)})));
  };
  const auto decode_by_whole = [&] {
    by_whole = beginning();
    for (std::size_t t = 0; t < tokens; ++t) {
      std::vector<std::int32_t> ids;
      for (std::size_t b = 0; b < sequences; ++b)
        for (std::size_t i = 0; i <= t; ++i) ids.push_back(by_whole[i][b]);
      const std::vector<std::int32_t> next = gs::to_global((*whole[t])(ids));
      by_whole.emplace_back();
      for (std::size_t b = 0; b < sequences; ++b) by_whole.back().push_back(next[b * (t + 1) + t]);
    }
  };
  text by_prompt;
  const auto read_prompt = [&] {
    std::vector<std::int32_t> ids;
    for (std::size_t b = 0; b < sequences; ++b)
      for (std::size_t i = 0; i < tokens; ++i) ids.push_back(by_step[i][b]);
    const std::vector<std::int32_t> next = gs::to_global(at_once(ids, std::array{0}));
    by_prompt = beginning();
    for (std::size_t t = 0; t < tokens; ++t) {
      by_prompt.emplace_back();
      for (std::size_t b = 0; b < sequences; ++b) by_prompt.back().push_back(next[b * tokens + t]);
    }
  };
  decode_by_step();
  decode_by_whole();
  read_prompt();
  if (by_step != by_whole || by_step != by_prompt) {
    std::fprintf(stderr, "with the cache, other tokens are decoded than without\n");
    return 1;
  }
  bench::compare("decoding " + std::to_string(tokens) + " tokens x " + std::to_string(sequences),
                 {{"gshard", decode_by_step}, {"without a cache", decode_by_whole}}, rounds);
  bench::compare("prompt of " + std::to_string(tokens) + " tokens x " + std::to_string(sequences),
                 {{"one step", read_prompt}, {"token by token", decode_by_step}}, rounds);
}
