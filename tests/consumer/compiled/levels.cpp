// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A user's program. It trains a layer for some steps, and prints the level of its kernels, the bits of the results, and an error of a
// kernel. With an argument, it resumes from the checkpoints in this directory, and saves one.
#include <gshard/gshard.hpp>
#if defined(WITH_SURVIVE)
#include <gshard/survive.hpp>
#endif

#include <bit>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::none;
using gs::P;

constexpr auto step = [](auto& m, auto x, auto rate) {
  const auto up = m.param("up", "MH", P<none, "x">{}, gs::init::fan_in("M"));
  const auto down = m.param("down", "HM", P<"x", none>{}, gs::init::fan_in("H"));
  const auto y = gs::softmax(gs::einsum<"BH,HM->BM">(gs::relu(gs::einsum<"BM,MH->BH">(x, up)), down));
  const auto loss = gs::sum((y - x) * (y - x));
  gs::adam{}.minimize(m, loss, rate);
  return y;
};
using mesh = gs::mesh<gs::axis<"x">>;
using program = gs::program<step, mesh, gs::in<"BM">, gs::in<"">>;
constexpr auto lookup = [](auto& m, auto ids) { return gs::gather(m.param("table", "VM", P<none, "x">{}, gs::init::fan_in("V")), ids); };
using lookups = gs::program<lookup, mesh, gs::in<"B", void, std::int32_t>>;

// The library has its own NDEBUG, but the program's decides.
#if defined(NDEBUG)
constexpr std::uint32_t expected_check_replicas_every = 0;
#else
constexpr std::uint32_t expected_check_replicas_every = 100;
#endif

int main(int argc, char** argv) {
#if GSHARD_HAS_MPI
  MPI_Init(&argc, &argv);
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
#else
  const auto on = gs::simulate<mesh>(2);
#endif
  {
    gs::executable<program> train(on, {{'B', 24}, {'M', 40}, {'H', 72}});
    if (train.check_replicas_every != expected_check_replicas_every) return 2;
#if defined(WITH_SURVIVE)
    std::optional<gs::checkpointer> checkpoints;
    if (argc > 1) checkpoints.emplace(train.executor().store(), argv[1]).resume();
#else
    static_cast<void>(argc), static_cast<void>(argv);
#endif
    std::vector<float> x(24 * 40);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i * 7919 % 1000) / 1000;
    const std::vector<float> rate{0.01f};
    std::uint64_t bits = 14695981039346656037u;  // FNV-1a
    for (int i = 0; i < 5; ++i)
      for (const float y : gs::to_global(train(x, rate))) bits = (bits ^ std::bit_cast<std::uint32_t>(y)) * 1099511628211u;
#if defined(WITH_SURVIVE)
    if (checkpoints) checkpoints->save();
#endif
    std::string error;
    try {
      gs::executable<lookups>(on, {{'B', 3}, {'V', 5}, {'M', 4}})(std::vector<std::int32_t>{1, 9, 2});
    } catch (const gs::error& e) {
      error = e.what();
    }
    if (on.backend().devices()[0] == 0)
      std::printf("level %d, bits %016llx, %s\n", int(on.backend().level()), static_cast<unsigned long long>(bits), error.c_str());
  }
#if GSHARD_HAS_MPI
  MPI_Finalize();
#endif
}
