// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every operation whose result is read through windows, and its gradient, with any layout of its operands, equal those on one device.
#include "with_gradients.hpp"

#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/convolution.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/pool.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/ops/window/slice.hpp>

namespace gs = gshard;
using gs::symbol;
using run_graph::every_sharding, run_graph::trace, run_graph::lay_out, run_graph::with_gradients;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

const std::vector<gs::dims> window_sizes{{{'A', 12}, {'B', 6}}, {{'A', 7}, {'B', 3}}, {{'A', 5}, {'B', 1}}};

/// f of the first operand, and its gradient.
void check(const std::function<symbol(symbol)>& f) {
  every_sharding(trace({{"AB"}},
                       [&](const scope&, given x) {
                         const symbol y = f(x[0]);
                         symbols results{lay_out(y)};
                         for (const symbol& g : gs::gradients(gs::sum(y * y), x.first(1))) results.push_back(lay_out(g));
                         return results;
                       }),
                 {.dims = window_sizes, .most = 400});
}

}  // namespace

TEST_CASE("slice") {
  check([](symbol x) { return gs::slice(x, 0, 1, 5); });
  check([](symbol x) { return gs::slice(x, 0, 0, 5, 2); });
  check([](symbol x) { return gs::slice(x, 0, 2, 2); });
}

TEST_CASE("pad") {
  check([](symbol x) { return gs::pad(x, 0, 2, 1); });
  check([](symbol x) { return gs::pad(x, 1, 0, 5, 0, 0.25); });
  check([](symbol x) { return gs::pad(x, 0, 1, 0, 2); });
  check([](symbol x) { return gs::pad(x, 0, -1, -2); });
  check([](symbol x) { return gs::pad(gs::pad(x, 0, 3, 0), 1, 0, 1); });
}

TEST_CASE("reverse") {
  check([](symbol x) { return gs::reverse(x, 0); });
  check([](symbol x) { return gs::reverse(gs::reverse(x, 1), 0); });
}

TEST_CASE("roll") {
  for (const int shift : {1, -2, 3, 30, 0}) check([=](symbol x) { return gs::roll(x, 0, shift); });
}

TEST_CASE("concat") {
  every_sharding(trace({{"AB"}, {"BB"}, {"AB"}},
                       [&](const scope&, given x) {
                         const symbol y = gs::concat({x[0], x[1], x[2], x[0]}, 0);
                         symbols results{lay_out(y)};
                         for (const symbol& g : gs::gradients(gs::sum(y * y), x)) results.push_back(g);
                         return results;
                       }),
                 {.dims = window_sizes, .most = 400});
  check([](symbol x) { return gs::concat({x, gs::slice(x, 0, 0, 3), gs::reverse(x, 0)}, 0); });
}

TEST_CASE("convolutions in one dim: stride, padding, window dilation, base dilation") {
  const std::vector<gs::dims> images{{{'B', 2}, {'X', 12}, {'I', 3}, {'O', 4}, {'K', 3}},
                                     {{'B', 1}, {'X', 7}, {'I', 2}, {'O', 3}, {'K', 2}}};
  using w = gs::conv_window;
  for (const w how : {w{}, w{1, 1, 1}, w{2, 1, 0}, w{1, 2, 2, 2}, w{1, 1, 1, 1, 2}, w{2, 2, 1, 1, 3}, w{3, 0, 2, 2, 2}})
    every_sharding(trace({{"BXI"}, {"KIO"}},
                         [&](const scope&, given x) {
                           const symbol y = gs::conv<"BXI,xIO->BXO">(x[0], x[1], {how});
                           symbols results{lay_out(y)};
                           for (const symbol& g : gs::gradients(gs::sum(y * y), x)) results.push_back(lay_out(g));
                           return results;
                         }),
                   {.dims = images, .most = 60});
}

TEST_CASE("convolutions in two dims, and gradients of gradients") {
  const std::vector<gs::dims> images{{{'B', 2}, {'X', 6}, {'Y', 7}, {'I', 2}, {'O', 2}, {'K', 3}, {'L', 2}}};
  every_sharding(trace({{"BIXY"}, {"KLIO"}},
                       [&](const scope&, given x) {
                         const symbol y = gs::conv<"BIXY,xyIO->BOXY">(x[0], x[1], {{.low = 1, .high = 1}, {.stride = 2, .high = 1}});
                         symbols results{lay_out(y)};
                         // Not y * y: a map can be differentiated only once.
                         const auto square = [](symbol s, symbol t) { return gs::einsum<"abcd,abcd->">(s, t); };
                         const auto first = gs::gradients(square(y, y), x);
                         for (const symbol& g : first) results.push_back(lay_out(g));
                         for (const symbol& g : gs::gradients(square(first[0], first[0]), x)) results.push_back(g);
                         for (const symbol& g : gs::gradients(square(first[1], first[1]), x)) results.push_back(g);
                         return results;
                       }),
                 {.dims = images, .most = 60});
}

