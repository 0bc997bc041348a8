// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Three training steps of a mixture of experts, planned by the compiler, on simulated devices and on two MPI ranks, with an xtensor input;
// and a gradient of complex tensors.
// Prints versions behind '#', and digits that do not depend on them. Run by tests/compatibility.sh.
#include <gshard/exec/tensor/xtensor.hpp>
#include <gshard/gshard.hpp>
#include <gshard/report.hpp>

#include <mpi.h>

#include <Eigen/Core>
#include <array>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert">>;

inline constexpr auto training_step = [](auto& m, auto x, auto wanted, auto mask, auto rate) {
  auto [y, load, overflow, demand] = gs::nn::moe<"expert">(m.scope("moe"), x, mask, {.routing = {.slots = {2.0}}});
  auto error = x + gs::nn::norm(m.scope("norm"), y) - wanted;
  gs::adam{}.minimize(m, m.objective(gs::mean(error * error), 0.01), rate);
  return std::tuple{gs::mean(error * error), y, load};
};
using groups = P<gs::axes<"data", "expert">, none, none>;
using step = gs::program<training_step, mesh, gs::in<"GSM", groups>, gs::in<"GSM", groups>,
                         gs::in<"GS", P<gs::axes<"data", "expert">, none>>, gs::in<"">>;
static_assert(step::plan.count(gs::op::all_to_all) == 3);

// A transfer of spectral weights between complex modes, stored in half precision, and its gradient.
inline constexpr auto transfer = [](auto&, auto z, auto w) {
  auto y = gs::einsum<"NI,NJ->IJ">(gs::conj(z), z * gs::complex(gs::cast<double>(w), -1.0 * gs::cast<double>(w)));
  auto energy = gs::sum(gs::real(y * gs::conj(y)));
  return std::tuple{energy, gs::gradients(energy, std::array{z})[0]};
};
using spectrum = gs::program<transfer, mesh, gs::in<"NI", P<"expert", none>, std::complex<double>>, gs::in<"N", P<"expert">, gs::half>>;

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#ifdef EIGEN_VERSION_STRING  // since Eigen 5
constexpr const char* eigen_version = EIGEN_VERSION_STRING;
#else
constexpr const char* eigen_version = TEXT(EIGEN_WORLD_VERSION) "." TEXT(EIGEN_MAJOR_VERSION) "." TEXT(EIGEN_MINOR_VERSION);
#endif

constexpr int G = 4, S = 12, M = 8;

std::vector<float> train(const gs::cluster<mesh>& cluster) {
  gs::parameter_store store(cluster, 7);
  gs::executable<step> run(cluster, {{'G', G}, {'S', S}, {'M', M}, {'E', 4}, {'F', 16}}, store);
  xt::xarray<float> x = xt::xarray<float>::from_shape({std::size_t(G), std::size_t(S), std::size_t(M)});
  std::vector<float> mask(G * S, 1.0f), rate(1, 0.01f), digits;
  mask.back() = 0;
  for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = float((i * 37) % 19) / 16 - 0.5f;
  for (int i = 0; i < 3; ++i) {
    const auto [loss, y, load] = run(x, 0.25f * x + 1.0f, mask, rate);  // an array, and an expression without memory
    digits.push_back(loss.item());
    for (const float v : gs::to_global(load)) digits.push_back(v);
    float sum = 0;
    for (const float v : gs::to_global(y)) sum += v;
    digits.push_back(sum);
    const auto shard = gs::as_xtensor(y.local_shard(0));
    digits.push_back(shard(0, 1, 2));
  }
  std::vector<std::complex<double>> z(12);
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = {double(i % 5) / 4, double(i % 3) - 1};
  const std::vector<gs::half> w{gs::half(1.0f), gs::half(0.5f), gs::half(-2.0f), gs::half(0.25f)};
  gs::executable<spectrum> run_spectrum(cluster, {{'N', 4}, {'I', 3}});
  const auto [energy, gradient] = run_spectrum(z, w);
  digits.push_back(float(energy.item()));
  for (const std::complex<double> g : gs::to_global(gradient)) digits.insert(digits.end(), {float(g.real()), float(g.imag())});
  return digits;
}

void print(const char* devices, const std::vector<float>& digits) {
  std::printf("%s:", devices);
  for (const float v : digits) std::printf(" %.9g", double(v));
  std::printf("\n");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool same = true;
  {
    const auto ranks = gs::on_mpi<mesh>(MPI_COMM_WORLD, {1, 2});
    const std::vector<float> on_ranks = train(ranks);
    if (ranks.backend().leader()) {
      char library[MPI_MAX_LIBRARY_VERSION_STRING];
      int length = 0;
      MPI_Get_library_version(library, &length);
      std::printf("# compiler: %s\n# Eigen: %s\n# xtensor: %d.%d.%d\n# MPI: %.*s\n", __VERSION__, eigen_version, XTENSOR_VERSION_MAJOR,
                  XTENSOR_VERSION_MINOR, XTENSOR_VERSION_PATCH, int(std::strcspn(library, "\n")), library);  // only its first line
      std::uint64_t text = 14695981039346656037u;  // FNV-1a
      for (const char c : gs::describe(step::plan)) text = (text ^ std::uint8_t(c)) * 1099511628211u;
      std::printf("plan: %llu\n", static_cast<unsigned long long>(text));
      print("4 simulated devices", train(gs::simulate<mesh>({2, 2})));
      const std::vector<float> simulated = train(gs::simulate<mesh>({1, 2}));
      print("2 simulated devices", simulated);
      print("2 MPI ranks", on_ranks);
      same = on_ranks == simulated;
    }
  }
  MPI_Finalize();
  return same ? 0 : 1;
}
