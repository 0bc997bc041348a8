// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/list.hpp>
#include <gshard/base/list_view.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/map.hpp>
#include <gshard/trace/parameter_scope.hpp>
#include <gshard/trace/random.hpp>
#include <gshard/trace/routing.hpp>
#include <gshard/trace/rows.hpp>
#include <gshard/trace/shape.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace gshard { inline namespace v0 {

namespace detail {

template <class T, int Number>
void fill_row(const T* const*, const std::int64_t*, T* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = T(Number);
}
/// The same number everywhere, as a map without operands: a gradient's start does not wait for the value it is a gradient of.
template <int Number>
inline constexpr pointwise pointwise_constant{
    .f32 = fill_row<float, Number>, .f64 = fill_row<double, Number>};

/// Reverse mode over the nodes of a program: walks them backwards, and for every node that has a gradient on a result appends
/// the nodes that compute the gradients of its operands.
class differentiator {
 public:
  constexpr differentiator(builder& b, std::int32_t of, list_view<symbol> wanted)
      : b_(b), gradients_(b.program.values.size(), -1), needed_(b.program.values.size(), false) {
    for (const symbol& s : wanted) needed_[std::size_t(s.id)] = true;
    char* const needed = needed_.data();
    for (const node& n : b.program.nodes)
      for (int i = 0; i < n.inputs; ++i)
        if (needed[n.in[i]])
          for (int o = 0; o < n.outputs; ++o) needed[n.out[o]] = true;
    gradients_[std::size_t(of)] = emit_constant(pointwise_constant<1>, at(of)).id;
  }

  constexpr void run() {
    for (std::size_t i = b_.program.nodes.size(); i-- > 0 && !b_.failed();) {
      const node n = b_.program.nodes[i];
      bool reached = false;
      for (int o = 0; o < n.outputs; ++o)
        if (std::size_t(n.out[o]) < gradients_.size() && gradients_[std::size_t(n.out[o])] >= 0) reached = true;
      bool wanted = false;
      for (int k = 0; k < n.inputs; ++k) wanted = wanted || wants(n, k);
      if (reached && wanted) pull_back(n);
    }
  }

  /// The gradient of `x`; zeros if the result does not depend on it.
  constexpr symbol of(symbol x) {
    const std::int32_t g = gradients_[std::size_t(x.id)];
    return g >= 0 ? at(g) : emit_constant(pointwise_constant<0>, x);
  }

 private:
  builder& b_;
  list<std::int32_t> gradients_;  // by value, -1: none so far
  list<char> needed_;             // by value: depends on something whose gradient is wanted

  constexpr symbol at(std::int32_t id) { return {&b_, id}; }
  constexpr symbol in(const node& n, int i) { return at(n.input(i)); }
  constexpr symbol out(const node& n, int i = 0) { return at(n.output(i)); }
  constexpr bool wants(const node& n, int i) const { return needed_[std::size_t(n.input(i))]; }

  constexpr symbol emit_constant(const pointwise& number, symbol like) {
    rule r;
    r.out[0] = counting(like.rank());
    attributes attr;
    attr.function = &number;
    return {&b_, b_.add_node(op::map, {}, r, attr, {{like.get().dims, like.get().type}})};
  }

  constexpr void add(std::int32_t value, symbol g) {
    if (g.id < 0) return;
    std::int32_t& sum = gradients_[std::size_t(value)];
    sum = sum < 0 ? g.id : (at(sum) + g).id;
  }
  /// The gradient of a result; zeros where nothing flowed back.
  constexpr symbol gradient(const node& n, int i = 0) {
    const std::int32_t g = gradients_[std::size_t(n.output(i))];
    return g >= 0 ? at(g) : emit_constant(pointwise_constant<0>, out(n, i));
  }

