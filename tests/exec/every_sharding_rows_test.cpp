// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every operation along rows or by index, and its gradient, with any layout of its operands, equal those on one device.
#include "with_gradients.hpp"

#include <gshard/ops/index/dynamic_slice.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/index/one_hot.hpp>
#include <gshard/ops/loop/scan.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/ops/rows/layer_norm.hpp>
#include <gshard/ops/rows/softmax.hpp>
#include <gshard/train/adam.hpp>

#include <cstddef>
#include <limits>

namespace gs = gshard;
using gs::symbol;
using run_graph::every_sharding, run_graph::trace, run_graph::lay_out, run_graph::with_gradients;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

const std::vector<gs::dims> row_sizes{
    {{'A', 6}, {'B', 12}, {'C', 6}}, {{'A', 5}, {'B', 7}, {'C', 3}}, {{'A', 1}, {'B', 2}, {'C', 4}}};

}  // namespace

TEST_CASE("softmax") {
  every_sharding(trace({{"ABC"}, {"ABC"}},
                       [](const scope&, given x) { return with_gradients(gs::softmax(x[0]), x, 1); }),
                 {.dims = row_sizes, .tolerance = 1e-13});
  every_sharding(trace({{"A"}}, [](const scope&, given x) { return symbols{gs::softmax(x[0])}; }),
                 {.dims = row_sizes, .tolerance = 1e-14, .pending_sources = true});
}

TEST_CASE("layer_norm") {
  const auto program = [](const scope&, given x) {
    return with_gradients(gs::layer_norm(x[0], x[1], x[2]), x, 3);
  };
  every_sharding(trace({{"ABC"}, {"C"}, {"C"}, {"ABC"}}, program), {.dims = row_sizes, .tolerance = 1e-12});
  every_sharding(trace({{"A"}, {"A"}, {"A"}, {"A"}}, program), {.dims = row_sizes, .tolerance = 1e-12});
}

TEST_CASE("cross_entropy") {
  for (const double smoothing : {0.0, 0.1}) {
    const auto program = [&](const scope&, given x) {
      return with_gradients(gs::cross_entropy(x[0], x[1], smoothing), x, 1);
    };
    every_sharding(trace({{"ABC"}, {"AB", gs::dtype::i32, 'C', -1}, {"AB"}}, program), {.dims = row_sizes, .tolerance = 1e-13});
    every_sharding(trace({{"C"}, {"", gs::dtype::i32, 'C', -1}, {""}}, program),
                   {.dims = row_sizes, .tolerance = 1e-13, .pending_sources = true});
  }
}

TEST_CASE("the gradient of cross_entropy without the loss") {
  const auto program = [](const scope&, given x) {
    const symbol loss = gs::cross_entropy(x[0], x[1], 0.1);
    return symbols{lay_out(gs::gradients(gs::sum(loss * x[2]), x.first(1))[0])};
  };
  every_sharding(trace({{"AC"}, {"A", gs::dtype::i32, 'C', -1}, {"A"}}, program), {.dims = row_sizes, .tolerance = 1e-13});
}

TEST_CASE("cross_entropy of large and infinite logits") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const auto program = [](const scope&, given x) { return with_gradients(gs::cross_entropy(x[0], x[1]), x, 1); };
  const auto t = trace({{"AC"}, {"A", gs::dtype::i32, 'C', -1}, {"A"}}, program);
  for (const std::size_t weightless : {std::size_t(2), std::size_t(3)})  // with three classes per device: whole blocks of -infinity
    every_sharding(t, {.dims = {{{'A', 3}, {'C', 6}}, {{'A', 4}, {'C', 3}}, {{'A', 2}, {'C', 5}}},
                       .tolerance = 1e-13,
                       .prepare = [=](run_graph::arrays& a) {
                         for (std::size_t i = 0; i < a[0].size(); ++i) a[0][i] = i / 3 % weightless == 0 ? -inf : 1000 * a[0][i];
                       }});
}

TEST_CASE("gather and scatter_add") {
  const auto program = [](const scope&, given x) { return with_gradients(gs::gather(x[0], x[1]), x, 1); };
  every_sharding(trace({{"AC"}, {"B", gs::dtype::i32, 'A'}, {"BC"}}, program), {row_sizes});
  every_sharding(trace({{"AC"}, {"BC", gs::dtype::i32, 'A'}, {"BCC"}}, program), {row_sizes});
  every_sharding(trace({{"AC"}, {"", gs::dtype::i32, 'A'}, {"C"}}, program), {row_sizes});
}

TEST_CASE("gather and scatter_add of sums that may be pending") {
  const auto program = [](const scope&, given x) {
    const symbol table = gs::einsum<"abc->ac">(x[0]), rows = gs::einsum<"bkc->bc">(x[2]);
    return symbols{gs::gather(table, x[1]), lay_out(gs::scatter_add(table, x[1], rows))};
  };
  every_sharding(trace({{"ABC"}, {"B", gs::dtype::i32, 'A'}, {"BBC"}}, program), {row_sizes});
}

