// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scans and their gradients: compared with unrolled loops and finite differences, and in every sharding.
#include "run_graph.hpp"

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/remat.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/loop/loop.hpp>
#include <gshard/ops/loop/scan.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/slice.hpp>

#include <array>
#include <set>
#include <tuple>

namespace gs = gshard;
using gs::dtype, gs::symbol;
using run_graph::array, run_graph::arrays, run_graph::serially, run_graph::trace;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

symbol tanh(symbol x) {
  return gs::map<[](auto v) { return gs::tanh(v); }>(x);
}
/// The step of a recurrent network: a state [B, M], a row [B, M], weights [M, M].
symbol cell(symbol state, symbol x, symbol w) { return tanh(gs::einsum<"bm,mn->bn">(state, w) + x); }

/// The last state, and a result of each step: xs [T, B, M], a state, weights.
std::array<symbol, 2> network(symbol xs, symbol start, symbol w, gs::remat_policy saved = gs::remat_policy::nothing) {
  return gs::scan([w](symbol, symbol s, symbol x) {
    const symbol next = cell(s, x, w);
    return std::tuple(next, next * s);
  }, start, xs, saved);
}
std::array<symbol, 2> unrolled(int steps, symbol xs, symbol start, symbol w) {
  symbols rows;
  symbol s = start;
  for (int t = 0; t < steps; ++t) {
    const symbol next = cell(s, gs::squeeze(gs::slice(xs, 0, t, t + 1), 0), w);
    rows.push_back(gs::expand_dims(next * s, 0));
    s = next;
  }
  return {s, gs::concat(rows, 0)};
}
symbols with_gradients(std::array<symbol, 2> y, given x) {
  symbols results{y[0], y[1]};
  for (const symbol& g : gs::gradients(gs::sum(y[0] * y[0]) + gs::sum(tanh(y[1])), x)) results.push_back(g);
  return results;
}
void check_close(const arrays& a, const arrays& b) {
  CHECK(a.size() == b.size());
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    CHECK(a[i].size() == b[i].size());
    for (std::size_t k = 0; k < a[i].size() && k < b[i].size(); ++k) CHECK(a[i][k] == doctest::Approx(b[i][k]).epsilon(1e-13));
  }
}

}  // namespace

TEST_CASE("a scan and its gradients are those of the unrolled loop") {
  const auto scanned = trace({{"TBM"}, {"BM"}, {"MM"}}, [](const scope&, given x) { return with_gradients(network(x[0], x[1], x[2]), x); });
  for (const int steps : {1, 2, 4}) {
    const gs::dims dims{{'T', steps}, {'B', 3}, {'M', 2}};
    const auto plain =
        trace({{"TBM"}, {"BM"}, {"MM"}}, [steps](const scope&, given x) { return with_gradients(unrolled(steps, x[0], x[1], x[2]), x); });
    const arrays inputs = run_graph::random_sources(scanned, dims, 1);
    const arrays found = serially(scanned, dims, inputs), expected = serially(plain, dims, inputs);
    CHECK(found[0] == expected[0]);
    CHECK(found[1] == expected[1]);
    check_close(found, expected);
  }
}

TEST_CASE("saved tensors: the same bits, in every sharding") {
  // A value that depends on neither states nor rows, a scan in the body, a remat scope in it, and random numbers.
  const auto model = [](const scope& m, given x, gs::remat_policy saved) {
    return gs::scan([&](symbol step, symbol s, symbol row) {
      const symbol next = cell(s, row, x[2] * gs::cast<double>(step));
      const auto inner = gs::scan<2>([&](symbol, symbol u) { return std::tuple(tanh(u * row), u); }, gs::dropout(next, 0.5), saved);
      const gs::remat inside(m, gs::remat_policy::products);
      return std::tuple(tanh(tanh(gs::einsum<"bm,mn->bn">(inner[0], x[2]))), gs::sum<"tbm->bm">(inner[1]) * next);
    }, x[1], x[0], saved);
  };
  const gs::dims dims{{'T', 3}, {'B', 4}, {'M', 6}};
  const auto with = [&](gs::remat_policy saved) {
    return trace({{"TBM"}, {"BM"}, {"MM"}}, [&](const scope& m, given x) { return with_gradients(model(m, x, saved), x); });
  };
  const auto again = with(gs::remat_policy::nothing);
  const arrays inputs = run_graph::random_sources(again, dims, 1), expected = serially(again, dims, inputs);
  for (const auto saved : {gs::remat_policy::products, gs::remat_policy::everything}) {
    CHECK(serially(with(saved), dims, inputs) == expected);
    run_graph::every_sharding(with(saved), {.dims = {dims, {{'T', 2}, {'B', 3}, {'M', 5}}}, .tolerance = 1e-11, .most = 60});
  }
}

