// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compares random programs and their gradients, in random layouts on random meshes, with one device.
#include "../effort.hpp"
#include "random_program_failure.hpp"
#include "random_program_intermediates.hpp"
#include "random_program_permuted.hpp"
#include "random_program_prices.hpp"
#include "random_program_remat.hpp"
#include "random_program_seeds.hpp"
#include "random_program_shrink.hpp"
#include "random_program_strategies.hpp"
#include "random_program_text.hpp"
#include "random_program_writer.hpp"

#include <gshard/core/trace/complex.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/ops/attention/attention.hpp>
#include <gshard/ops/loop/scan.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gs = gshard;
using gs::symbol;

namespace {

constexpr std::uint32_t few_seeds = 100;  // among fewer seeds, as in a repeated run, there may be no case for a test

/// Fails for every seed whose program fails, and prints a small program that fails.
template <class Failure>
void check_seeds(const random_program::seed_range& seeds, const Failure& failure_of) {
  int failures = 0;
  for (std::uint32_t seed = seeds.first; seed < seeds.end() && failures < 10; ++seed) {
    CAPTURE(seed);
    const auto failure = [&](const random_program::recipe& r) { return failure_of(r, seed); };
    const random_program::recipe r = random_program::written(seed);
    const std::string said = failure(r);
    if (said.empty()) continue;
    ++failures;
    const random_program::recipe small = random_program::shrunk(r, failure);
    FAIL_CHECK("seed " << seed << ": " << said << "\nsmall program: " << failure(small) << "\n" << random_program::code_of(small));
  }
}

}  // namespace

TEST_CASE("random programs and their gradients are the same on every mesh") {
  const random_program::seed_range seeds = random_program::seeds(repetitions(1000u, 2u));
  check_seeds(seeds, [](const random_program::recipe& r, std::uint32_t) { return random_program::failure(r); });
  if (seeds.count < 500) return;
  std::array<int, std::size_t(random_program::verb::count_)> uses{};
  for (std::uint32_t seed = seeds.first; seed < seeds.end(); ++seed)
    for (const random_program::step& s : random_program::written(seed).steps) ++uses[std::size_t(s.what)];
  for (std::size_t v = 0; v < uses.size(); ++v) CHECK_MESSAGE(uses[v] > 0, "verb ", v, " was never written");
}

TEST_CASE("random programs compute the same bits if activations are recomputed") {
  const random_program::seed_range seeds = random_program::seeds(repetitions(300u, 2u));
  std::size_t repeated = 0;
  check_seeds(seeds, [&](const random_program::recipe& r, std::uint32_t seed) { return random_program::failure_of_remat(r, seed, repeated); });
  if (seeds.count >= few_seeds) CHECK(repeated > seeds.count);
}

TEST_CASE("random programs receive the bytes that their prices say") {
  const random_program::seed_range seeds = random_program::seeds(repetitions(300u, 2u));
  std::size_t steps = 0;
  check_seeds(seeds, [&](const random_program::recipe& r, std::uint32_t) { return random_program::failure_of_prices(r, steps); });
  if (seeds.count >= few_seeds) CHECK(steps > seeds.count);
}

TEST_CASE("nodes of random programs get the placement that choose_strategy finds") {
  const random_program::seed_range seeds = random_program::seeds(repetitions(300u, 2u));
  std::size_t compared = 0;
  check_seeds(seeds,
              [&](const random_program::recipe& r, std::uint32_t) { return random_program::failure_of_strategies(r, compared); });
  if (seeds.count >= few_seeds) CHECK(compared > seeds.count);
}

TEST_CASE("random programs and their gradients name lines of the program, not of the library") {
  check_seeds(random_program::seeds(repetitions(300u, 2u)), [](const random_program::recipe& r, std::uint32_t) {
    const on_mesh::prepared p = on_mesh::prepare(r.on, random_program::inputs_of(r), random_program::model_of(r));
    for (const gs::node& n : p.program.graph.nodes)
      if (n.place.file && std::string_view(n.place.file).find("include/gshard/") != std::string_view::npos)
        return std::string(gs::name_of(n)) + " at " + n.place.file + ":" + std::to_string(n.place.line);
    return std::string();
  });
}

TEST_CASE("random programs cost the same whatever the order of independent statements") {
  check_seeds(random_program::seeds(repetitions(1000u, 2u)), random_program::failure_of_order);
}

