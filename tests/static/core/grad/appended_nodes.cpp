// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/grad/appended_nodes.hpp>
#include <gshard/core/trace/named_scope.hpp>
#include <gshard/plan.hpp>

#include <string_view>

// Gradients are appended in the reverse order of the program.
namespace gs = gshard;
namespace op = gs::op;
using gs::in;

namespace {

using mesh = gs::mesh<gs::axis<"x", 4>>;

/// Two towers from one weight: the gradients of the second one come before those of the first.
inline constexpr auto towers = [](auto& m, auto w, auto x, auto y) {
  const auto tower = [&](auto in) { return gs::sum(gs::relu(gs::einsum<"ab,bc->ac">(in, w))); };
  gs::symbol first, second;
  {
    const gs::named_scope scope(m, "first");
    first = tower(x);
  }
  {
    const gs::named_scope scope(m, "second");
    second = tower(y);
  }
  return gs::gradients(first + second, {w})[0];
};
constexpr bool runs_backwards() {
  const gs::graph g = gs::trace<towers, mesh, in<"BC">, in<"AB">, in<"AB">>();
  bool in_first = false, right = true;
  int of_second = 0;
  for (const gs::node& n : g.nodes) {
    if (!n.place.gradient || !n.place.scope || n.kind != op::einsum) continue;
    const bool first = std::string_view(n.place.scope) == "first";
    in_first = in_first || first;
    of_second += !first;
    right = right && first == in_first;
  }
  return right && in_first && of_second > 0;
}
static_assert(runs_backwards());

}  // namespace