  constexpr void pull_back(const node& n) {
    const symbol dy = n.kind == op::top2_gating ? b_.nothing() : gradient(n);
    switch (n.kind) {
      case op::einsum: return pull_back_einsum(n, dy);
      case op::map: return pull_back_map(n, dy);
      case op::scale: return add(n.input(0), emit_scale(dy, n.attr.number[0], n.attr.dims, n.attr.number[1]));
      case op::reduce_max: return pull_back_max(n, dy);
      case op::softmax: return add(n.input(0), emit_row_gradient(op::softmax_grad, n, out(n), dy));
      case op::cross_entropy: {
        const symbol d{&b_, b_.add_node(op::cross_entropy_grad, {n.input(0), n.input(1), dy.id}, loops_of(n, {0, 1}, true, {0}), n.attr,
                                        {{in(n, 0).get().dims, dy.get().type}})};
        return add(n.input(0), d);
      }
      case op::layer_norm: {
        b_.add_node(op::layer_norm_grad, {n.input(0), n.input(1), dy.id}, loops_of(n, {0, 1}, true, {0, 1, 2}), n.attr,
                    {{in(n, 0).get().dims, dy.get().type}, {in(n, 1).get().dims, dy.get().type}, {in(n, 2).get().dims, dy.get().type}});
        const std::array parts{b_.result_of_last(0), b_.result_of_last(1), b_.result_of_last(2)};
        for (int i = 0; i < 3; ++i) add(n.input(i), parts[std::size_t(i)]);
        return;
      }
      case op::gather: {
        const symbol d{&b_, b_.add_node(op::scatter_add, {n.input(1), dy.id}, loops_of(n, {1}, true, {0}), {},
                                        {{in(n, 0).get().dims, dy.get().type}})};
        return add(n.input(0), d);
      }
      case op::reshape: return add(n.input(0), emit_reshape(dy, n.attr.integer[0], -n.attr.integer[1]));
      case op::annotate: {
        const symbol d{&b_, b_.add_node(op::annotate, {dy.id}, n.loops, {}, {{dy.get().dims, dy.get().type}})};
        b_.program.at(d.id).layout = out(n).get().layout;
        return add(n.input(0), d);
      }
      case op::dropout: return add(n.input(0), emit_dropout(dy, n.attr.number[0], n.attr.integer[0]));
      case op::top2_gating: return pull_back_gating(n);
      case op::one_hot:
        if (n.inputs > 1) add(n.input(1), emit_one_hot_grad(in(n, 0), dy));
        return;
      case op::dispatch: return pull_back_dispatch(n, dy);
      case op::combine: return pull_back_combine(n, dy);
      case op::cast:
        if (in(n, 0).get().type == dtype::i32) return;
        return add(n.input(0), {&b_, b_.add_node(op::cast, {dy.id}, n.loops, {}, {{dy.get().dims, in(n, 0).get().type}})});
      case op::iota: return;
      default: b_.fail(fault::not_differentiable, name(n.kind));
    }
  }

  /// The rule of a gradient node: some operands of n, then dy (the loops of result 0); results shaped like operands of n.
  constexpr rule loops_of(const node& n, std::initializer_list<int> operands, bool with_gradient, std::initializer_list<int> results) {
    rule r;
    r.blocked = n.loops.blocked;
    std::size_t i = 0, o = 0;
    for (int k : operands) r.in[i++] = n.loops.in[std::size_t(k)];
    if (with_gradient) r.in[i++] = n.loops.out[0];
    for (int k : results) r.out[o++] = n.loops.in[std::size_t(k)];
    return r;
  }

  constexpr symbol emit_row_gradient(op kind, const node& n, symbol y, symbol dy) {
    rule r = n.loops;
    r.in[1] = r.in[0];
    return {&b_, b_.add_node(kind, {y.id, dy.id}, r, n.attr, {{y.get().dims, y.get().type}})};
  }

  /// dy * other, summed and spread to the factors of the operand: the einsum of the other letters. Indices that only this operand
  /// had were summed, so its gradient is constant along them.
  constexpr void pull_back_einsum(const node& n, symbol dy) {
    for (int i = 0; i < n.inputs; ++i) {
      if (!wants(n, i)) continue;
      const short_list mine = n.loops.in[i];
      const symbol operands[2]{dy, n.inputs > 1 ? in(n, 1 - i) : dy};
      const short_list factors[2]{n.loops.out[0], n.inputs > 1 ? n.loops.in[1 - i] : short_list{}};
      const std::uint32_t elsewhere = factors[0].mask() | factors[1].mask();
      std::uint32_t seen = 0;
      short_list known;
      for (int d = 0; d < mine.count; ++d) {
        const int f = mine[d];
        if ((seen >> f) & 1u) return b_.fail(fault::not_differentiable, "einsum with a repeated index");
        if ((elsewhere >> f) & 1u) known.push_back(f);
        seen |= 1u << f;
      }
      symbol g = dy;
      if (n.inputs > 1 || !known.same(factors[0])) g = emit_einsum(b_, list_view(operands, n.inputs), list_view(factors, n.inputs), known);
      if (!b_.failed() && known.count < mine.count) g = emit_broadcast(g, known, in(n, i), mine);
      add(n.input(i), g);
    }
  }

  constexpr symbol emit_broadcast(symbol x, const short_list& from, symbol like, const short_list& to) {
    rule r;
    r.out[0] = counting(to.size());
    for (int d = 0; d < from.size(); ++d) r.in[0].push_back(to.find(from[d]));
    attributes attr;
    attr.function = &pointwise_identity;
    return {&b_, b_.add_node(op::map, {x.id}, r, attr, {{like.get().dims, x.get().type}})};
  }

