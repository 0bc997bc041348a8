// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A decoder-only language model with experts: training on a mesh of data x experts, then greedy decoding and beam
// search with a cache of keys and values.
#include <gshard/gshard.hpp>
#include <gshard/models.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <vector>

namespace gs = gshard;
namespace nn = gshard::nn;
namespace op = gs::op;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert">>;

// Two layers, the second one with experts. With a slot for each token, decoding has the logits of training.
inline constexpr nn::language_model_options options{
    .layers = 2, .moe = {.routing = {.k = 2, .slots = gs::capacity{4}}, .swiglu = true}};

inline constexpr auto training_step = [](auto& m, auto ids, auto labels, auto rate) {
  nn::routing_summary routing;
  const auto loss = nn::token_loss(nn::language_model<"expert">(m, ids, options, routing), labels);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return loss;
};
inline constexpr auto decoding_step = [](auto& m, auto ids, auto position) {
  return nn::sample_token(m, nn::language_model_step<"expert">(m, ids, position, options));
};

// Log probabilities of the next token. Each row continues a row of its group.
inline constexpr auto beam_step = [](auto& m, auto ids, auto position, auto order) {
  const auto logits = nn::language_model_step<"expert">(m, ids, position, options, order);
  return logits - gs::logsumexp<"GBV->GB">(logits);
};

// Groups of sequences are sharded over all devices, experts over one axis.
inline constexpr auto devices = gs::axes<"data", "expert">;
using sequences = in<"GBT", P<devices, none, none>, std::int32_t>;
using training = gs::program<training_step, mesh, sequences, sequences, in<"">>;
using tokens = in<"GB", P<devices, none>, std::int32_t>;
using decoding = gs::program<decoding_step, mesh, tokens, in<"", std::int32_t>>;
using beams = gs::program<beam_step, mesh, tokens, in<"", std::int32_t>, tokens>;

// Tokens go to the experts and back, also in the gradients. Nothing is gathered. Decoding sends nothing else.
static_assert(training::plan.count(op::all_to_all) == 4 && training::plan.count(op::all_gather) == 0);
static_assert(decoding::plan.count(op::all_to_all) == 2 && decoding::plan.collectives() == 2);
static_assert(beams::plan.count(op::all_to_all) == 2 && beams::plan.collectives() == 2);

constexpr std::size_t G = 4, B = 4, T = 16, V = 32, rows = G * B;

// The language: a sentence is an arithmetic progression modulo 31. Its first two tokens determine the others.
std::int32_t token(std::size_t start, std::size_t step, std::size_t t) { return std::int32_t(1 + (start + step * t) % (V - 1)); }

int main() {
  const auto on = gs::simulate<mesh>({2, 2});
  const gs::dims sizes{{'G', G}, {'B', B}, {'T', T}, {'M', 32}, {'H', 2}, {'R', 2}, {'D', 8}, {'F', 64}, {'E', 4}, {'V', V}, {'L', T}};
  gs::parameter_store model(on, 1);
  gs::executable<training> train(on, sizes, model);
  float first = 0, last = 0;
  for (std::size_t i = 0; i < 400; ++i) {
    std::vector<std::int32_t> ids(rows * T), labels(rows * T, -1);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t t = 0; t < T; ++t) {
        const std::size_t start = i * 7 + row * 11, step = 1 + (i + row) % 3;
        ids[row * T + t] = token(start, step, t);
        if (t > 0) labels[row * T + t] = token(start, step, t + 1);  // the second token cannot be predicted
      }
    last = train(ids, labels, std::array{3e-3f}).item();
    if (i == 0) first = last;
  }
  std::cout << "the loss has fallen to less than a tenth: " << (last < first / 10 ? "yes" : "no") << '\n';

  gs::executable<decoding> next(on, sizes, model);
  std::vector<std::int32_t> now(rows);
  std::size_t right = 0;
  for (std::size_t t = 0; t + 1 < T; ++t) {
    for (std::size_t row = 0; t < 2 && row < rows; ++row) now[row] = token(row * 5, 1 + row % 3, t);  // the beginning
    now = gs::to_global(next(now, std::array{std::int32_t(t)}));
    for (std::size_t row = 0; t > 0 && row < rows; ++row) right += now[row] == token(row * 5, 1 + row % 3, t + 1);
  }
  std::cout << "nine of ten tokens continue their sentence: " << (10 * right >= 9 * rows * (T - 2) ? "yes" : "no") << '\n';

  // Beam search: half of the sentences, each with two hypotheses.
  gs::executable<beams> step(on, sizes, model);
  std::vector<std::vector<std::int32_t>> beginnings;
  for (std::size_t s = 0; s < rows / 2; ++s) beginnings.push_back({token(s * 5, 1 + s % 3, 0), token(s * 5, 1 + s % 3, 1)});
  gs::beam_search search(beginnings, {G, B}, {.width = 2});
  while (search.position() + 1 < std::int32_t(T))
    search.advance(gs::to_global(step(search.ids(), std::array{search.position()}, search.order())));
  right = 0;
  for (std::size_t s = 0; s < beginnings.size(); ++s)
    for (std::size_t t = 2; t < T; ++t) right += search.best(s).ids[t] == token(s * 5, 1 + s % 3, t);
  std::cout << "and nine of ten tokens of the best beams: " << (10 * right >= 9 * beginnings.size() * (T - 2) ? "yes" : "no") << '\n';
}