TEST_CASE("lookups by ids that are sums, lookups, and rows of a scan") {
  const auto sums = [](const scope&, given x) {
    const symbol ids = gs::sum<"ba->b">(x[1]);  // a partial sum, if A is sharded
    return symbols{gs::gather(x[0], ids), gs::scatter_add(x[0], ids, x[2])};
  };
  const auto small = [](run_graph::arrays& a) {  // the sums are less than C
    for (double& id : a[1]) id = 0;
    a[1][0] = 1;
  };
  every_sharding(trace({{"CD"}, {"BA", gs::dtype::i32, 'C'}, {"BD"}}, sums),
                 {.dims = {{{'A', 4}, {'B', 6}, {'C', 4}, {'D', 2}}, {{'A', 3}, {'B', 5}, {'C', 7}, {'D', 1}}}, .most = 300, .prepare = small});
  every_sharding(trace({{"CD"}, {"A", gs::dtype::i32, 'C'}, {"B", gs::dtype::i32, 'A'}},
                       [](const scope&, given x) { return symbols{gs::gather(x[0], gs::gather(x[1], x[2]))}; }),
                 {.dims = {{{'A', 4}, {'B', 6}, {'C', 4}, {'D', 2}}, {{'A', 3}, {'B', 5}, {'C', 7}, {'D', 1}}}, .most = 300});
  every_sharding(trace({{"C"}, {"AB", gs::dtype::i32, 'C'}},
                       [](const scope&, given x) {
                         const auto turn = [&](symbol, symbol total, symbol row) { return total + gs::sum(gs::gather(x[0], row)); };
                         return symbols{gs::scan(turn, gs::sum(x[0]) * 0.0, x[1])};
                       }),
                 {.dims = {{{'A', 4}, {'B', 6}, {'C', 4}}, {{'A', 3}, {'B', 2}, {'C', 7}}}, .most = 300});
}

TEST_CASE("gather and scatter_add along other dims") {
  const auto along = [](int dim) {
    return [dim](const scope&, given x) {
      symbols results = with_gradients(gs::gather(x[0], x[1], dim), x, 1);
      results.push_back(lay_out(gs::scatter_add(x[0], x[1], x[2], dim)));
      return results;
    };
  };
  every_sharding(trace({{"CAB"}, {"B", gs::dtype::i32, 'A'}, {"CBB"}}, along(1)), {row_sizes});
  every_sharding(trace({{"BA"}, {"CB", gs::dtype::i32, 'A'}, {"BCB"}}, along(1)), {row_sizes});
}

TEST_CASE("gather and scatter_add with batch dims") {
  const auto program = [](int dim, int batch) {
    return [=](const scope&, given x) {
      symbols results = with_gradients(gs::gather(x[0], x[1], dim, batch), x, 1);
      results.push_back(lay_out(gs::scatter_add(x[0], x[1], x[2], dim, batch)));
      return results;
    };
  };
  every_sharding(trace({{"BA"}, {"BC", gs::dtype::i32, 'A'}, {"BC"}}, program(1, 1)), {row_sizes});
  every_sharding(trace({{"BCA"}, {"B", gs::dtype::i32, 'A'}, {"BC"}}, program(2, 1)), {row_sizes});
  every_sharding(trace({{"BAC"}, {"BB", gs::dtype::i32, 'A'}, {"BBC"}}, program(1, 1)), {row_sizes});
}

TEST_CASE("dynamic_slice and dynamic_update_slice") {
  // Starts before, in and beyond the dim are clamped.
  const auto slices = [](const scope&, given x) {
    const symbol before = gs::cast<std::int32_t>(-1.0 * x[2]);
    symbols results = with_gradients(gs::dynamic_slice(x[0], 1, x[1], 2), std::array{x[0], x[1], gs::dynamic_slice(x[3], 1, before, 2)}, 1);
    results.push_back(lay_out(gs::dynamic_slice(x[0], 0, gs::cast<std::int32_t>(x[2]), 2)));
    return results;
  };
  every_sharding(trace({{"AC"}, {"", gs::dtype::i32, 'C'}, {""}, {"AC"}}, slices),
                 {.dims = {{{'A', 5}, {'C', 3}}, {{'A', 4}, {'C', 2}}}});
  const auto updates = [](const scope&, given x) {
    return with_gradients(gs::dynamic_update_slice(x[0], x[1], 0, x[2]), std::array{x[0], x[1], x[3]}, 2);
  };
  every_sharding(trace({{"AC"}, {"BC"}, {"", gs::dtype::i32, 'A', -1}, {"AC"}}, updates),
                 {.dims = {{{'A', 5}, {'B', 2}, {'C', 3}}, {{'A', 4}, {'B', 1}, {'C', 2}}}});
}

