// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every element type, with any layout of its tensors and on any mesh: data movement of all types, arithmetic of complex numbers, integers
// and masks.
#include "run_graph.hpp"

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/broadcast.hpp>
#include <gshard/core/trace/complex.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/index/dynamic_slice.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/ops/window/slice.hpp>

namespace gs = gshard;
using gs::dtype, gs::einsum, gs::symbol;
using run_graph::every_sharding, run_graph::trace, run_graph::lay_out;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

const std::vector<gs::dims> element_sizes{{{'A', 6}, {'B', 8}, {'C', 6}}, {{'A', 5}, {'B', 7}, {'C', 3}}, {{'A', 2}, {'B', 1}, {'C', 4}}};

/// The numbers of a tensor as doubles for comparison. A complex number gives both parts.
symbols as_doubles(const symbols& all) {
  symbols result;
  for (const symbol& s : all) {
    result.push_back(gs::cast(gs::real(gs::is_complex(s.get().type) ? s : gs::cast(s, dtype::f64)), dtype::f64));
    if (gs::is_complex(s.get().type)) result.push_back(gs::cast(gs::imag(s), dtype::f64));
  }
  return result;
}

/// f of x, cast to the type, in any sharding.
template <class F>
void check_moves(dtype type, const F& f) {
  CAPTURE(gs::name(type));
  every_sharding(trace({{"AB"}, {"C", dtype::i32, 'A'}},
                       [&](const scope&, given x) { return as_doubles(f(lay_out(gs::cast(x[0], type)), x[1])); }),
                 {.dims = element_sizes, .most = 60});
}

/// x + iy, in any sharding.
symbol any_complex(symbol x, symbol y) { return lay_out(gs::complex(x, y)); }

}  // namespace

TEST_CASE("data movement of every element type") {
  for (int t = 0; t < gs::element_types; ++t) {
    check_moves(dtype(t), [](symbol x, symbol) { return symbols{einsum<"ab->ba">(x), lay_out(x)}; });
    check_moves(dtype(t), [](symbol x, symbol) { return symbols{gs::pad(x, 0, 1, 2, 1, 1), gs::pad(x, 1, -1, 1)}; });
    check_moves(dtype(t), [](symbol x, symbol) { return symbols{gs::reverse(x, 1), gs::roll(x, 0, 1)}; });
    check_moves(dtype(t), [](symbol x, symbol) { return symbols{gs::concat(symbols{x, gs::reverse(x, 0)}, 1)}; });
    check_moves(dtype(t), [](symbol x, symbol ids) { return symbols{gs::gather(x, ids)}; });
    check_moves(dtype(t), [](symbol x, symbol) {
      return symbols{gs::merge_dims(x, 0),
                     gs::broadcast<"AB,A->BA">(x, einsum<"ab->a">(gs::is_complex(x.get().type) ? x : gs::cast(x, dtype::f64)))};
    });
    check_moves(dtype(t), [](symbol x, symbol ids) {
      return symbols{gs::dynamic_update_slice(x, gs::slice(x, 1, 0, 1), 1, gs::reduce_max<"c->">(ids))};
    });
  }
}

TEST_CASE("gradients flow through tensors that are stored in half precision, wherever they move") {
  const auto check = [](const auto& f) {
    for (const dtype type : {dtype::bf16, dtype::f16}) {
      CAPTURE(gs::name(type));
      const auto program = [&](dtype stored) {
        return trace({{"AB"}, {"C", dtype::i32, 'A'}}, [=](const scope&, given x) {
          const symbol y = f(stored == dtype::f64 ? lay_out(x[0]) : lay_out(gs::cast(x[0], stored)), x[1]);
          const symbol wide = stored == dtype::f64 ? y : gs::cast(y, dtype::f64);
          return symbols{wide, gs::gradients(gs::sum(wide * wide), symbols{x[0]})[0]};
        });
      };
      const run_graph::traced t = program(type), exact = program(dtype::f64);  // inputs are multiples of 1/4, which are exact in both types
      every_sharding(t, {.dims = element_sizes, .most = 40});
      const run_graph::arrays sources = run_graph::random_sources(t, element_sizes[0], 1);
      CHECK(run_graph::distance(run_graph::run(t, run_graph::serial(t, element_sizes[0]), sources),
                                run_graph::run(exact, run_graph::serial(exact, element_sizes[0]), sources)) == 0);
    }
  };
  check([](symbol x, symbol) { return einsum<"ab->ba">(x); });
  check([](symbol x, symbol) { return gs::pad(x, 0, 1, 2, 1, 1); });
  check([](symbol x, symbol) { return gs::slice(gs::roll(gs::reverse(x, 1), 0, 1), 0, 0, 1); });
  check([](symbol x, symbol) { return gs::concat(symbols{x, gs::reverse(x, 0)}, 1); });
  check([](symbol x, symbol ids) { return gs::gather(x, ids); });
  check([](symbol x, symbol) { return gs::merge_dims(x, 0); });
  check([](symbol x, symbol) { return gs::expand_dims<1>(x); });
  check([](symbol x, symbol) { return gs::select(gs::roll(x, 0, 1), x, gs::reverse(x, 1)); });
  check([](symbol x, symbol ids) { return gs::dynamic_update_slice(x, gs::slice(gs::reverse(x, 0), 1, 0, 1), 1, gs::reduce_max<"c->">(ids)); });
}

