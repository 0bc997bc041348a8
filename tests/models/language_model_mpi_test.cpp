// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A language model that decodes beams on MPI ranks: the same sequences and bits as on simulated devices.
#include "../mpi_world.hpp"

#include <gshard/models/decode/beam_search.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/models/language_model.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/cluster/mpi_cluster.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gs = gshard;
namespace nn = gshard::nn;
using gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"expert">>;
constexpr std::size_t G = 4, B = 6, width = 3, T = 9, V = 11;
const gs::dims extents{{'G', G}, {'B', B}, {'M', 16}, {'H', 2}, {'R', 2}, {'D', 4}, {'F', 24}, {'E', 3}, {'V', V}, {'L', T}};

constexpr nn::language_model_options options{
    .layers = 2, .moe = {.routing = {.k = 2, .slots = gs::capacity{3}}, .swiglu = true}};
constexpr auto decoding_step = [](auto& m, auto ids, auto position, auto order) {
  const auto logits = nn::language_model_step<"expert">(m, ids, position, options, order);
  return logits - gs::logsumexp<"GBV->GB">(logits);
};
using rows = in<"GB", P<"expert", none>, std::int32_t>;
using step = gs::program<decoding_step, mesh, rows, in<"", void, std::int32_t>, rows>;

struct decoded {
  std::vector<std::vector<std::int32_t>> ids;
  std::vector<double> scores;
  bool operator==(const decoded&) const = default;
};
decoded decode(const gs::cluster<mesh>& on) {
  std::vector<std::vector<std::int32_t>> beginnings(G * (B / width));  // of 1 to 3 tokens
  for (std::size_t s = 0; s < beginnings.size(); ++s)
    for (std::size_t i = 0; i < 1 + s % 3; ++i) beginnings[s].push_back(std::int32_t(1 + (s * 5 + i * 2) % (V - 1)));
  gs::beam_search search(beginnings, {G, B}, {.width = width, .end = 4, .length_exponent = 1});
  gs::executable<step> run(on, extents, gs::parameter_store(on, 3));
  while (!search.done() && search.position() < std::int32_t(T))
    search.advance(gs::to_global(run(search.ids(), std::array{search.position()}, search.order())));
  decoded all;
  for (std::size_t s = 0; s < search.sequences(); ++s)
    for (const gs::beam_hypothesis& h : search.beam(s)) {
      all.ids.push_back(h.ids);
      all.scores.push_back(h.score);
    }
  return all;
}

}  // namespace

TEST_CASE("language_model_step: beams on MPI ranks are those of simulated devices, to the bit") {
  const decoded found = decode(gs::on_mpi<mesh>(MPI_COMM_WORLD));
  CHECK(found.ids.size() == G * B);
  CHECK(found == decode(gs::simulate<mesh>(mpi_world::ranks())));
}
