// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/user/custom_kernel.hpp>

#include "../../exec/bind/serial_run.hpp"

#include <cstdint>
#include <string_view>

namespace gs = gshard;
using run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

namespace {
/// y[a] = sum over b of x[a,b] * w[b].
struct weighted_sum {
  static constexpr std::string_view name = "weighted_sum", rule = "AB,B->A", sums = "B";
  template <class T>
  static void run(gs::local_shard<const T> x, gs::local_shard<const T> w, gs::local_shard<T> y) {
    for (std::int64_t a = 0; a < y.size(); ++a) {
      y.data[a] = 0;
      for (std::int64_t b = 0; b < w.size(); ++b) y.data[a] += x.data[a * w.size() + b] * w.data[b];
    }
  }
};
}  // namespace

TEST_CASE("an operation of the user gets the shards of its operands and of its result") {
  const arrays y = serial_run({{"AB"}, {"B"}}, {{'A', 2}, {'B', 3}}, {{1, 2, 3, 4, 5, 6}, {1, 10, 100}}, [](const scope&, given x) {
    return symbols{gs::custom<weighted_sum>(x[0], x[1])};
  });
  CHECK(y == arrays{{321, 654}});
}