TEST_CASE("random programs: the gradient with respect to a computed tensor is that of the program in which it is an input") {
  const random_program::seed_range seeds = random_program::seeds(repetitions(300u, 2u));
  std::size_t compared = 0;
  check_seeds(seeds, [&](const random_program::recipe& r, std::uint32_t) { return random_program::failure_of_intermediates(r, compared); });
  if (seeds.count >= few_seeds) CHECK(compared > seeds.count);
}

namespace {

/// Compares the gradients with respect to make(inputs) in a program that reads use(make(inputs)) with those through an annotation of the
/// tensor, which no optimization removes.
void check_bypassed(const std::vector<run_graph::input>& inputs, const gs::dims& dims,
                    const std::function<symbol(std::span<const symbol>)>& make,
                    const std::function<symbol(std::span<const symbol>, symbol)>& use) {
  const run_graph::traced t = run_graph::trace(inputs, [&](const gs::parameter_scope&, std::span<const symbol> x) {
    const symbol made = make(x), apart = run_graph::lay_out(make(x));
    gs::list<symbol> results{gs::gradients(use(x, made), std::array{made})[0], gs::gradients(use(x, apart), std::array{apart})[0]};
    for (symbol& g : results)
      if (gs::is_complex(g.get().type)) g = gs::complex(gs::real(g) + gs::imag(g), gs::real(g));
    return results;
  });
  const run_graph::arrays found = run_graph::run(t, run_graph::serial(t, dims), run_graph::random_sources(t, dims, 3));
  CHECK(on_mesh::difference(found[0], found[1], on_mesh::nearly) == "");
  CHECK(std::any_of(found[1].begin(), found[1].end(), [](double v) { return v != 0; }));
}

}  // namespace

TEST_CASE("gradients with respect to tensors that operations do not read themselves") {
  const auto square = [](symbol s) { return gs::sum(s * s); };
  SUBCASE("broadcasts of broadcasts, read by a map and by an einsum") {
    check_bypassed({{"A"}, {"AB"}}, {{'A', 2}, {'B', 3}}, [](auto x) { return gs::broadcast<"a,ab->ab">(x[0], x[1]); },
                   [&](auto x, symbol s) {
                     const symbol again = gs::broadcast<"ab->ba">(s);
                     return square(gs::broadcast<"ab->ba">(again) * x[1] + s) + gs::einsum<"ab,ba->">(x[1], again);
                   });
  }
  SUBCASE("a gradient, which is a broadcast") {
    check_bypassed({{"AB"}}, {{'A', 2}, {'B', 3}}, [](auto x) { return gs::gradients(gs::sum(x[0]) * gs::sum(x[0]), x)[0]; },
                   [&](auto x, symbol s) { return square(s * x[0]); });
  }
  SUBCASE("an input in column-major order") {
    check_bypassed({{"AB"}, {"BC"}}, {{'A', 2}, {'B', 3}, {'C', 2}},
                   [](auto x) { return gs::detail::emit_reversed(*x[0].owner, x[0], "x"); },
                   [&](auto x, symbol s) { return square(gs::einsum<"ba,bc->ac">(s, x[1])) + gs::sum(s); });
  }
  SUBCASE("the conjugate of a conjugate") {
    check_bypassed({{"A"}, {"A"}}, {{'A', 3}}, [](auto x) { return gs::conj(gs::complex(x[0], x[1])); },
                   [&](auto x, symbol s) {
                     return gs::sum(gs::real(gs::einsum<"a,a->a">(gs::conj(s), gs::complex(x[1], x[0])))) + gs::sum(gs::imag(gs::conj(s)));
                   });
  }
  SUBCASE("one-hot tensors of a gating") {
    const gs::dims dims{{'G', 2}, {'S', 3}, {'E', 2}, {'M', 2}};
    const auto gating = [](symbol x) { return gs::top_k_gating(gs::softmax(x), {.k = 2}); };
    const auto layer = [&](auto x, symbol dispatch, symbol combine) {
      const symbol in = gs::einsum<"GSEC,GSM->EGCM">(dispatch, x[1]);
      return square(gs::einsum<"GSEC,EGCM->GSM">(combine, in * in));
    };
    check_bypassed({{"GSE"}, {"GSM"}}, dims, [&](auto x) { return gating(x[0]).combine; },
                   [&](auto x, symbol s) { return layer(x, gating(x[0]).dispatch, s); });
    check_bypassed({{"GSE"}, {"GSM"}}, dims, [&](auto x) { return gating(x[0]).dispatch; },
                   [&](auto x, symbol s) { return layer(x, s, gating(x[0]).combine); });
    check_bypassed({{"GSE"}, {"GSM"}}, dims, [&](auto x) { return gating(x[0]).combine; },
                   [&](auto x, symbol s) { return layer(x, s, s); });
  }
  SUBCASE("from outside of a scan") {
    check_bypassed({{"A"}, {"AB"}, {"CAB"}}, {{'A', 2}, {'B', 3}, {'C', 3}}, [](auto x) { return gs::broadcast<"a,ab->ab">(x[0], x[1]); },
                   [&](auto x, symbol s) {
                     const auto turn = [s](symbol, symbol state, symbol row) { return 0.5 * (state * gs::relu(s)) + row * s; };
                     return square(gs::scan(turn, x[1], x[2]));
                   });
  }
  SUBCASE("in a scan") {
    check_bypassed({{"A"}, {"AB"}, {"CAB"}}, {{'A', 2}, {'B', 3}, {'C', 3}}, [](auto x) { return x[0] * 1.0; },
                   [&](auto x, symbol s) {
                     const auto turn = [s](symbol, symbol state, symbol row) {
                       const symbol copies = gs::broadcast<"a,ab->ab">(gs::einsum<"ab->a">(state) * s, state);
                       const symbol one = copies + row, loss = gs::einsum<"ab,ab->">(one, state - copies);
                       return 0.25 * (state + gs::gradients(loss, std::array{copies})[0]) + copies;
                     };
                     return square(gs::scan(turn, x[1], x[2]));
                   });
  }
}

