// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/train/adam.hpp>
#include <gshard/core/ir/canonical_order.hpp>
#include <gshard/core/ir/permute_nodes.hpp>
#include <gshard/core/pass/positions.hpp>
#include <gshard/plan.hpp>

#include <array>
#include <cstddef>
#include <tuple>

// One program in two orders of its statements: its nodes are sorted in the same order, and its plans have the same cost.
namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

/// Two independent chains that join.
template <bool Swapped>
constexpr gs::graph two_chains() {
  gs::builder b;
  const gs::symbol x{&b, b.add_value(b.dims_of("AB", "x"), gs::dtype::f32)};
  b.program.inputs.push_back({gs::tensor_name("x"), x.id});
  const auto product = [&] { return gs::einsum<"ab,cb->ac">(x, x); };
  const auto rows = [&] { return gs::softmax(gs::relu(x)); };
  gs::symbol p, r;
  if (Swapped) {
    r = rows();
    p = product();
  } else {
    p = product();
    r = rows();
  }
  b.program.outputs.push_back({gs::tensor_name("y"), gs::einsum<"ac,cb->ab">(p, r).id});
  return b.program;
}
template <bool Swapped>
constexpr std::array<gs::op_ref, 4> sorted_kinds() {
  const gs::graph g = two_chains<Swapped>();
  std::array<gs::op_ref, 4> found{};
  std::size_t at = 0;
  for (const std::int32_t i : gs::detail::canonical_order(g)) found[at++] = g.nodes[std::size_t(i)].kind;
  return found;
}
static_assert(two_chains<false>().nodes[0].kind == op::einsum && two_chains<true>().nodes[0].kind == op::map);
static_assert(sorted_kinds<false>() == sorted_kinds<true>());
static_assert(sorted_kinds<false>()[3] == op::einsum);

/// Sorting preserves the stated order in which devices run nodes, and renumbers producers.
template <bool Swapped>
constexpr bool keeps_positions() {
  gs::graph g = two_chains<Swapped>();
  const gs::graph before = g;
  gs::detail::set_positions(g);
  gs::detail::canonical_order order(g);
  gs::detail::permute_nodes(g, order.begin());
  bool kept = g.nodes.size() == before.nodes.size();
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    kept = kept && before.nodes[std::size_t(g.nodes[i].place.position)].kind == g.nodes[i].kind;
    kept = kept && g.at(g.nodes[i].output()).producer == std::int32_t(i);
  }
  return kept;
}
static_assert(keeps_positions<false>() && keeps_positions<true>());

/// An update of a parameter is after its readers, also after one that is far from the end.
inline constexpr auto updated = [](auto& m, auto x, auto rate) {
  const auto w = m.param("w", "A", gs::init::zeros());
  const auto far = gs::relu(gs::relu(gs::relu(w)));
  gs::adam{}.minimize(m, gs::sum(x * w), rate);
  return gs::sum(far);
};
constexpr bool updates_after_readers() {
  const gs::graph g = gs::trace<updated, gs::mesh<gs::axis<"x">>, in<"A", P<"x">>, in<"">>();
  int readers = 0, updates = 0;
  bool wrong = false;
  for (const std::int32_t i : gs::detail::canonical_order(g)) {
    const gs::node& n = g.nodes[std::size_t(i)];
    bool reads = false;
    for (int k = 0; k < n.inputs; ++k) reads = reads || n.in[k] == g.parameters[0].value;
    if (!reads) continue;
    if (gs::updates_parameters(n)) ++updates;
    else ++readers;
    wrong = wrong || (updates > 0 && !gs::updates_parameters(n));
  }
  return readers >= 2 && updates == 1 && !wrong;
}
static_assert(updates_after_readers());

template <bool Swapped>
inline constexpr auto model = [](auto&, auto x, auto w) {
  const auto columns = [&] { return gs::annotate<P<none, "x">>(gs::einsum<"AB,BC->AC">(x, w)); };
  const auto whole = [&] { return gs::annotate<P<none, none>>(gs::relu(x)); };
  if constexpr (Swapped) {
    const auto b = whole();
    return std::tuple{columns(), b};
  } else {
    const auto a = columns();
    return std::tuple{a, whole()};
  }
};
template <bool Swapped>
constexpr std::int64_t bytes() {
  using program = gs::program<model<Swapped>, gs::mesh<gs::axis<"x", 4>>, in<"AB", P<"x", none>>, in<"BC", P<none, "x">>>;
  return program::plan.bytes_received(program::plan.bind({{'A', 64}, {'B', 64}, {'C', 64}}, std::array{4}));
}
static_assert(bytes<false>() == bytes<true>());

}  // namespace