TEST_CASE("steps after the last row, and states of some steps before, in every sharding") {
  constexpr int steps = 6;
  const auto scanned = trace({{"TBM"}, {"BM"}, {"MM"}}, [](const scope&, given x) {
    const auto body = [&](symbol step, symbol s, symbol before, symbol row) {
      const symbol earlier = gs::select(gs::cast<double>(gs::here(step) >= 2.0), 1.0, 0.0);
      const symbol next = cell(s, row, x[2]) + gs::einsum<"bm,->bm">(before * before, earlier);
      return std::tuple(next, next * s);
    };
    return with_gradients(gs::detail::write_scan<true>(body, std::array{x[1]}, std::array{x[0]}, {.steps = steps, .lag = 2}, 0, ""), x);
  });
  const auto plain = trace({{"TBM"}, {"BM"}, {"MM"}}, [](const scope&, given x) {
    symbols rows, states{x[1]};
    for (int t = 0; t < steps; ++t) {
      symbol row = gs::squeeze(gs::slice(x[0], 0, t < 4 ? t : 3, t < 4 ? t + 1 : 4), 0);
      symbol next = cell(states[std::size_t(t)], t < 4 ? row : gs::stop_gradient(row), x[2]);
      if (t >= 2) next = next + states[std::size_t(t - 2)] * states[std::size_t(t - 2)];
      rows.push_back(gs::expand_dims(next * states[std::size_t(t)], 0));
      states.push_back(next);
    }
    return with_gradients({states.back(), gs::concat(rows, 0)}, x);
  });
  const gs::dims dims{{'T', 4}, {'B', 3}, {'M', 2}};
  const arrays inputs = run_graph::random_sources(scanned, dims, 1);
  check_close(serially(scanned, dims, inputs), serially(plain, dims, inputs));
  run_graph::every_sharding(scanned, {.dims = {dims}, .tolerance = 1e-11, .most = 40});
}

TEST_CASE("no step: states stay, and gradients pass them") {
  const auto t = trace({{"TBM"}, {"BM"}, {"MM"}}, [](const scope&, given x) { return with_gradients(network(x[0], x[1], x[2]), x); });
  const arrays y = serially(t, {{'T', 0}, {'B', 1}, {'M', 2}}, {{}, {3, -2}, {1, 2, 3, 4}});
  CHECK(y == arrays{{3, -2}, {}, {}, {6, -4}, {0, 0, 0, 0}});
  const auto fixed = trace({{"B"}}, [](const scope&, given x) {
    const symbol same = gs::scan<0>([](symbol, symbol s) { return s * s; }, x[0]);
    return symbols{same, gs::gradients(gs::sum(same), x)[0]};
  });
  CHECK(serially(fixed, {{'B', 2}}, {{5, 7}}) == arrays{{5, 7}, {1, 1}});
}

TEST_CASE("the step's index, states of several types, and outputs that nobody reads") {
  const auto t = trace({{"TB"}}, [](const scope&, given x) {
    const symbol n = gs::cast<std::int32_t>(gs::sum(x[0]) * 0.0);
    const auto [sum, count, unused, index] = gs::scan([](symbol step, symbol s, symbol k, symbol row) {
      return std::tuple(s + row, gs::here(k) + 2, s * 3.0, step);
    }, std::tuple(gs::sum<"tb->b">(x[0]) * 0.0, n), x[0]);
    return symbols{sum, gs::cast<double>(count), gs::cast<double>(index)};
  });
  CHECK(serially(t, {{'T', 3}, {'B', 2}}, {{1, 2, 3, 4, 5, 6}}) == arrays{{9, 12}, {6}, {0, 1, 2}});
}

TEST_CASE("a recurrent network, in every sharding") {
  const gs::sharding_check how{.sizes = {{{'T', 3}, {'B', 4}, {'M', 6}}, {{'T', 2}, {'B', 3}, {'M', 5}}}, .tolerance = 1e-11};
  CHECK(gs::check_shardings([](const scope&, symbol xs, symbol start, symbol w) { return network(xs, start, w)[1]; }, {"TBM", "BM", "MM"},
                            how) == "");
  CHECK(gs::check_shardings([](const scope&, symbol xs, symbol start, symbol w) { return network(xs, run_graph::lay_out(start), w)[0]; },
                            {"TBM", "BM", "MM"}, how) == "");
}

