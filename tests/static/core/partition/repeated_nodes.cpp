// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/partition/repeated_nodes.hpp>
#include <gshard/plan.hpp>

#include <array>
#include <cstdint>

// If a tensor is larger than its operands, the operands are resharded, and the node runs again.
namespace gs = gshard;
namespace op = gs::op;
using gs::extent, gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x", 4>>;
constexpr gs::dims sizes{{'A', 64}, {'B', 32}, {'C', 16}};

template <auto Model, class... Inputs>
constexpr std::int64_t bytes() {
  using program = gs::program<Model, mesh, Inputs..., extent<'A', 64>, extent<'B', 32>, extent<'C', 16>>;
  return program::plan.bytes_received(program::plan.bind(sizes, std::array{4}));
}
constexpr std::int64_t gathered(std::int64_t elements, std::int64_t size = 4) { return elements * size / 4 * 3; }

using rows = in<"A", P<"x">>;
using ids = in<"A", P<"x">, std::int32_t>;
constexpr auto whole = [](auto x) { return gs::replicate(x); };

// A broadcast gathers [A], not [A, B].
static_assert(bytes<[](auto&, auto x, auto like) { return whole(gs::broadcast<"A,AB->AB">(x, like)); }, rows, in<"AB", P<none, none>>>() ==
              gathered(64));
// Also through operations of the same size.
static_assert(bytes<[](auto&, auto x, auto like) { return whole(gs::relu(2 * gs::broadcast<"A,AB->AB">(x, like))); }, rows,
                    in<"AB", P<none, none>>>() == gathered(64));
// A one_hot gathers ids. An outer product gathers its operands.
static_assert(bytes<[](auto& m, auto x) { return whole(gs::one_hot<"B">(x) * gs::cast<float>(gs::iota<"B">(m))); }, ids>() == gathered(64));
static_assert(bytes<[](auto&, auto x, auto y) { return whole(gs::einsum<"A,B->AB">(x, y)); }, rows, in<"B", P<none>>>() == gathered(64));
// A cast to a wider type gathers the narrow one, a pad and a concat gather their operands.
static_assert(bytes<[](auto&, auto x) { return whole(gs::cast<double>(x)); }, rows>() == gathered(64));
static_assert(bytes<[](auto&, auto x) { return whole(gs::pad(x, 0, 32, 32)); }, rows>() == gathered(64));
static_assert(bytes<[](auto&, auto x, auto y) { return whole(gs::concat({gs::broadcast<"A,AB->AB">(x, y), y}, 1)); }, rows,
                    in<"AB", P<none, none>>>() == gathered(64));
// A lookup in a replicated table gathers ids.
static_assert(bytes<[](auto&, auto table, auto x) { return whole(gs::gather(table, x)); }, in<"CB", P<none, none>>, ids>() == gathered(64));
// A partial sum is completed before it is repeated: an all_reduce of [B], in one start, because it is small.
static_assert(bytes<[](auto&, auto x, auto like) { return whole(gs::broadcast<"B,AB->AB">(gs::sum<"AB->B">(x), like)); },
                    in<"AB", P<"x", none>>, in<"AB", P<none, none>>>() == 3 * 32 * 4);

// A tensor as large as its operands is moved itself.
static_assert(bytes<[](auto&, auto x) { return whole(gs::relu(x)); }, rows>() == gathered(64));

// A node runs again right before its reader: of eight whole broadcasts that are read one after the other, only one exists at a time.
constexpr auto eight = [](auto&, auto x, auto y, auto like) {
  gs::list<gs::symbol> repeats;
  for (int i = 0; i < 8; ++i) repeats.push_back(gs::broadcast<"A,AB->AB">(x + double(i), like));
  for (const gs::symbol& r : repeats) y = gs::softmax(y * whole(r));
  return y;
};
using read_in_turn = gs::program<eight, mesh, rows, in<"AB", P<none, none>>, in<"AB", P<none, none>>, extent<'A', 64>, extent<'B', 32>>;
constexpr std::int64_t tensor_bytes = 64 * 32 * 4;
static_assert(gs::price(read_in_turn::plan, read_in_turn::plan.bind(sizes, std::array{4}), gs::machine{}).peak < 5 * tensor_bytes);

// The operands of a chain of nodes are priced once each, and long chains are not repeated, so pricing takes little time.
template <int Turns>
inline constexpr auto powers = [](auto&, auto x, auto y) {
  auto z = gs::einsum<"A,B->AB">(x, y);
  for (int i = 0; i < Turns; ++i) z = z * gs::relu(z);
  return std::array{gs::split<"x">(z, 0), whole(z)};
};
template <int Turns>
constexpr std::int64_t bytes_of_powers = bytes<powers<Turns>, rows, in<"B", P<none>>>();
static_assert(bytes_of_powers<1> == gathered(64) && bytes_of_powers<30> == gathered(64 * 32));

// The same for chains in which the first operand runs again, and for chains deeper than a compiler's recursion limit.
template <int Turns>
inline constexpr auto swapped_powers = [](auto&, auto x, auto y) {
  auto z = gs::einsum<"A,B->AB">(x, y);
  for (int i = 0; i < Turns; ++i) z = gs::relu(z) * z;
  return std::array{gs::split<"x">(z, 0), whole(z)};
};
static_assert(bytes<swapped_powers<30>, rows, in<"B", P<none>>>() == gathered(64 * 32));
template <int Turns>
inline constexpr auto chain = [](auto&, auto x, auto y) {
  auto z = gs::einsum<"A,B->AB">(x, y);
  for (int i = 0; i < Turns; ++i) z = gs::relu(z);
  return std::array{gs::split<"x">(z, 0), whole(z)};
};
static_assert(bytes<chain<600>, rows, in<"B", P<none>>>() == gathered(64 * 32));

}  // namespace