namespace {

/// A convolution and its gradients. Axes may shard its taps, its positions, or both.
template <gs::fixed_string Equation>
void check_taps(const std::vector<run_graph::input>& inputs, const std::vector<gs::dims>& images, const std::vector<gs::conv_window>& how,
                std::size_t most) {
  every_sharding(trace(inputs,
                       [&](const scope&, given x) {
                         const symbol y = gs::conv<Equation>(x[0], x[1], how);
                         symbols results{lay_out(y)};
                         for (const symbol& g : gs::gradients(gs::sum(y * y), x)) results.push_back(lay_out(g));
                         return results;
                       }),
                 {.dims = images, .most = most});
}

}  // namespace

TEST_CASE("convolutions of many taps: as many as the operand is long, fewer than devices, more than positions") {
  const std::vector<gs::dims> images{{{'B', 2}, {'X', 12}, {'I', 2}, {'O', 3}, {'K', 12}},
                                     {{'B', 3}, {'X', 7}, {'I', 1}, {'O', 2}, {'K', 5}},
                                     {{'B', 1}, {'X', 5}, {'I', 2}, {'O', 1}, {'K', 2}},
                                     {{'B', 2}, {'X', 4}, {'I', 1}, {'O', 2}, {'K', 1}}};
  using w = gs::conv_window;
  for (const w how : {w{}, w{1, 1, 1}, w{2, 3, 1}, w{1, 5, 4, 2}, w{1, 4, 4, 1, 2}, w{2, 6, 9, 2, 3}, w{1, -1, -1}, w{1, 2, -1, 1, 3}}) {
    check_taps<"BXI,BxO->XIO">({{"BXI"}, {"BKO"}}, images, {how}, 60);
    check_taps<"BXI,xIO->BXO">({{"BXI"}, {"KIO"}}, images, {how}, 60);
  }
}

TEST_CASE("convolutions of many taps in two and three dims") {
  using w = gs::conv_window;
  const std::vector<gs::dims> images{{{'B', 2}, {'X', 6}, {'Y', 5}, {'I', 2}, {'O', 2}, {'K', 6}, {'L', 4}},
                                     {{'B', 1}, {'X', 5}, {'Y', 4}, {'I', 1}, {'O', 2}, {'K', 2}, {'L', 1}}};
  check_taps<"BXYI,BxyO->XYIO">({{"BXYI"}, {"BKLO"}}, images, {w{1, 1, 0}, w{2, 2, 2, 1, 2}}, 100);
  check_taps<"BIXY,xyIO->BOXY">({{"BIXY"}, {"KLIO"}}, images, {w{1, 3, 2}, w{1, 3, 0, 2}}, 100);
  const std::vector<gs::dims> volumes{{{'X', 4}, {'Y', 3}, {'Z', 5}, {'I', 2}, {'O', 2}, {'K', 4}, {'L', 2}, {'M', 3}}};
  check_taps<"IXYZ,xyzIO->XYZO">({{"IXYZ"}, {"KLMIO"}}, volumes, {w{1, 1, 1}, w{2, 1, 0}, w{1, 2, -1, 2}}, 60);
}

TEST_CASE("pooling") {
  using w = gs::conv_window;
  const std::vector<std::vector<gs::pool_window>> windows{
      {{0, 3, {}}}, {{0, 2, w{2}}}, {{0, 3, w{1, 1, 1}}, {1, 2, w{1, 0, 1}}}, {{0, 3, w{2, 2, 1, 2, 1}}}, {{0, 3, w{2, 1, 1, 1, 2}}}};
  for (const auto& over : windows) {
    check([&](symbol x) { return gs::sum_pool(x, over); });
    check([&](symbol x) { return gs::mean_pool(x, over); });
    every_sharding(trace({{"AB"}},
                         [&](const scope&, given x) {
                           const symbol y = gs::max_pool(x[0], over);
                           symbols results{lay_out(y), gs::min_pool(x[0], over)};
                           for (const symbol& g : gs::gradients(gs::sum(y), x)) results.push_back(lay_out(g));
                           return results;
                         }),
                   {.dims = window_sizes, .most = 150});
  }
}