TEST_CASE("a NaN that a query does not see is the same on every mesh: nowhere") {
  // Seed 155, with the queries sharded: a device with only the first queries does not read the last keys at all.
  const auto causal = [](const gs::parameter_scope&, std::span<const symbol> x) {
    return gs::list<symbol>{gs::attention(x[0], x[1], x[1], {.causal = true})};
  };
  const auto none = gs::P<gs::none, gs::none, gs::none>{};
  CHECK(on_mesh::failure({.mesh = {2}, .dims = {{'Q', 4}, {'H', 1}, {'D', 2}}},
                         {{{"QHD"}, on_mesh::layout_of(gs::P<"x", gs::none, gs::none>{}), 1},
                          {{"QHD"}, on_mesh::layout_of(none), 5, on_mesh::not_a_number}},
                         causal) == "");
}

TEST_CASE("partial sums do not run together with other pending reductions") {
  CHECK(on_mesh::failure({.mesh = {2}, .dims = {{'A', 1}, {'B', 1}}},
                         {{{"A"}, on_mesh::layout_of(gs::P<"x">{}), 1}, {{"B"}, on_mesh::layout_of(gs::P<"x">{}), 2}},
                         [](const gs::parameter_scope&, std::span<const symbol> x) {
                           return gs::list<symbol>{gs::sum<"a->">(x[0]) + gs::reduce_max<"a->">(x[1])};
                         }) == "");
}

TEST_CASE("a failure is made small and printed as code") {
  // Pretends that cumsum is wrong in programs with annotations.
  const auto wrong = [](const random_program::recipe& r) -> std::string {
    const std::string said = random_program::failure(r);
    for (const random_program::step& s : r.steps)
      if (s.what == random_program::verb::cumsum)
        for (const random_program::step& a : r.steps)
          if (a.what == random_program::verb::annotate && a.layout.used()) return "wrong";
    return said;
  };
  int found = 0;
  for (std::uint32_t seed = 0; found < repetitions(5, 2); ++seed) {
    const random_program::recipe r = random_program::written(seed);
    if (wrong(r).empty()) continue;
    ++found;
    CAPTURE(seed);
    const random_program::recipe small = random_program::shrunk(r, wrong);
    CHECK(wrong(small) == "wrong");
    CHECK(small.steps.size() <= 6);  // two inputs, the two verbs, and their connections
    CHECK(small.on.mesh == std::vector{1});
    for (std::size_t i = 0; i < small.on.dims.count; ++i) CHECK(small.on.dims.entries[i].extent <= 1);
    CHECK(small.results.size() + small.gradients.size() <= 3);
    const std::string code = random_program::code_of(small);
    CHECK(code.find("gs::cumsum(v") != std::string::npos);
    CHECK(code.find("gs::annotate(v") != std::string::npos);
    CHECK(code.find(".mesh = {1}") != std::string::npos);
  }
}

