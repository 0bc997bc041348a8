// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory and time of a training step of 12 + 12 Transformer layers, a mixture of experts in every second one, with and without remat. The
// losses of all sides are compared to the bit.
// usage: [mpirun -n 2] bench_remat [steps]
#include <gshard/gshard.hpp>

#include "timing.hpp"
#include "transformer_program.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace gs = gshard;

namespace {

using mesh = bench::expert_mesh;

template <gs::remat_policy Saved>
inline constexpr gs::nn::transformer_options model{.encoder_layers = 12, .decoder_layers = 12, .dropout = 0.1, .moe = {}, .saved = Saved};
template <gs::remat_policy Saved>
using program = calibrate::transformer_program<model<Saved>>;

constexpr std::int64_t vocabulary = 4096, sequences = 16, length = 128;

/// A training step with a policy, with its own parameters.
template <gs::remat_policy Saved>
class trainer {
 public:
  explicit trainer(const gs::cluster<mesh>& on)
      : step_(on, {{'G', on.extent(0)}, {'B', sequences / on.extent(0)}, {'S', length}, {'T', length}, {'M', 256}, {'H', 8}, {'D', 32},
                   {'F', 1024}, {'E', 8}, {'V', vocabulary}, {'L', length}}, gs::parameter_store(on, 1)) {
    step_.seed = 1;
  }
  void run() { losses_.push_back(step_(tokens_[0], tokens_[1], tokens_[2], rate_).local_shard(0).data[0]); }
  const std::vector<float>& losses() const { return losses_; }
  std::int64_t activations() const { return step_.executor().arena_bytes(); }
  /// The bytes of parameters and optimizer state.
  std::int64_t parameters() const {
    std::int64_t bytes = 0;
    for (const gs::parameter& p : step_.executor().plan().parameters) bytes += step_.executor().value(p.value).bytes(0);
    return bytes;
  }

 private:
  std::array<std::vector<std::int32_t>, 3> tokens_ = bench::random_tokens(sequences * length, vocabulary);
  std::vector<float> rate_{1e-3f};
  gs::executable<program<Saved>> step_;
  std::vector<float> losses_;
};

void run_all(const gs::cluster<mesh>& on, int steps, bool prints) {
  trainer<gs::remat_policy::everything> everything(on);
  trainer<gs::remat_policy::nothing> nothing(on);
  trainer<gs::remat_policy::products> products(on);
  std::vector<bench::side> sides{{"kept", [&] { everything.run(); }},
                                 {"remat", [&] { nothing.run(); }},
                                 {"remat, products kept", [&] { products.run(); }}};
  bench::compare("12 + 12 layers, " + std::to_string(on.extent(0)) + " ranks", sides, steps, prints);
  if (!prints) return;
  const auto report = [&](const char* side, const auto& t) {
    std::printf("{\"case\": \"12 + 12 layers, %d ranks\", \"side\": \"%s\", \"activations MiB\": %.1f, "
                "\"with parameters MiB\": %.1f, \"same bits\": %s}\n",
                int(on.extent(0)), side, double(t.activations()) / (1 << 20), double(t.activations() + t.parameters()) / (1 << 20),
                t.losses() == everything.losses() ? "true" : "false");
  };
  report("kept", everything);
  report("remat", nothing);
  report("remat, products kept", products);
}

}  // namespace

int main(int count, char** arguments) {
  const int steps = count > 1 ? std::atoi(arguments[1]) : 5;
  bench::on_all_ranks<mesh>(count, arguments, [&](const gs::cluster<mesh>& on, bool prints) { run_all(on, steps, prints); });
}
