// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/user/call_on_shards_kernel.hpp>

#include "../../exec/bind/serial_run.hpp"

#include <gshard/core/trace/shape.hpp>

#include <cstdint>

namespace gs = gshard;
using run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

namespace {
/// The elements of x, the last first.
constexpr auto backwards = []<class T>(gs::local_shard<const T> x, gs::local_shard<T> y) {
  for (std::int64_t i = 0; i < y.size(); ++i) y.data[i] = x.data[y.size() - 1 - i];
};
}  // namespace

TEST_CASE("a function of shards gets the shards of its operands and of its result") {
  const arrays y = serial_run({{"A"}}, {{'A', 3}}, {{1, 2, 3}}, [](const scope&, given x) {
    return symbols{gs::call_on_shards<backwards, "A", gs::P<gs::none>>(gs::annotate<gs::P<gs::none>>(x[0]))};
  });
  CHECK(y == arrays{{3, 2, 1}});
}
