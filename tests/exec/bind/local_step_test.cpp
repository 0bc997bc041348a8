// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What single steps compute, on one device; tests/exec/every_sharding_*.cpp hold the other layouts against
// that.
#include <gshard/exec/bind/local_step.hpp>

#include "../run_graph.hpp"

#include <gshard/trace/einsum.hpp>
#include <gshard/trace/embedding.hpp>
#include <gshard/trace/map.hpp>
#include <gshard/trace/random.hpp>
#include <gshard/trace/rows.hpp>
#include <gshard/trace/shape.hpp>

namespace gs = gshard;
using gs::symbol;
using run_graph::array, run_graph::arrays;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

arrays run(const std::vector<run_graph::input>& inputs, const gs::dims& dims, const arrays& values,
           const std::function<symbols(const scope&, given)>& f) {
  const run_graph::traced t = run_graph::trace(inputs, f);
  return run_graph::run(t, run_graph::serial(t, dims), values);
}

}  // namespace

TEST_CASE("einsum contracts, broadcasts, transposes and takes diagonals") {
  const arrays y = run({{"AB"}, {"BC"}, {"AA"}}, {{'A', 2}, {'B', 3}, {'C', 1}},
                       {{1, 2, 3, 4, 5, 6}, {1, 10, 100}, {7, 8, 9, 10}}, [](const scope&, given x) {
                         return symbols{gs::einsum<"ab,bc->ca">(x[0], x[1]), gs::einsum<"ab->ba">(x[0]),
                                        gs::einsum<"ab,cd->c">(x[0], x[2]), gs::einsum<"aa->a">(x[2])};
                       });
  CHECK(y == arrays{{321, 654}, {1, 4, 2, 5, 3, 6}, {21 * 15, 21 * 19}, {7, 10}});
}

TEST_CASE("scale by constants, powers of extents, and one over the extents that were summed") {
  const arrays y =
      run({{"AB"}}, {{'A', 2}, {'B', 4}, {'D', 16}}, {{1, 2, 3, 4, 5, 6, 7, 8}}, [](const scope&, given x) {
        return symbols{-2.0 * x[0], gs::scale_by<"D">(x[0], -0.5), gs::mean<"AB->A">(x[0]), gs::mean(x[0])};
      });
  CHECK(y == arrays{{-2, -4, -6, -8, -10, -12, -14, -16},
                    {0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2},
                    {2.5, 6.5},
                    {4.5}});
}

TEST_CASE("a reshape to dims of another product is refused when it is bound") {
  const auto split = [](std::int64_t second) {
    run({{"A"}}, {{'A', 6}, {'B', 2}, {'C', second}}, {{1, 2, 3, 4, 5, 6}}, [](const scope&, given x) { return symbols{gs::split_dim<0>(x[0], "BC")}; });
  };
  CHECK_NOTHROW(split(3));
  CHECK_THROWS_WITH_AS(split(4), "reshape: a tensor of 6 elements cannot have dims of 8", gs::error);
}

TEST_CASE("casts truncate and round as C++ does") {
  const arrays y = run({{"A"}, {"A", gs::dtype::i32, 'A'}}, {{'A', 3}}, {{1.75, -1.75, 0.1}, {2, 0, 1}},
                       [](const scope&, given x) {
                         return symbols{gs::cast<std::int32_t>(x[0]), gs::cast<float>(x[0]),
                                        gs::cast<double>(x[1]), gs::cast<double>(gs::cast<float>(x[0]))};
                       });
  CHECK(y == arrays{{1, -1, 0}, {1.75, -1.75, double(0.1f)}, {2, 0, 1}, {1.75, -1.75, double(0.1f)}});
}

TEST_CASE("iota counts along either dim") {
  const arrays y = run({}, {{'A', 2}, {'B', 3}}, {}, [](const scope& m, given) {
    return symbols{gs::iota<"AB">(m), gs::iota<"AB">(m, 1)};
  });
  CHECK(y == arrays{{0, 0, 0, 1, 1, 1}, {0, 1, 2, 0, 1, 2}});
}

TEST_CASE("gather, cross_entropy and reduce_max") {
  const arrays y = run({{"AB"}, {"C", gs::dtype::i32, 'A'}}, {{'A', 2}, {'B', 2}, {'C', 3}},
                       {{1, 1, 3, 4}, {1, 1, 0}}, [](const scope&, given x) {
                         const symbol rows = gs::gather(x[0], x[1]);
                         return symbols{rows, gs::cross_entropy(rows, x[1]), gs::reduce_max<"ca->a">(rows)};
                       });
  CHECK(y[0] == array{3, 4, 3, 4, 1, 1});
  CHECK(y[1][0] == doctest::Approx(std::log(1 + std::exp(-1.0))).epsilon(1e-14));
  CHECK(y[1][2] == doctest::Approx(std::log(2.0)).epsilon(1e-14));
  CHECK(y[2] == array{3, 4});
}

TEST_CASE(
    "dropout keeps, scaled, what is not dropped; the step and the place in the program matter, the seed "
    "too") {
  const run_graph::traced t = run_graph::trace({{"A"}}, [](const scope&, given x) {
    return symbols{gs::dropout(x[0], 0.25), gs::dropout(x[0], 0.25)};
  });
  const gs::dims dims{{'A', 4000}};
  const arrays ones{array(4000, 1.0)};
  const auto at = [&](std::uint64_t seed, std::uint32_t step) {
    run_graph::setting s = run_graph::serial(t, dims);
    s.context = {seed, step};
    return run_graph::run(t, s, ones);
  };
  const arrays y = at(1, 0);
  std::ptrdiff_t kept = 0;
  for (const double v : y[0]) {
    CHECK((v == 0 || v == doctest::Approx(4.0 / 3)));
    kept += v != 0;
  }
  CHECK(double(kept) / 4000 == doctest::Approx(0.75).epsilon(0.05));
  CHECK(y[0] != y[1]);
  CHECK(at(1, 0) == y);
  CHECK(at(1, 1)[0] != y[0]);
  CHECK(at(2, 0)[0] != y[0]);
}
