// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A training step of an encoder-decoder Transformer with a mixture of experts in every second layer, 35 million parameters with the
// defaults: loss, gradients, Adam. On one device, or on the ranks that mpirun starts.
// usage: [mpirun -n 2] bench_transformer_step [steps]
#include <gshard/gshard.hpp>

#include "timing.hpp"

#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

namespace gs = gshard;

namespace {

using mesh = gs::mesh<gs::axis<"expert">>;

inline constexpr gs::nn::transformer_options model{
    .encoder_layers = 6, .decoder_layers = 6, .dropout = 0, .moe = {gs::capacity{2}, gs::second_expert::always}};

inline constexpr auto training_step = [](auto& m, auto source, auto target_in, auto target_out, auto rate) {
  gs::nn::routing_summary routing;
  const auto table = m.param("embedding", "VM", gs::init::fan_in("M"));
  const auto source_mask = gs::nn::real_tokens(m, source), target_mask = gs::nn::real_tokens(m, target_in);
  const auto memory = gs::nn::encode<"expert">(m.scope("encoder"), table, source, source_mask, model, routing);
  const auto y = gs::nn::decode<"expert">(m.scope("decoder"), table, target_in, target_mask, memory, source_mask, model, routing);
  const auto loss = gs::mean(gs::cross_entropy(gs::einsum<"GBTM,VM->GBTV">(y, table), target_out, 0.1));
  gs::adam{}.minimize(m, loss + 0.01 * m.auxiliary(), rate);
  return loss;
};
template <gs::fixed_string Letters>
using ids = gs::in<Letters, gs::P<"expert", gs::none, gs::none>, std::int32_t>;
template <class... Options>
using program = gs::program<training_step, mesh, ids<"GBS">, ids<"GBT">, ids<"GBT">, gs::in<"">, Options...>;

constexpr std::int64_t vocabulary = 8192, sequences = 32, length = 32;

template <class Program>
void run(const char* side, const gs::cluster<mesh>& on, int steps, bool prints, bool is_first) {
  const std::int64_t groups = on.extent(0);
  gs::executable<Program> step(on, {{'G', groups}, {'B', sequences / groups}, {'S', length}, {'T', length}, {'M', 256}, {'H', 8}, {'D', 32}, {'F', 1024},
                                    {'E', 8}, {'V', vocabulary}, {'L', length}});
  std::vector<std::int32_t> source, target, next;
  for (std::uint64_t i = 0; i < std::uint64_t(sequences * length); ++i) {
    const auto draw = [&](std::uint64_t key) { return std::int32_t(1 + gs::fnv1a<std::uint64_t>().add(i).add(key).value() % (vocabulary - 1)); };
    source.push_back(draw(1));
    target.push_back(draw(2));
    next.push_back(draw(3));
  }
  const std::vector<float> rate{1e-3f};
  std::vector<double> losses;
  const auto once = [&] { losses.push_back(double(step(source, target, next, rate).local_shard(0).data[0])); };
  std::vector<bench::side> sides{{side, once}};
  bench::compare("transformer step, " + std::to_string(groups) + " ranks", sides, steps, prints);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  if (!prints) return;
  std::printf("{\"case\": \"transformer loss, %d ranks\", \"side\": \"%s\", \"first\": %.4f, \"last\": %.4f}\n", int(groups), side,
              losses.front(), losses.back());
  if (is_first)  // what runs later in this process holds at least as much
    std::printf("{\"case\": \"transformer memory, %d ranks\", \"side\": \"%s\", \"peak MiB\": %.0f}\n", int(groups), side,
                double(used.ru_maxrss) / 1024);
}

void run_all(const gs::cluster<mesh>& on, int steps, bool prints) {
  run<program<>>("gshard", on, steps, prints, true);
  run<program<gs::bf16_products>>("gshard, bf16", on, steps, prints, false);
  if (prints)
    std::printf("{\"case\": \"transformer step, %d ranks\", \"side\": \"gshard, bf16\", \"products\": \"%s\"}\n", int(on.extent(0)),
                gs::name(gs::bf16_unit_in_use()).data());
}

}  // namespace

int main(int count, char** arguments) {
  const int steps = count > 1 ? std::atoi(arguments[1]) : 9;
#if GSHARD_HAS_MPI
  MPI_Init(&count, &arguments);
  int ranks = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (ranks > 1) run_all(gs::on_mpi<mesh>(MPI_COMM_WORLD), steps, rank == 0);
  else run_all(gs::on_one_device<mesh>(), steps, true);
  MPI_Finalize();
#else
  run_all(gs::on_one_device<mesh>(), steps, true);
#endif
}
