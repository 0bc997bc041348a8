// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The overhead of gshard around its kernels: a step of a plan, the call of a program, and an operation outside of programs, on tiny data.
// usage: bench_overhead [rounds]
#include <gshard/gshard.hpp>

#include "timing.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
constexpr int calls = 20000;      // calls per run, as one call takes less than a microsecond
constexpr std::int64_t edge = 8;  // the extent of the matrices' dims

/// Two kinds of steps in turn, so that no compiler can merge them.
inline constexpr auto chain = [](auto&, auto x) {
  for (int i = 0; i < 100; ++i) x = gs::softmax(gs::map<[](auto v) { return v + 1; }>(x));
  return x;
};
using many_steps = gs::program<chain, mesh, gs::in<"A">>;
inline constexpr auto one = [](auto&, auto x) { return gs::softmax(x); };
using one_step = gs::program<one, mesh, gs::in<"A">>;

gs::kernel::operand_dims square(int rows, int columns) {
  gs::kernel::operand_dims d;
  d.rank = 2;
  d.factor = {rows, columns};
  d.extent = {edge, edge};
  return d;
}

double nanoseconds(const bench::side& s, int times) { return 1e9 * bench::median(s.seconds) / times; }

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 9;
  const auto on = gs::on_one_device<mesh>();
  const std::vector<float> numbers(std::size_t(edge * edge), 0.5f), number{1.0f};

  gs::executable<many_steps> many(on, {{'A', 1}});
  gs::executable<one_step> single(on, {{'A', 1}});
  many(number);
  single(number);

  const auto a = gs::from_global<float, P<none, none>>(on, {edge, edge}, numbers), b = gs::from_global<float, P<none, none>>(on, {edge, edge}, numbers);
  gs::tensor<float, P<none, none>> c(on, {edge, edge});
  const gs::kernel::contraction<float> product(square(0, 1), square(1, 2), square(0, 2));

  const auto repeat = [](auto f) {
    return [f] {
      for (int i = 0; i < calls; ++i) f();
    };
  };
  constexpr int runs = 100;
  const auto sides = bench::compare(
      "overhead, " + std::to_string(calls) + " calls",
      {{"plan", [&] { for (int i = 0; i < runs; ++i) many.executor().run({}); }},
       {"run of one step", repeat([&] { single.executor().run({}); })},
       {"call of one step", repeat([&] { single(number); })},
       {"kernel of 8x8 einsum", repeat([&] { product.run(a.local_shard(0).data, b.local_shard(0).data, c.local_shard(0).data); })},
       {"8x8 einsum", repeat([&] { gs::einsum<"AB,BC->AC">(a, b); })},
       {"8x8 tensor", repeat([&] { gs::tensor<float, P<none, none>>(on, {edge, edge}); })}},
      rounds, false);
  const double kernel = nanoseconds(sides[3], calls);
  std::printf("{\"case\": \"overhead\", \"side\": \"gshard\", \"ns per plan step\": %.0f, \"ns per run of a step\": %.0f, "
              "\"ns per call of a step\": %.0f, \"ns of the kernel of an 8x8 einsum\": %.0f, \"ns of 8x8 einsum over its kernel\": %.0f, "
              "\"ns per 8x8 tensor\": %.0f}\n",
              nanoseconds(sides[0], runs * int(many_steps::plan.steps.size())), nanoseconds(sides[1], calls), nanoseconds(sides[2], calls),
              kernel, nanoseconds(sides[4], calls) - kernel, nanoseconds(sides[5], calls));
}