  constexpr void pull_back_map(const node& n, symbol dy) {
    const pointwise& f = *n.attr.function;
    for (int i = 0; i < n.inputs; ++i) {
      if (!wants(n, i)) continue;
      symbol g = dy;
      if (f.linear) {
        const double c = f.coefficient[std::size_t(i)];
        if (c != 1) g = emit_scale(dy, c);
      } else {
        if (!f.differentiable) return b_.fail(fault::not_differentiable, "map: second derivative");
        rule r = n.loops;
        r.in[n.inputs] = n.loops.out[0];
        std::int32_t ids[rule::most_in]{};
        for (int k = 0; k < n.inputs; ++k) ids[k] = n.in[k];
        ids[n.inputs] = dy.id;
        attributes attr;
        attr.function = &f.derivative(i);
        g = {&b_, b_.add_node(op::map, list_view(ids, std::size_t(n.inputs) + 1), r, attr, {{dy.get().dims, dy.get().type}})};
      }
      const short_list& mine = n.loops.in[std::size_t(i)];
      if (mine.size() < n.loops.out[0].size()) g = emit_einsum(b_, list_view(&g, 1), list_view(&n.loops.out[0], 1), mine);
      add(n.input(i), g);
    }
  }

  /// dy where x equals the maximum; where several do, each gets its share.
  constexpr void pull_back_max(const node& n, symbol dy) {
    const symbol x = in(n, 0), y = out(n);
    const short_list all = counting(x.rank());
    short_list kept;
    for (int d = 0; d < y.rank(); ++d) kept.push_back(n.loops.in[0].find(n.loops.out[0][d]));
    const auto map_of = [&](const pointwise& f, symbol a, symbol b, const short_list& factors) {
      rule r;
      r.in[0] = r.out[0] = factors;
      r.in[1] = factors == all ? kept : factors;
      attributes attr;
      attr.function = &f;
      return symbol{&b_, b_.add_node(op::map, {a.id, b.id}, r, attr, {{a.get().dims, a.get().type}})};
    };
    const symbol hit = map_of(pointwise_of<[](auto v, auto largest) { return v == largest ? decltype(v)(1) : decltype(v)(0); }, 2>, x, y, all);
    const symbol hits = emit_einsum(b_, list_view(&hit, 1), list_view(&all, 1), kept);
    const symbol share = map_of(pointwise_of<[](auto d, auto count) { return d / count; }, 2>, dy, hits, counting(y.rank()));
    add(n.input(0), map_of(pointwise_of<[](auto v, auto d) { return v * d; }, 2>, hit, share, all));
  }

  constexpr void pull_back_gating(const node& n) {
    const symbol dweight = gradient(n, 1), daux = gradient(n, 2);
    rule r = route::base();
    r.blocked = n.loops.blocked;
    std::array<std::int32_t, 5> ids{n.input(0), n.output(0), dweight.id, daux.id, n.inputs > 1 ? n.input(1) : -1};
    r.set_operands({n.loops.in[0], route::chosen, route::chosen, n.loops.out[2], n.loops.in[1]});
    r.out[0] = n.loops.in[0];
    const symbol d{&b_, b_.add_node(op::top2_gating_grad, list_view(ids.data(), n.inputs > 1 ? 5u : 4u), r, n.attr,
                                    {{in(n, 0).get().dims, in(n, 0).get().type}})};
    add(n.input(0), d);
  }

  constexpr void pull_back_dispatch(const node& n, symbol dy) {
    const symbol x = in(n, 0), slot = in(n, 1), weight = n.inputs > 2 ? in(n, 2) : b_.nothing();
    if (wants(n, 0)) add(n.input(0), emit_combine(slot, weight, dy, n.loops.out[0], x.get().dims));
    if (n.inputs > 2 && wants(n, 2)) add(n.input(2), emit_combine_weight_grad(slot, dy, n.loops.out[0], x));
  }
  constexpr void pull_back_combine(const node& n, symbol dy) {
    const symbol h = in(n, 0), slot = in(n, 1), weight = n.inputs > 2 ? in(n, 2) : b_.nothing();
    if (wants(n, 0)) add(n.input(0), emit_dispatch(slot, weight, dy, n.loops.in[0], h.get().dims));
    if (n.inputs > 2 && wants(n, 2)) add(n.input(2), emit_combine_weight_grad(slot, h, n.loops.in[0], dy));
  }
};

}  // namespace detail

/// The gradients of a scalar with respect to `wanted`, in that order, as further nodes of the program: reverse mode, operation by
/// operation; einsum's rule is another einsum. The gradient of a parameter that is used in several places is summed once.
/// Communicates: nothing by itself; the partitioner sees the nodes that were added.
constexpr list<symbol> gradients(symbol scalar, list_view<symbol> wanted) {
  builder& b = *scalar.owner;
  list<symbol> result(wanted.size(), b.nothing());
  if (b.failed()) return result;
  if (scalar.rank() != 0) {
    b.fail(fault::rank_mismatch, "gradients", {}, 0, scalar.rank());
    return result;
  }
  detail::differentiator d(b, scalar.id, wanted);
  d.run();
  if (b.failed()) return result;
  for (std::size_t i = 0; i < wanted.size(); ++i) result[i] = d.of(wanted[i]);
  return result;
}

/// The trainable parameters that a program has so far.
constexpr list<symbol> trainable(const parameter_scope& m) {
  list<symbol> result;
  for (const parameter& p : m.owner().program.parameters)
    if (p.trainable) result.push_back({&m.owner(), p.value});
  return result;
}

}}  // namespace gshard::v0
