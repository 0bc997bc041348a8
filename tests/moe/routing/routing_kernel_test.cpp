// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/routing/routing_kernel.hpp>

#include "../../exec/kernel/gating_reference.hpp"
#include "../../exec/kernel/support.hpp"

namespace {

using namespace gating_reference;
using test::inner;
using test::random_values;

bool near(const std::vector<double>& a, const std::vector<double>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) same = std::abs(a[i] - b[i]) < 1e-12;
  return same;
}

}  // namespace

TEST_CASE("dispatch, combine: random routings against the einsums of Algorithm 2") {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    random_case c = make_case(seed);
    c.n.choices = 1 + seed % 5;
    const auto [G, S, E, C, K] = c.n;
    std::mt19937 gen(seed + 1);
    const auto pick = [&](std::int64_t low, std::int64_t high) { return test::pick(gen, low, high); };
    std::vector<std::int32_t> slot(at(G * S * K));
    std::vector<double> weight(slot.size());
    ks::top_k_gating<double>(c.gates.data(), c.mask.data(), slot.data(), weight.data(), nullptr, nullptr,
                            nullptr, nullptr, c.n, c.random, c.key, c.group_offset);
    const std::vector<double> dense =
        algorithm1(c.gates, c.mask, c.n, c.random, c.key, c.group_offset).combine;  // [G,S,E,C]

    const std::int64_t M = pick(0, 40), E0 = pick(0, E), En = pick(0, E - E0);
    const bool weighted = pick(0, 1) == 0;
    const double* w = weighted ? weight.data() : nullptr;
    const auto one_hot_at = [&](std::int64_t g, std::int64_t s, std::int64_t e, std::int64_t k) {
      const double v = dense[at(((g * S + s) * E + E0 + e) * C + k)];
      return weighted ? v : v != 0 ? 1.0 : 0.0;
    };
    ks::expert_buffers<double> b{nullptr, G * C * M, C * M, M, E0, En, M};  // EGCM
    if (pick(0, 1) == 0) b.stride_e = C * M, b.stride_g = En * C * M;       // GECM
    const auto row = [&](std::int64_t e, std::int64_t g, std::int64_t k) {
      return at(e * b.stride_e + g * b.stride_g + k * b.stride_c);
    };

    const auto x = random_values(G * S * M, gen), h = random_values(En * G * C * M, gen);
    std::vector<double> in(h.size(), 7), expected_in(h.size()), y(x.size(), 7), expected_y(x.size());
    std::vector<double> one(at(G * S * En * C), 7), expected_one;
    for (std::int64_t g = 0; g < G; ++g)
      for (std::int64_t s = 0; s < S; ++s)
        for (std::int64_t e = 0; e < En; ++e)
          for (std::int64_t k = 0; k < C; ++k) {
            const double v = one_hot_at(g, s, e, k);
            expected_one.push_back(v);
            for (std::int64_t m = 0; m < M; ++m) {
              expected_in[row(e, g, k) + at(m)] += v * x[at((g * S + s) * M + m)];
              expected_y[at((g * S + s) * M + m)] += v * h[row(e, g, k) + at(m)];
            }
          }
    b.data = in.data();
    ks::dispatch(slot.data(), w, x.data(), b, c.n);
    CHECK(near(in, expected_in));
    const ks::expert_buffers<const double> from{h.data(), b.stride_e, b.stride_g, b.stride_c, E0, En, M};
    ks::combine(slot.data(), w, from, y.data(), c.n);
    CHECK(near(y, expected_y));
    ks::one_hot(slot.data(), w, one.data(), c.n, E0, En);
    CHECK(one == expected_one);

    // dispatch and combine are each other's transposes; the weights' derivatives are inner products
    CHECK(inner(in, h) == doctest::Approx(inner(x, y)));
    std::vector<double> dweight(weight.size(), 7);
    const auto dy = random_values(G * S * M, gen), d = random_values(G * S * En * C, gen);
    const auto check_derivative = [&](auto loss) {
      for (std::size_t i = 0; i < weight.size(); ++i) {
        const double before = weight[i], step = 0.25;  // linear: any step size works
        weight[i] = before + step;
        const double up = loss();
        weight[i] = before - step;
        const double down = loss();
        weight[i] = before;
        CHECK(dweight[i] == doctest::Approx((up - down) / (2 * step)));
      }
    };
    ks::combine_weight_grad(slot.data(), from, dy.data(), dweight.data(), c.n);
    check_derivative([&] {
      ks::combine(slot.data(), weight.data(), from, y.data(), c.n);
      return inner(dy, y);
    });
    ks::one_hot_grad(slot.data(), d.data(), dweight.data(), c.n, E0, En);
    check_derivative([&] {
      ks::one_hot(slot.data(), weight.data(), one.data(), c.n, E0, En);
      return inner(d, one);
    });
  }
}