TEST_CASE("a dim whose extent is not known does not make an exchange look empty") {
  CHECK(on_mesh::failure(
            {.mesh = {1, 1, 2}, .dims = {{'A', 2}, {'B', 1}, {'L', 1}}, .known_axes = "z", .known_dims = "AB", .keep_pending = false},
            {{{"BA"}, on_mesh::layout_of(gs::P<gs::none, gs::none>{}), 2963406},
             {{"LA"}, on_mesh::layout_of(gs::P<gs::none, gs::none>{}), 6593024}},
            []([[maybe_unused]] const gs::parameter_scope& m, std::span<const symbol> x) {
              return gs::list<symbol>{
                  gs::annotate(gs::roll(gs::conv<"PQ,pZ->ZP">(x[0], x[1], {{1, 0, 0, 1, 1}}), 0, 1), gs::P<"z", gs::none>{})};
            }) == "");
}

TEST_CASE("a mean over two dims that are one index divides by its extent once") {
  const run_graph::traced t = run_graph::trace({{"AA"}}, [](const gs::parameter_scope&, std::span<const symbol> x) {
    return gs::list<symbol>{gs::mean<"aa->">(x[0]), gs::mean<"ab->">(x[0])};
  });
  const gs::dims dims{{'A', 2}};
  CHECK(run_graph::run(t, run_graph::serial(t, dims), {{1, 2, 3, 5}}) == run_graph::arrays{{3}, {2.75}});
}

TEST_CASE("the gradient of pooling reads taps of which less was fetched than of the result's gradient") {
  CHECK(on_mesh::failure({.mesh = {1}, .dims = {{'A', 1}, {'C', 2}, {'D', 2}}, .known_dims = "C"},
                         {{{"CD"}, on_mesh::layout_of(gs::P<gs::none, gs::none>{}), 1800055, 12}},
                         [](const gs::parameter_scope&, std::span<const symbol> x) {
    const symbol v1 = gs::einsum<"ab->ba">(x[0]);
    const symbol v4 = gs::sort(gs::min_pool(v1, {{1, 2, {1, 0, 2, 1, 2}}}), 1, false).values;
    const auto g = on_mesh::gradients_of(std::array{v4}, std::array{x[0]});
    return gs::list<symbol>{gs::annotate(gs::argmax<"ab->b">(v1), gs::P<"x">{}), g[0]};
  }) == "");
}

TEST_CASE("reductions of a diagonal have gradients along it alone") {
  const run_graph::traced t = run_graph::trace({{"AA"}}, [](const gs::parameter_scope&, std::span<const symbol> x) {
    gs::list<symbol> results;
    for (const symbol& y :
         {gs::reduce_max<"aa->">(x[0]), gs::reduce_max<"aa->a">(x[0]), gs::reduce_prod<"aa->">(x[0]), gs::logsumexp<"aa->">(x[0])})
      results.push_back(gs::gradients(gs::sum(y), x)[0]);
    results.push_back(gs::argmax<"aa->">(x[0]));
    return results;
  });
  const run_graph::arrays found = run_graph::run(t, run_graph::serial(t, {{'A', 2}}), {{1, 3, 2000, 3}});
  const double a = 1 / (1 + std::exp(2.0));
  CHECK(found[0] == run_graph::array{0, 0, 0, 1});
  CHECK(found[1] == run_graph::array{1, 0, 0, 1});
  CHECK(found[2] == run_graph::array{3, 0, 0, 1});
  CHECK(on_mesh::difference(found[3], {a, 0, 0, 1 - a}, on_mesh::nearly) == "");
  CHECK(found[4] == run_graph::array{1});
}

TEST_CASE("the gradient of relu reads its result, which has the dims of a broadcast") {
  const run_graph::traced t = run_graph::trace({{"A"}, {"AB"}}, [](const gs::parameter_scope&, std::span<const symbol> x) {
    const symbol y = gs::relu(gs::broadcast<"a,ab->ba">(x[0], x[1]));
    return gs::list<symbol>{gs::gradients(gs::sum(y * gs::broadcast<"ab->ba">(x[1])), x.first(1))[0]};
  });
  CHECK(run_graph::run(t, run_graph::serial(t, {{'A', 2}, {'B', 3}}), {{-1, 2}, {1, 2, 3, 4, 5, 6}}) == run_graph::arrays{{0, 15}});
}