TEST_CASE("states that change places, and a tensor of the body that is annotated, in every sharding") {
  const gs::sharding_check how{.sizes = {{{'A', 4}, {'B', 3}}, {{'A', 1}, {'B', 5}}}, .tolerance = 1e-11};
  CHECK(gs::check_shardings([](const scope&, symbol u, symbol v) {
    const auto [a, b, ys] = gs::scan<3>([u](symbol, symbol s, symbol t) {
      return std::array{t, s, run_graph::lay_out(gs::einsum<"ab,b->ab">(u, gs::sum<"ab->b">(s * t)))};
    }, std::array{u, v});
    return gs::sum<"tab->ab">(ys) + a * 2.0 - b;
  }, {"AB", "AB"}, how) == "");
}

TEST_CASE("gradients flow through states, rows, outputs and tensors from outside that are in half precision, in every sharding") {
  const auto program = [](dtype stored) {
    return trace({{"TB"}, {"B"}, {"B"}}, [=](const scope&, given x) {
      const auto store = [=](symbol s) { return stored == dtype::f64 ? s : gs::cast(s, stored); };
      const auto read = [=](symbol s) { return stored == dtype::f64 ? s : gs::cast(s, dtype::f64); };
      const symbol w = store(x[2]);
      const auto [last, all] = gs::scan([&](symbol, symbol s, symbol row) {
        return std::tuple(store(read(s) + read(row)), store(read(row) - read(w)));
      }, store(x[1]), run_graph::lay_out(store(x[0])));
      symbols results{read(last), read(all)};
      const symbol loss = gs::sum(results[0] * results[0]) + gs::sum(results[1] * results[1]);
      for (const symbol& g : gs::gradients(loss, x)) results.push_back(g);
      return results;
    });
  };
  const gs::dims dims{{'T', 3}, {'B', 4}};
  const auto exact = program(dtype::f64);  // inputs are multiples of 1/4; these and their sums are exact in both types
  for (const dtype stored : {dtype::bf16, dtype::f16}) {
    CAPTURE(gs::name(stored));
    const auto t = program(stored);
    run_graph::every_sharding(t, {.dims = {dims}});
    const arrays inputs = run_graph::random_sources(t, dims, 1);
    CHECK(run_graph::distance(serially(t, dims, inputs), serially(exact, dims, inputs)) == 0);
  }
}

TEST_CASE("scans in scans, in every sharding") {
  const gs::sharding_check how{.sizes = {{{'T', 2}, {'S', 3}, {'B', 4}}, {{'T', 3}, {'S', 1}, {'B', 5}}}, .tolerance = 1e-11};
  CHECK(gs::check_shardings([](const scope&, symbol xs, symbol start, symbol w) {
    return gs::scan([w](symbol, symbol s, symbol rows) {
      const auto [last, all] = gs::scan([w, s](symbol, symbol inner, symbol x) {
        const symbol next = tanh(inner * w + x * s);
        return std::tuple(next, next * x);
      }, s, rows);
      return last + gs::sum<"sb->b">(all);
    }, start, xs);
  }, {"TSB", "B", "B"}, how) == "");
}

TEST_CASE("random numbers: others in each step, and the same ones for the gradient") {
  const auto model = [](const scope&, symbol xs, symbol start) {
    return gs::scan([](symbol, symbol s, symbol x) {
      const symbol noisy = gs::dropout(tanh(s + x), 0.5);
      return std::tuple(gs::scan<2>([x](symbol, symbol u) { return gs::dropout(u * x, 0.25); }, noisy), noisy);
    }, start, xs)[1];
  };
  CHECK(gs::check_shardings(model, {"TB", "B"}, {.sizes = {{{'T', 4}, {'B', 6}}, {{'T', 3}, {'B', 5}}}, .tolerance = 1e-11}) == "");
  const auto t = trace({{"B"}}, [](const scope&, given x) {
    return symbols{gs::scan<4>([](symbol, symbol s) { return std::tuple(s, gs::dropout(s, 0.5)); }, x[0])[1]};
  });
  const array y = serially(t, {{'B', 32}}, {array(32, 1.0)})[0];
  std::set<array> rows;
  for (int i = 0; i < 4; ++i) rows.insert(array(y.begin() + 32 * i, y.begin() + 32 * (i + 1)));
  CHECK(rows.size() == 4);
}
