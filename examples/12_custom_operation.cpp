// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Your own operation: its rule in letters, its kernel on shards, and its gradient made of verbs. The planner treats it as a built-in one.
#include <gshard/gshard.hpp>
#include <gshard/sim/report/describe.hpp>

#include <iostream>
#include <string_view>
#include <tuple>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::in;
using mesh = gs::mesh<gs::axis<"x">>;

// y[b, n] = sum over m of (x[b, m] - c[n, m])^2
struct squared_distance {
  static constexpr std::string_view name = "squared_distance";
  static constexpr std::string_view rule = "BM,NM->BN";
  static constexpr std::string_view sums = "M";  // partial sums over shards of M add up, so M may be sharded
  static constexpr double flops = 3;             // flops per index of the rule, for auto_shard and dry runs

  template <class T>
  static void run(gs::local_shard<const T> x, gs::local_shard<const T> c, gs::local_shard<T> y) {
    const auto rows = x.extent(0), columns = c.extent(0), width = x.extent(1);
    for (std::int64_t b = 0; b < rows; ++b)
      for (std::int64_t n = 0; n < columns; ++n) {
        T sum = 0;
        for (std::int64_t m = 0; m < width; ++m) {
          const T d = x.data[b * width + m] - c.data[n * width + m];
          sum += d * d;
        }
        y.data[b * columns + n] = sum;
      }
  }

  // dx[b, m] = sum over n of 2 (x[b, m] - c[n, m]) dy[b, n], and dc likewise.
  static constexpr auto gradient(gs::symbol x, gs::symbol c, gs::symbol /*y*/, gs::symbol dy) {
    const auto of_x = gs::broadcast<"B,BM->BM">(gs::sum<"BN->B">(dy), x), of_c = gs::broadcast<"N,NM->NM">(gs::sum<"BN->N">(dy), c);
    return std::tuple{2 * (x * of_x - gs::einsum<"BN,NM->BM">(dy, c)), 2 * (c * of_c - gs::einsum<"BN,BM->NM">(dy, x))};
  }
};

// Moves the centers towards the points: the sum of all distances is the loss.
inline constexpr auto training_step = [](auto& m, auto points, auto rate) {
  auto centers = m.param("centers", "NM", gs::init::normal(1));
  auto loss = gs::mean(gs::custom<squared_distance>(points, centers));
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using training = gs::program<training_step, mesh, in<"B,M@x">, in<"">>;

// M is sharded, as the points are: the distances are a partial sum, completed by one all_reduce.
inline constexpr auto distances = [](auto&, auto x, auto c) { return gs::custom<squared_distance>(x, c); };
using sharded = gs::program<distances, mesh, in<"B,M@x">, in<"N,M@x">>;
static_assert(sharded::plan.count(op::all_reduce) == 1 && sharded::plan.collectives() == 1);

int main() {
  std::cout << gs::describe(sharded::plan);
  gs::executable<training> train(gs::simulate<mesh>(4), {{'B', 12}, {'M', 6}, {'N', 2}});
  const std::vector<float> points(12 * 6, 3.0f), rate(1, 0.1f);
  float loss = 0;
  for (int i = 0; i < 200; ++i) loss = train(points, rate).item();
  std::cout << "the centers have reached the points: " << (loss < 1e-3f ? "yes" : "no") << '\n';
}
