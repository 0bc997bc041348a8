// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A training step of an encoder-decoder Transformer with a mixture of experts in every second layer, 35 million parameters with the
// defaults: loss, gradients, Adam. On one device, or on the ranks that mpirun starts.
// usage: [mpirun -n 2] bench_transformer_step [steps]
#include <gshard/gshard.hpp>

#include "timing.hpp"
#include "transformer_program.hpp"

#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace gs = gshard;

namespace {

using mesh = bench::expert_mesh;
template <class... Options>
using program = bench::transformer_program<6, Options...>;

constexpr std::int64_t vocabulary = 8192, sequences = 32, length = 32;

template <class Program>
void run(const char* side, const gs::cluster<mesh>& on, int steps, bool prints, bool is_first) {
  const std::int64_t groups = on.extent(0);
  gs::executable<Program> step(on, {{'G', groups},
                                    {'B', sequences / groups},
                                    {'S', length},
                                    {'T', length},
                                    {'M', 256},
                                    {'H', 8},
                                    {'D', 32},
                                    {'F', 1024},
                                    {'E', 8},
                                    {'V', vocabulary},
                                    {'L', length}});
  const auto tokens = bench::random_tokens(sequences * length, vocabulary);
  const std::vector<float> rate{1e-3f};
  std::vector<double> losses;
  const auto once = [&] { losses.push_back(double(step(tokens[0], tokens[1], tokens[2], rate).local_shard(0).data[0])); };
  std::vector<bench::side> sides{{side, once}};
  bench::compare("transformer step, " + std::to_string(groups) + " ranks", sides, steps, prints);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  if (!prints) return;
  std::printf("{\"case\": \"transformer loss, %d ranks\", \"side\": \"%s\", \"first\": %.4f, \"last\": %.4f}\n", int(groups), side,
              losses.front(), losses.back());
  if (is_first)  // the peak of later runs in this process cannot be smaller
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
  bench::on_all_ranks<mesh>(count, arguments, [&](const gs::cluster<mesh>& on, bool prints) { run_all(on, steps, prints); });
}
