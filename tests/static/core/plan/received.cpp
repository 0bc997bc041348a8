// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/plan/received.hpp>

#include <gshard/plan.hpp>

#include "../partition/communication.hpp"

#include <array>
#include <complex>
#include <cstdint>

namespace gs = gshard;
using communication::plan_of;
namespace op = gs::op;
using gs::in, gs::none, gs::P, gs::plan_view;

namespace {

using line = gs::mesh<gs::axis<"x">>;
using grid = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

constexpr std::int64_t received(const plan_view& p, const gs::dims& sizes, const std::array<int, 2>& axes) {
  return p.bytes_received(p.bind(sizes, {axes.data(), std::size_t(p.mesh.rank())}));
}

// A gather: the device with the smallest shard receives most.
inline constexpr auto gathered = [](auto&, auto x) { return gs::annotate<P<none, none>>(x); };
constexpr plan_view rows = plan_of<gathered, line, in<"AB", P<"x", none>>>;
static_assert(received(rows, {{'A', 13}, {'B', 30}}, {4}) == (13 - 1) * 30 * 4);  // 4, 4, 4, 1 rows
static_assert(received(rows, {{'A', 5}, {'B', 30}}, {4}) == 5 * 30 * 4);          // 2, 2, 1, 0 rows
static_assert(received(rows, {{'A', 12}, {'B', 30}}, {4}) == 9 * 30 * 4 && received(rows, {{'A', 0}, {'B', 30}}, {4}) == 0);
static_assert(received(rows, {{'A', 13}, {'B', 30}}, {1}) == 0);
constexpr plan_view nested = plan_of<gathered, grid, in<"AB", P<gs::axes<"x", "y">, none>>>;
static_assert(received(nested, {{'A', 13}, {'B', 30}}, {2, 2}) == (13 - 3) * 30 * 4);  // 4, 3, 3, 3 rows
constexpr plan_view both = plan_of<gathered, grid, in<"AB", P<"x", "y">>>;
static_assert(received(both, {{'A', 3}, {'B', 5}}, {2, 2}) == (15 - 1 * 2) * 4);  // the last device has 1 x 2 elements
// The result does not depend on the number of devices.
static_assert(received(rows, {{'A', 1'000'003}, {'B', 30}}, {1 << 20}) == 1'000'003LL * 30 * 4);  // from row 1000003 on, devices have none
static_assert(received(both, {{'A', 1'000'003}, {'B', 5}}, {1 << 20, 1000}) == 1'000'003LL * 5 * 4);

// An exchange: with 5 rows and 7 columns on 3 devices, the second device has 2 rows and receives 3 x 3 elements.
inline constexpr auto exchanged = [](auto&, auto x) { return gs::annotate<P<none, "x">>(x); };
constexpr plan_view columns = plan_of<exchanged, line, in<"AB", P<"x", none>>>;
static_assert(received(columns, {{'A', 5}, {'B', 7}}, {3}) == 3 * 3 * 4);
static_assert(received(columns, {{'A', 6}, {'B', 6}}, {3}) == 4 * 2 * 4);
// To another axis: device (0,1) has rows 0 and 1, and needs 2 and 3.
inline constexpr auto moved = [](auto&, auto x) { return gs::annotate<P<"y", none>>(x); };
constexpr plan_view other_axis = plan_of<moved, grid, in<"AB", P<"x", none>>>;
static_assert(received(other_axis, {{'A', 4}, {'B', 5}}, {2, 2}) == 2 * 5 * 4);
static_assert(received(other_axis, {{'A', 4}, {'B', 5}}, {2, 1}) == 2 * 5 * 4);  // y has one device, which lacks the other half
static_assert(received(other_axis, {{'A', 4}, {'B', 5}}, {1, 2}) == 0);

// Sums: all other devices get blocks of ceil(n / p) numbers. Small sums gather all addends.
inline constexpr auto summed = [](auto&, auto x) { return gs::einsum<"AB->A">(x); };
constexpr plan_view sums = plan_of<summed, line, in<"AB", P<none, "x">>>;
static_assert(received(sums, {{'A', 701}, {'B', 6}}, {3}) == 4 * (234 + 701));  // 2 addends of its block of 234, and 467 sums
static_assert(received(sums, {{'A', 300}, {'B', 6}}, {3}) == 4 * 300 * 2);
static_assert(received(sums, {{'A', 341}, {'B', 6}}, {3}) == 4 * 341 * 2 && received(sums, {{'A', 342}, {'B', 6}}, {3}) == 4 * (114 + 342));
inline constexpr auto scattered = [](auto&, auto x) { return gs::annotate<P<"x">>(gs::einsum<"AB->A">(x)); };
constexpr plan_view scatters = plan_of<scattered, line, in<"AB", P<none, "x">>>;
static_assert(received(scatters, {{'A', 13}, {'B', 6}}, {4}) == 4 * 3 * 4);  // 3 addends of 4 numbers
inline constexpr auto complex_sum = [](auto&, auto x) { return gs::einsum<"AB->A">(x); };
constexpr plan_view complex_sums = plan_of<complex_sum, line, in<"AB", P<none, "x">, std::complex<float>>>;
static_assert(received(complex_sums, {{'A', 701}, {'B', 6}}, {3}) == 4 * (468 + 1402));

// Blocks around a ring: 5 rows on 4 devices are 2, 2, 1, 0. A device receives all except the smallest block.
inline constexpr auto product = [](auto&, auto x, auto w) { return gs::einsum<"AB,BC->AC">(x, w); };
constexpr plan_view ring = plan_of<product, line, in<"AB", P<"x", none>>, in<"BC", P<"x", none>>, gs::extent<'A', 5>, gs::extent<'B', 7>,
                                   gs::extent<'C', 3>, gs::loop_above<0>>;
static_assert(ring.count(op::looped_einsum) == 1);
static_assert(received(ring, {}, {4}) == (7 - 1) * 3 * 4 && received(ring, {}, {7}) == 6 * 3 * 4 && received(ring, {}, {5}) == 7 * 3 * 4);

// Windows: rolled by one, with 7 rows on 4 devices (2, 2, 2, 1), each lacks one row.
inline constexpr auto rolled = [](auto&, auto x) { return gs::roll(x, 0, 1); };
constexpr plan_view halo = plan_of<rolled, line, in<"AB", P<"x", none>>, gs::extent<'A', 7>, gs::extent<'B', 3>>;
static_assert(received(halo, {}, {4}) == 3 * 4);

// Extents that are missing, negative, or too large to count.
constexpr std::int64_t lots = std::int64_t(1) << 40;
static_assert(received(rows, {{'A', 13}}, {4}) == gs::uncountable && received(rows, {{'A', 13}, {'B', -4}}, {4}) == gs::uncountable);
static_assert(received(rows, {{'A', lots}, {'B', lots}}, {4}) == gs::uncountable && received(rows, {{'A', 13}, {'B', 30}}, {}) == gs::uncountable);
static_assert(received(rows, {{'A', INT64_MAX}, {'B', 0}}, {4}) == gs::uncountable);
static_assert(received(nested, {{'A', 13}, {'B', 30}}, {INT32_MAX, 2}) == gs::uncountable);
static_assert(received(rows, {{'A', lots}, {'B', 1 << 10}}, {4}) == 3 * (lots / 4) * (1 << 10) * 4);

}  // namespace
