// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The gradients of the operations that every program can have: einsum, map, scale, cast, reshape and annotate.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/grad/differentiator.hpp>
#include <gshard/core/trace/complex.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/shape.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// x where the indices of two dims are equal, else 0.
constexpr symbol emit_on_diagonal(symbol x, int first, int second) {
  const auto index = [&](int along) { return cast(emit_iota(*x.owner, x.get().dims, along), x.get().type); };
  const short_list all = counting(x.rank());
  return emit_map_of(own_function<arithmetic::where_equal>, std::array{x, index(first), index(second)}, std::array{all, all, all}, x);
}

/// The gradient of each operand is the einsum of dy and the other operand's conjugate to its own letters. Indices that only this operand
/// has were summed, so its gradient is broadcast along them.
constexpr void einsum_gradient(differentiator& d, const node& n) {
  builder& b = d.owner();
  const symbol dy = d.gradient(n);
  const auto conjugate = [&](symbol x) { return is_complex(x.get().type) ? conj(x) : x; };
  const bool rounds = b.options.bf16_products;
  b.options.bf16_products = n.attr.rounds_to_bf16;
  for (int i = n.inputs; i-- > 0;) {  // operand 0 last, because its gradient is usually needed next
    if (!d.wants(n, i)) continue;
    const short_list mine = n.rule.in[i];
    const symbol operands[2]{dy, n.inputs > 1 ? conjugate(d.in(n, 1 - i)) : dy};
    const short_list factors[2]{n.rule.out[0], n.inputs > 1 ? n.rule.in[1 - i] : short_list{}};
    const std::uint32_t elsewhere = factors[0].mask() | factors[1].mask();
    std::uint32_t seen = 0;
    short_list known;
    std::uint32_t repeated = 0;  // dims
    for (int k = 0; k < mine.count; ++k) {
      const int f = mine[k];
      if ((seen >> f) & 1u) repeated |= 1u << k;
      else if ((elsewhere >> f) & 1u) known.push_back(f);
      seen |= 1u << f;
    }
    symbol g = dy;
    if (n.inputs > 1 || !known.same(factors[0])) g = emit_einsum(b, list_view(operands, n.inputs), list_view(factors, n.inputs), known);
    if (!b.failed() && known.count < mine.count) g = emit_broadcast(g, known, mine, d.in(n, i).get().dims);
    for (int k = 0; repeated != 0 && !b.failed(); ++k, repeated >>= 1)
      if (repeated & 1u) g = emit_on_diagonal(g, mine.find(mine[k]), k);
    d.add(n.input(i), g);
  }
  b.options.bf16_products = rounds;
}

constexpr void map_gradient(differentiator& d, const node& n) {
  builder& b = d.owner();
  const symbol dy = d.gradient(n);
  const pointwise& f = *n.attr.function;
  for (int i = 0; i < n.inputs; ++i) {
    if (!d.wants(n, i)) continue;
    symbol g = dy;
    if (f.linear) {
      const double c = f.coefficient[std::size_t(i)];
      if (c != 1) g = emit_scale(dy, c);
    } else {
      if (!f.differentiable) return b.fail(fault::not_differentiable, "map: second derivative");
      sharding_rule r = n.rule;
      r.in[n.inputs] = n.rule.out[0];
      std::int32_t ids[sharding_rule::most_in]{};
      for (int k = 0; k < n.inputs; ++k) ids[k] = n.in[k];
      if (f.slope_by_result) {
        ids[0] = n.output();
        r.in[0] = n.rule.out[0];
      }
      if (f.own == arithmetic::number_of<arithmetic::choose>) {  // its slopes read the condition alone
        if (d.in(n, 0).get().type != dy.get().type) ids[0] = emit_cast(d.in(n, 0), dy.get().type).id;  // a tensor in half precision
        ids[1] = ids[2] = dy.id;
        r.in[1] = r.in[2] = n.rule.out[0];
      }
      if (f.derivative(i).own == arithmetic::number_of<arithmetic::zero>) continue;
      ids[n.inputs] = dy.id;
      g = {&b, b.add_node(op::map, list_view(ids, std::size_t(n.inputs) + 1), r, {.function = &f.derivative(i)},
                          {{dy.get().dims, dy.get().type}})};
    }
    const short_list& mine = n.rule.in[std::size_t(i)];
    if (!mine.same(n.rule.out[0])) g = emit_einsum(b, list_view(&g, 1), list_view(&n.rule.out[0], 1), mine);
    d.add(n.input(i), g);
  }
}

constexpr void scale_gradient(differentiator& d, const node& n) {
  d.add(n.input(0), emit_scale(d.gradient(n), n.attr.factor, n.attr.dims, own<scale_attributes>(n).power));
}

constexpr void cast_gradient(differentiator& d, const node& n) {
  const symbol dy = d.gradient(n);
  const dtype from = d.in(n, 0).get().type, type = gradient_type(from);
  if (!has_gradient(from)) return;
  d.add(n.input(0), dy.get().type == type ? dy : emit_cast(dy, type, own<cast_attributes>(n).imaginary));
}

constexpr void reshape_gradient(differentiator& d, const node& n) {
  d.add(n.input(0), emit_reshape_back(n, d.in(n, 0), d.gradient(n)));
}

constexpr void annotate_gradient(differentiator& d, const node& n) {
  const symbol dy = d.gradient(n);
  const value like = (n.attr.gradient_as_operand ? d.in(n, 0) : d.out(n)).get();
  d.add(n.input(0), emit_annotate(dy, like.layout, like.priority, n.attr.may_move, n.rule.in[0] == n.rule.out[0]));
}

}}}  // namespace gshard::v0::detail
