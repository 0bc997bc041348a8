// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program with a known machine: if starts of collectives are expensive, it has fewer; if bytes are expensive, it sends fewer bytes.
#include <gshard/core/program/runs_on.hpp>

#include <array>
#include <cstdint>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"a", 4>, gs::axis<"b", 4>>;
/// A sum over both axes. Each device along "a" needs its own block of it.
inline constexpr auto product = [](auto&, auto x, auto w) { return gs::annotate<P<"a", none>>(gs::einsum<"MK,KN->MN">(x, w)); };
template <class... Options>
using program = gs::program<product, mesh, in<"MK", P<none, gs::axes<"a", "b">>>, in<"KN", P<gs::axes<"a", "b">, none>>,
                            gs::extent<'M', 64>, gs::extent<'K', 64>, gs::extent<'N', 64>, Options...>;

constexpr gs::machine slow_start{.link_bytes = 1e9, .start = 1e-3}, slow_links{.link_bytes = 1e6, .start = 1e-6};
template <class Program>
constexpr std::int64_t received() {
  const gs::extents e = Program::plan.bind({}, std::array{4, 4});
  std::int64_t bytes = 0;
  for (const gs::node& n : Program::plan.steps) bytes += Program::plan.bytes_received(n, e);
  return bytes;
}

using by_start = program<gs::runs_on<slow_start>>;
using by_bytes = program<gs::runs_on<slow_links>>;
static_assert(by_start::plan.collectives() == 1);
static_assert(by_bytes::plan.collectives() == 2);
static_assert(received<by_bytes>() < received<by_start>());
// Without a machine, a start counts as 64 KiB: more than these matrices of 16 KiB.
static_assert(program<>::plan.collectives() == 1);

}  // namespace
