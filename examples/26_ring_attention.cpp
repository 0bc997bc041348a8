// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Causal attention over a sequence that is sharded over four devices: blocks of keys and values move around the ring.
#include <gshard/gshard.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <tuple>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::in;
using ring = gs::mesh<gs::axis<"seq", 4>>;
using one = gs::mesh<gs::axis<"seq", 1>>;

inline constexpr auto around = [](auto&, auto q, auto k, auto v) { return gs::nn::ring_attention<"seq">(q, k, v, {.causal = true}); };
inline constexpr auto attend = [](auto&, auto q, auto k, auto v) { return gs::attention(q, k, v, {.causal = true}); };
inline constexpr auto gradients = [](auto& m, auto q, auto k, auto v) {
  const auto y = around(m, q, k, v);
  const auto d = gs::gradients(gs::sum(y * y), std::array{q, k, v});
  return std::tuple{d[0], d[1], d[2]};
};

using sharded = in<"B,T@seq,H,D">;
using replicated = in<"B,T,H,D">;
using forward = gs::program<around, ring, sharded, sharded, sharded>;
using training = gs::program<gradients, ring, sharded, sharded, sharded>;
using on_one_device = gs::program<attend, one, replicated, replicated, replicated>;

// The only communication: k and v move on three times, and their gradients in the backward pass.
static_assert(forward::plan.count(op::collective_permute) == 2 * 3 && forward::plan.collectives() == 2 * 3);
static_assert(training::plan.count(op::collective_permute) == 4 * 3 && training::plan.collectives() == 4 * 3);

int main() {
  std::cout << "shifts forward " << forward::plan.count(op::collective_permute) << ", with gradients "
            << training::plan.count(op::collective_permute) << '\n';
  constexpr std::size_t B = 1, T = 64, H = 2, D = 16;
  const gs::dims sizes{{'B', B}, {'T', T}, {'H', H}, {'D', D}};
  const auto numbers = [](float phase) {
    std::vector<float> x(B * T * H * D);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(phase + 1.7f * float(i));
    return x;
  };
  gs::executable<forward> f(gs::simulate<ring>(4), sizes);
  gs::executable<on_one_device> g(gs::on_one_device<one>(), sizes);
  const std::vector<float> y = gs::to_global(f(numbers(0), numbers(1), numbers(2)));
  const std::vector<float> expected = gs::to_global(g(numbers(0), numbers(1), numbers(2)));
  float largest = 0;
  for (std::size_t i = 0; i < y.size(); ++i) largest = std::fmax(largest, std::fabs(y[i] - expected[i]));
  std::cout << "equal to attention on one device: " << (largest < 1e-5f ? "yes" : "no") << '\n';
}