TEST_CASE("einsums of complex tensors: contracted, free and batch indices, conjugation") {
  const auto check = [](auto&& f) {
    every_sharding(trace({{"AB"}, {"AB"}, {"BC"}, {"BC"}},
                         [&](const scope&, given x) { return as_doubles(f(any_complex(x[0], x[1]), any_complex(x[2], x[3]))); }),
                   {.dims = element_sizes, .most = 150});
  };
  check([](symbol z, symbol w) { return symbols{einsum<"ab,bc->ac">(z, w)}; });
  check([](symbol z, symbol w) { return symbols{einsum<"ab,bc->ca">(gs::conj(z), w)}; });
  check([](symbol z, symbol) { return symbols{einsum<"ab,cb->ac">(z, gs::conj(z)), einsum<"ab,ab->">(gs::conj(z), z)}; });
  check([](symbol z, symbol w) { return symbols{einsum<"ab,bc->b">(z, w), gs::sum<"ab->b">(z), gs::sum(w)}; });
  check([](symbol z, symbol w) { return symbols{einsum<"ab,bc->abc">(z, w)}; });
}

TEST_CASE("element-wise functions of complex tensors") {
  every_sharding(trace({{"AB"}, {"AB"}, {"B"}, {"B"}},
                       [](const scope&, given x) {
                         const symbol z = any_complex(x[0], x[1]), w = any_complex(x[2], x[3]);
                         return as_doubles({z + w, z - w, z * w, 2 * z, gs::conj(z * gs::conj(w)), gs::select(x[0] > 0, 1, 0) + gs::real(z),
                                            gs::select(gs::equal(z, w), z, w), gs::select(gs::cast(x[0] > 0, dtype::boolean), z, z + 1)});
                       }),
                 {.dims = element_sizes, .most = 200});
}

TEST_CASE("gradients of real losses flow through complex tensors in any sharding") {
  every_sharding(trace({{"AB"}, {"AB"}, {"BC"}},
                       [](const scope&, given x) {
                         const symbol z = any_complex(x[0], x[1]), w = gs::complex(x[2], 2 * x[2]);
                         const symbol y = lay_out(einsum<"ab,bc->ac">(gs::conj(z), w) * einsum<"ab,bc->ac">(z, gs::conj(w)));
                         const symbol loss = gs::sum(gs::real(y) * gs::imag(y));
                         symbols all{loss};
                         for (const symbol& g : gs::gradients(loss, symbols{z, x[0], x[1], x[2]})) all.push_back(g);
                         return as_doubles(all);
                       }),
                 {.dims = element_sizes, .tolerance = 1e-13, .most = 100});
}

TEST_CASE("integers: arithmetic, comparisons, sums of products, reductions") {
  for (const dtype type : {dtype::i32, dtype::i64})
    every_sharding(trace({{"AB"}, {"BC"}, {"B"}},
                         [&](const scope&, given x) {
                           const auto whole = [&](symbol s) { return lay_out(gs::cast(4 * s, type)); };
                           const symbol a = whole(x[0]), b = whole(x[1]), c = whole(x[2]);
                           return as_doubles({a + c, a - c, 3 * (a * c) + 1, a < c, gs::equal(a, c), gs::select(a < c, a, a + 1),
                                              einsum<"ab,bc->ac">(a, b), gs::sum<"ab->b">(a), gs::reduce_max<"ab->a">(a),
                                              gs::reduce_min<"ab->b">(a), gs::reduce_prod<"bc->b">(b)});
                         }),
                   {.dims = element_sizes, .most = 100});
}

TEST_CASE("masks") {
  every_sharding(trace({{"AB"}, {"B"}},
                       [](const scope&, given x) {
                         const symbol a = lay_out(gs::cast(x[0] > 0, dtype::boolean)), b = lay_out(gs::cast(x[1], dtype::boolean));
                         return as_doubles({gs::logical_and(a, b), gs::logical_or(a, b), gs::logical_not(b), gs::equal(a, b),
                                            gs::select(a, x[0], x[1]), gs::select(a, b, gs::logical_not(a))});
                       }),
                 {.dims = element_sizes, .most = 200});
}