TEST_CASE("dynamic_update_slice: an update that is longer than the dim is an error") {
  const auto t = trace({{"AC"}, {"BC"}, {"", gs::dtype::i32, 'A'}},
                       [](const scope&, given x) { return symbols{lay_out(gs::dynamic_update_slice(x[0], x[1], 0, x[2]))}; });
  for (const int devices : {1, 2, 3})
    for (const int longer : {0, 1}) {
      const gs::dims dims{{'A', 5}, {'B', 5 + longer}, {'C', 3}};
      run_graph::setting s = run_graph::serial(t, dims);
      s.mesh = {devices};
      const auto update = [&] { run_graph::run(t, s, run_graph::random_sources(t, dims, 1)); };
      if (longer) CHECK_THROWS_WITH_AS(update(), doctest::Contains("gather: id 6"), gs::error);
      else CHECK_NOTHROW(update());
    }
}

TEST_CASE("one_hot, and random tensors") {
  const auto program = [](const scope& m, given x) {
    return symbols{lay_out(gs::one_hot<"C", double>(x[0])), lay_out(gs::uniform<"AC">(m)), lay_out(gs::normal<"CA">(m))};
  };
  every_sharding(trace({{"AB", gs::dtype::i32, 'C', -1}}, program), {row_sizes});
}

TEST_CASE("cumsum, both ways, with and without the element itself") {
  for (const int dim : {0, 1, 2})
    every_sharding(trace({{"ABC"}, {"ABC"}},
                         [dim](const scope&, given x) {
                           symbols results = with_gradients(gs::cumsum(x[0], dim), x, 1);
                           results.push_back(gs::cumsum(x[0], dim, true));
                           results.push_back(lay_out(gs::cumsum(x[0], dim, true, true)));
                           return results;
                         }),
                   {.dims = row_sizes, .most = 150});
}

TEST_CASE("sort and top_k") {
  const auto program = [](int dim) {
    return [dim](const scope&, given x) {
      const gs::sorted up = gs::sort(x[0], dim), best = gs::top_k(x[0], 1, dim), least = gs::top_k(x[0], 1, dim, false);
      symbols results = with_gradients(up.values, x, 1);
      for (const symbol s : {up.ids, gs::sort(x[0], dim, true).ids, best.values, best.ids, least.values, least.ids}) results.push_back(s);
      for (const symbol g : gs::gradients(gs::sum(best.values), x.first(1))) results.push_back(lay_out(g));
      return results;
    };
  };
  for (const int dim : {0, 1}) every_sharding(trace({{"BA"}, {"BA"}}, program(dim)), {.dims = row_sizes, .most = 150});
  every_sharding(trace({{"AB"}},
                       [](const scope&, given x) {
                         return symbols{gs::top_k(x[0], 2).ids, gs::top_k(x[0], 2).values};
                       }),
                 {row_sizes});
}

TEST_CASE("dropout drops the same elements everywhere") {
  const auto program = [](const scope&, given x) {
    symbols results = with_gradients(gs::dropout(gs::dropout(x[0], 0.3), 0.5), x, 1);
    results.push_back(lay_out(gs::dropout(x[0], 0.5)));
    return results;
  };
  every_sharding(trace({{"ABC"}, {"ABC"}}, program), {row_sizes});
}

TEST_CASE("gradients that are sums over several uses of a tensor") {
  const auto program = [](const scope&, given x) {
    const symbol y = gs::einsum<"ab,bc->ac">(x[0], x[1]);
    const symbol z = gs::relu(y) + gs::softmax(y) + gs::einsum<"ab,bc->ac">(x[0], gs::relu(x[1]));
    return with_gradients(z, x, 2);
  };
  every_sharding(trace({{"AB"}, {"BC"}, {"AC"}}, program), {.dims = row_sizes, .tolerance = 1e-13});
}

TEST_CASE("adam, in all shardings of parameter, moments and gradient") {
  const auto program = [](const scope& m, given x) {
    const symbol p = m.param("p", "AB", gs::init::zeros());
    gs::adam{.beta1 = 0.5, .beta2 = 0.75, .epsilon = 1e-2, .weight_decay = 0.25}.update(m, p, x[0], x[1]);
    return symbols{};
  };
  every_sharding(trace({{"AB"}, {""}}, program),
                 {.dims = row_sizes, .most = 3000, .prepare = [](run_graph::arrays& a) {
                    for (double& v : a.back()) v = v * v;
                  }});
  // A gradient that arrives as a partial sum.
  every_sharding(trace({{"AB"}, {""}}, program),
                 {.dims = row_sizes, .pending_sources = true, .prepare = [](run_graph::arrays& a) {
                    for (double& v : a.back()) v = v * v;
                  }});
}
