// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reverse-mode differentiation: appends the nodes of gradients to a traced graph.

#include <gshard/base/list.hpp>
#include <gshard/base/list_view.hpp>
#include <gshard/grad/appended_nodes.hpp>
#include <gshard/grad/bypasses.hpp>
#include <gshard/grad/differentiate_routing.hpp>
#include <gshard/grad/differentiate_scan.hpp>
#include <gshard/ir/canonical_order.hpp>
#include <gshard/trace/along.hpp>
#include <gshard/trace/attention.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/call.hpp>
#include <gshard/trace/complex.hpp>
#include <gshard/trace/convolution.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/embedding.hpp>
#include <gshard/trace/map.hpp>
#include <gshard/trace/random.hpp>
#include <gshard/trace/reduce.hpp>
#include <gshard/trace/routing.hpp>
#include <gshard/trace/rows.hpp>
#include <gshard/trace/shape.hpp>
#include <gshard/trace/window.hpp>
#include <gshard/trace/wire.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace gshard { inline namespace v0 { namespace detail {

/// Reverse-mode differentiation of a program: walks its nodes backwards. For every node with a gradient on a result it appends nodes that
/// compute the gradients of the operands. The walk is in canonical order. The gradients of a tensor with several readers are added in this
/// order. Devices run the appended nodes in the reverse order of the program.
// A template, so that only programs with gradients pay for it.
template <class Builder>
class differentiator {
 public:
  /// Differentiates the nodes of the program so far, from `first` on.
  constexpr differentiator(Builder& b, list_view<symbol> wanted, std::size_t first = 0)
      : b_(b),
        first_(first),
        end_(b.program.nodes.size()),
        gradients_(b.program.values.size(), -1),
        earliest_reader_(b.program.values.size(), std::int32_t(end_)),
        appended_(b),
        current_(std::int32_t(end_)),
        needed_(b.program.values.size(), false) {
    for (const symbol& s : wanted) needed_[std::size_t(s.id)] = true;
    char* const needed = needed_.data();
    bypasses_.find(b, needed);
    for (std::size_t k = first; k < b.program.nodes.size(); ++k) {
      const node& n = b.program.nodes[k];
      if (const scan_record* scan = scan_ended_by(b, n)) need_results(*this, b.program, *scan, needed);
      if (!stops_gradient(n) && reads_needed(n))
        for (int o = 0; o < n.outputs; ++o) needed[n.out[o]] = true;
    }
  }

  constexpr void run() {
    const code_place before = b_.place;
    const line_of_call kept(b_);
    list<char> pending = reached_nodes();  // by node: whether it is still to be differentiated
    const list<std::int32_t> order = canonical(pending);
    for (std::size_t at = order.size(); at-- > 0 && !b_.failed();) {
      const auto i = std::size_t(order[at]);
      if (!pending[i]) continue;
      appended_.set_owner(current_);
      current_ = std::int32_t(i);
      const node n = as_written(i);
      if (const scan_record* scan = scan_ended_by(b_, n)) {
        const scan_record r = *scan;
        b_.place = n.place;
        b_.place.gradient = true;
        scan_differentiator<differentiator, Builder>(*this, b_, r).run();
        for (auto k = std::size_t(r.begin); k < i; ++k) pending[k] = 0;
        continue;
      }
      bool reached = false;
      for (int o = 0; o < n.outputs; ++o)
        if (std::size_t(n.out[o]) < gradients_.size() && gradients_[std::size_t(n.out[o])] >= 0) reached = true;
      bool wanted = false;
      for (int k = 0; k < n.inputs; ++k) wanted = wanted || wants(n, k);
      if (!reached || !wanted) continue;
      b_.place = n.place;
      b_.place.gradient = true;
      pull_back(n);
    }
    appended_.set_owner(current_);
    if (!b_.failed()) appended_.sort();
    b_.place = before;
  }

  /// The gradient of `x`; zeros if the result does not depend on it.
  constexpr symbol of(symbol x) const {
    const std::int32_t g = gradients_[std::size_t(x.id)];
    return g >= 0 ? at(g) : zeros_for(x);
  }
  /// A node with the operands of the program's call, as far as their gradients are wanted.
  constexpr node as_written(std::size_t i) const { return bypasses_.as_written(b_.program.nodes[i]); }
  /// True if a node reads a tensor that depends on one whose gradient is wanted.
  constexpr bool reads_needed(const node& n) const {
    const char* const needed = needed_.data();
    for (int i = 0; i < n.inputs; ++i)
      if (needed[n.in[i]]) return true;
    return bypasses_.any_of(n);
  }
  /// True if a tensor depends on one whose gradient is wanted.
  constexpr bool needs(std::int32_t value) const { return needed_[std::size_t(value)] != 0; }
  /// The sum of the gradients that have reached a tensor; an empty symbol if none has.
  constexpr symbol gradient_so_far(std::int32_t value) const { return at(gradients_[std::size_t(value)]); }
  /// Adds to the gradient of a tensor.
  constexpr void add(std::int32_t value, symbol g) {
    if (g.id < 0) return;
    std::int32_t &sum = gradients_[std::size_t(value)], &earliest = earliest_reader_[std::size_t(value)];
    if (current_ < earliest) earliest = current_;
    appended_.set_owner(current_);
    sum = sum < 0 ? g.id : (at(sum) + g).id;
    appended_.set_owner(earliest);
    if (at(value).get().bf16_on_wire && is_real(at(sum).get().type)) send_as_bf16(at(sum));
  }

 private:
  Builder& b_;
  std::size_t first_, end_;
  list<std::int32_t> gradients_;        // by value, -1: none so far
  list<std::int32_t> earliest_reader_;  // by value: the first node of the program that has added to its gradient
  appended_nodes<Builder> appended_;
  std::int32_t current_;  // the node that is differentiated
  list<char> needed_;     // by value: depends on a tensor whose gradient is wanted
  wanted_bypasses bypasses_;

  /// By node, whether a tensor that has a gradient now depends on it. A scan counts as one node.
  constexpr list<char> reached_nodes() const {
    const graph& g = b_.program;
    list<char> nodes(g.nodes.size(), 0), values(g.values.size(), 0);
    for (std::size_t v = 0; v < gradients_.size(); ++v) values[v] = gradients_[v] >= 0;
    const auto reach = [&](std::size_t i) {
      nodes[i] = 1;
      const node& n = g.nodes[i];
      for (int k = 0; k < n.inputs; ++k) values[std::size_t(n.in[k])] = 1;
      bypasses_.for_each_tensor_of(n, [&](std::int32_t tensor) { values[std::size_t(tensor)] = 1; });
    };
    const auto is_reached = [&](std::size_t i) {
      const node& n = g.nodes[i];
      for (int o = 0; o < n.outputs; ++o)
        if (values[std::size_t(n.out[o])]) return true;
      return false;
    };
    for (std::size_t i = end_; i-- > first_;) {
      const scan_record* const scan = scan_ended_by(b_, g.nodes[i]);
      if (!scan) {
        if (is_reached(i)) reach(i);
        continue;
      }
      const auto begin = std::size_t(scan->begin);
      bool any = false;
      for (auto k = std::size_t(scan->close); k < i; ++k) any = any || is_reached(k);
      for (std::size_t k = i + 1; k-- > begin && any;) reach(k);
      i = begin;
    }
    return nodes;
  }
  /// Sorts some nodes as if all nodes had the operands of the program's calls.
  constexpr list<std::int32_t> canonical(const list<char>& some) {
    const list<node> replaced = bypasses_.replace(b_.program);
    const canonical_order sorted(b_.program, some);
    bypasses_.put_back(b_.program, replaced);
    list<std::int32_t> found;
    for (const std::int32_t i : sorted) found.push_back(i);
    return found;
  }

  constexpr symbol at(std::int32_t id) const { return {&b_, id}; }
  constexpr symbol zeros_for(symbol x) const {
    const value like = x.get();
    return emit_constant(b_, pointwise_constant<0>, like.dims, gradient_type(like.type));
  }
  constexpr symbol in(const node& n, int i) { return at(n.input(i)); }
  constexpr symbol out(const node& n, int i = 0) { return at(n.output(i)); }
  static constexpr bool stops_gradient(const node& n) { return n.kind == op::map && n.attr.function->stops_gradient; }
  constexpr bool wants(const node& n, int i) const { return needed_[std::size_t(n.input(i))] && !stops_gradient(n); }

  /// The gradient of a result; zeros if no gradient has reached it.
  constexpr symbol gradient(const node& n, int i = 0) {
    const std::int32_t g = gradients_[std::size_t(n.output(i))];
    return g >= 0 ? at(g) : zeros_for(out(n, i));
  }

  constexpr void pull_back(const node& n) {
    if (traits(n.kind).routes) return pull_back_routing(n);
    const symbol dy = gradient(n);
    switch (n.kind->id) {
      case op::einsum.id: return pull_back_einsum(n, dy);
      case op::map.id: return pull_back_map(n, dy);
      case op::scale.id: return add(n.input(0), emit_scale(dy, n.attr.factor, n.attr.dims, own<scale_attributes>(n).power));
      case op::reduce.id: return n.attr.combine == reduction::prod ? pull_back_product(n, dy) : pull_back_extremum(n, dy);
      case op::softmax.id: return add(n.input(0), emit_row_gradient(op::softmax_grad, n, out(n), dy));
      case op::cross_entropy.id: {
        const symbol d{&b_, b_.add_node(op::cross_entropy_grad, {n.input(0), n.input(1), dy.id}, rule_of(n, {0, 1}, true, {0}), n.attr,
                                        {{in(n, 0).get().dims, dy.get().type}})};
        return add(n.input(0), d);
      }
      case op::layer_norm.id: {
        b_.add_node(op::layer_norm_grad, {n.input(0), n.input(1), dy.id}, rule_of(n, {0, 1}, true, {0, 1, 2}), n.attr,
                    {{in(n, 0).get().dims, dy.get().type}, {in(n, 1).get().dims, dy.get().type}, {in(n, 2).get().dims, dy.get().type}});
        const std::array parts{b_.result_of_last(0), b_.result_of_last(1), b_.result_of_last(2)};
        for (int i = 0; i < 3; ++i) add(n.input(i), parts[std::size_t(i)]);
        return;
      }
      case op::attention.id: return pull_back_attention(n, dy);
      case op::gather.id:
        return add(n.input(0), emit_scatter_add(in(n, 1), dy, n.attr.dim, own<gather_attributes>(n).batch, in(n, 0).get().dims));
      case op::scatter_add.id: return add(n.input(1), gather(dy, in(n, 0), n.attr.dim, own<gather_attributes>(n).batch));
      case op::cumsum.id: {
        const auto a = own<cumsum_attributes>(n);
        return add(n.input(0), emit_cumsum(dy, n.attr.dim, a.exclusive, !a.reverse));
      }
      case op::sort.id:
      case op::top_k.id: return add(n.input(0), emit_scatter_along(out(n, 1), dy, n.attr.dim, in(n, 0)));
      case op::strided_slice.id:
      case op::pad.id:
      case op::reverse.id:
      case op::roll.id:
      case op::permute.id: return add(n.input(0), emit_moved_back(n, in(n, 0), dy));
      case op::concat.id: return pull_back_concat(n, dy);
      case op::convolution.id: return pull_back_convolution(n, dy);
      case op::pool.id: return pull_back_pool(n, dy);
      case op::argmax.id: return;
      case op::reshape.id: return add(n.input(0), emit_reshape_back(n, in(n, 0), dy));
      case op::annotate.id: {
        const value like = (n.attr.gradient_as_operand ? in(n, 0) : out(n)).get();
        return add(n.input(0), emit_annotate(dy, like.layout, like.priority, n.attr.may_move, n.rule.in[0] == n.rule.out[0]));
      }
      case op::custom.id: return pull_back_custom(n, dy);
      case op::dropout.id: return add(n.input(0), emit_dropout(dy, own<dropout_attributes>(n).rate, n.attr.key));
      case op::cast.id: return pull_back_cast(n, dy);
      case op::iota.id: return;
      case op::check_finite.id: return add(n.input(0), dy);
      case op::carry.id: return b_.fail(fault::gradient_of_loop, "while_loop");
      default: b_.fail(fault::not_differentiable, name(n.kind));
    }
  }

  constexpr void pull_back_routing(const node& n) {
    for (int i = 0; i < n.inputs && !b_.failed(); ++i)
      if (wants(n, i)) add(n.input(i), emit_routing_grad(b_, n, i, [&](int result) { return gradient(n, result); }));
  }
  constexpr void pull_back_cast(const node& n, symbol dy) {
    const dtype from = in(n, 0).get().type, type = gradient_type(from);
    if (!has_gradient(from)) return;
    add(n.input(0), dy.get().type == type ? dy : emit_cast(dy, type, own<cast_attributes>(n).imaginary));
  }
  constexpr void pull_back_custom(const node& n, symbol dy) {
    const custom_operation& what = *n.attr.custom;
    if (!what.differentiable) return b_.fail(fault::not_differentiable, what.name);
    symbol operands[sharding_rule::most_in], gradients[sharding_rule::most_in];
    for (int i = 0; i < n.inputs; ++i) operands[i] = in(n, i);
    what.gradient(operands, out(n), dy, gradients);
    for (int i = 0; i < n.inputs && !b_.failed(); ++i) {
      if (gradients[i].id < 0 || !wants(n, i)) continue;
      if (const int d = b_.first_difference(gradients[i].get().dims, operands[i].get().dims); d < max_rank)
        b_.fail(fault::dims_differ, what.name, "gradient", i, d);
      add(n.input(i), gradients[i]);
    }
  }

  /// The rule of a gradient node: some operands of n, then dy (the factors of result 0); results shaped like operands of n.
  constexpr sharding_rule rule_of(const node& n, std::initializer_list<int> operands, bool with_gradient,
                                  std::initializer_list<int> results) {
    sharding_rule r;
    r.blocked = n.rule.blocked;
    std::size_t i = 0, o = 0;
    for (int k : operands) r.in[i++] = n.rule.in[std::size_t(k)];
    if (with_gradient) r.in[i++] = n.rule.out[0];
    for (int k : results) r.out[o++] = n.rule.in[std::size_t(k)];
    return r;
  }

  constexpr symbol emit_row_gradient(op_ref kind, const node& n, symbol y, symbol dy) {
    sharding_rule r = n.rule;
    r.in[1] = r.in[0];
    return {&b_, b_.add_node(kind, {y.id, dy.id}, r, n.attr, {{y.get().dims, y.get().type}})};
  }

  constexpr symbol conjugate_of_operand(const node& n, int i) { return is_complex(in(n, i).get().type) ? conj(in(n, i)) : in(n, i); }

  /// The gradient of each operand is the einsum of dy and the other operand's conjugate to its own letters. Indices that only this operand
  /// has were summed, so its gradient is broadcast along them.
  constexpr void pull_back_einsum(const node& n, symbol dy) {
    const bool rounds = b_.options.bf16_products;
    b_.options.bf16_products = n.attr.rounds_to_bf16;
    for (int i = n.inputs; i-- > 0;) {  // operand 0 last, because its gradient is usually needed next
      if (!wants(n, i)) continue;
      const short_list mine = n.rule.in[i];
      const symbol operands[2]{dy, n.inputs > 1 ? conjugate_of_operand(n, 1 - i) : dy};
      const short_list factors[2]{n.rule.out[0], n.inputs > 1 ? n.rule.in[1 - i] : short_list{}};
      const std::uint32_t elsewhere = factors[0].mask() | factors[1].mask();
      std::uint32_t seen = 0;
      short_list known;
      std::uint32_t repeated = 0;  // dims
      for (int d = 0; d < mine.count; ++d) {
        const int f = mine[d];
        if ((seen >> f) & 1u) repeated |= 1u << d;
        else if ((elsewhere >> f) & 1u) known.push_back(f);
        seen |= 1u << f;
      }
      symbol g = dy;
      if (n.inputs > 1 || !known.same(factors[0])) g = emit_einsum(b_, list_view(operands, n.inputs), list_view(factors, n.inputs), known);
      if (!b_.failed() && known.count < mine.count) g = emit_broadcast(g, known, mine, in(n, i).get().dims);
      for (int d = 0; repeated != 0 && !b_.failed(); ++d, repeated >>= 1)
        if (repeated & 1u) g = emit_on_diagonal(g, mine.find(mine[d]), d);
      add(n.input(i), g);
    }
    b_.options.bf16_products = rounds;
  }
  /// x where the indices of two dims are equal, else 0.
  constexpr symbol emit_on_diagonal(symbol x, int first, int second) {
    const auto index = [&](int along) { return cast(emit_iota(b_, x.get().dims, along), x.get().type); };
    const short_list all = counting(x.rank());
    return emit_map_of(own_function<arithmetic::where_equal>, std::array{x, index(first), index(second)}, std::array{all, all, all}, x);
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
        sharding_rule r = n.rule;
        r.in[n.inputs] = n.rule.out[0];
        std::int32_t ids[sharding_rule::most_in]{};
        for (int k = 0; k < n.inputs; ++k) ids[k] = n.in[k];
        if (f.slope_by_result) {
          ids[0] = n.output();
          r.in[0] = n.rule.out[0];
        }
        if (f.own == arithmetic::number_of<arithmetic::choose>) {  // its slopes read the condition alone
          if (in(n, 0).get().type != dy.get().type) ids[0] = emit_cast(in(n, 0), dy.get().type).id;  // a tensor in half precision
          ids[1] = ids[2] = dy.id;
          r.in[1] = r.in[2] = n.rule.out[0];
        }
        if (f.derivative(i).own == arithmetic::number_of<arithmetic::zero>) continue;
        ids[n.inputs] = dy.id;
        g = {&b_, b_.add_node(op::map, list_view(ids, std::size_t(n.inputs) + 1), r, {.function = &f.derivative(i)},
                              {{dy.get().dims, dy.get().type}})};
      }
      const short_list& mine = n.rule.in[std::size_t(i)];
      if (!mine.same(n.rule.out[0])) g = emit_einsum(b_, list_view(&g, 1), list_view(&n.rule.out[0], 1), mine);
      add(n.input(i), g);
    }
  }

  /// The dims of a reduction's operand that its result keeps.
  constexpr short_list kept_of(const node& n) {
    short_list kept;
    for (int d = 0; d < out(n).rank(); ++d) kept.push_back(n.rule.in[0].find(n.rule.out[0][d]));
    return kept;
  }

  /// dy where x equals the extremum. Several such elements share dy equally.
  constexpr void pull_back_extremum(const node& n, symbol dy) {
    const symbol x = in(n, 0), y = out(n);
    const short_list all = counting(x.rank()), kept = kept_of(n), own = counting(y.rank());
    const symbol hit = emit_map_of(undifferentiated<[](auto v, auto best) { return v == best ? decltype(v)(1) : decltype(v)(0); }, 2>,
                                   std::array{x, y}, std::array{all, kept}, x);
    const symbol hits = emit_einsum(b_, list_view(&hit, 1), list_view(&all, 1), kept);
    const symbol share = emit_map_of(undifferentiated<[](auto d, auto count) { return d / count; }, 2>,
                                     std::array{dy, hits}, std::array{own, own}, y);
    add(n.input(0), emit_map_of(undifferentiated<[](auto v, auto d) { return v * d; }, 2>,
                                std::array{hit, share}, std::array{all, kept}, x));
  }

  /// dy times the product of the other elements: y / x if no element is zero. Otherwise only a single zero has a gradient: the product of
  /// the others.
  constexpr void pull_back_product(const node& n, symbol dy) {
    const symbol x = in(n, 0), y = out(n);
    const short_list all = counting(x.rank()), kept = kept_of(n);
    const symbol zero = emit_map_of(undifferentiated<[](auto v) { return v == decltype(v)(0) ? decltype(v)(1) : decltype(v)(0); }, 1>,
                                    std::array{x}, std::array{all}, x);
    const symbol zeros = emit_einsum(b_, list_view(&zero, 1), list_view(&all, 1), kept);
    const symbol filled =
        emit_map_of(undifferentiated<[](auto v) { return v == decltype(v)(0) ? decltype(v)(1) : v; }, 1>,
                    std::array{x}, std::array{all}, x);
    sharding_rule r = n.rule;
    const symbol others{&b_, b_.add_node(op::reduce, {filled.id}, r, n.attr, {{y.get().dims, y.get().type}})};
    constexpr auto slope = [](auto v, auto count, auto product, auto d) {
      using element = decltype(v);
      if (v == element(0)) return count == element(1) || product != product ? d * product : element(0);
      return count == element(0) || product != product ? d * product / v : element(0);
    };
    add(n.input(0), emit_map_of(undifferentiated<slope, 4>, std::array{x, zeros, others, dy}, std::array{all, kept, kept, kept}, x));
  }

  constexpr void pull_back_concat(const node& n, symbol dy) {
    const int at = n.attr.dim;
    for (int i = 0; i < n.inputs; ++i) {
      if (!wants(n, i)) continue;
      const int own = in(n, i).get().dims[at];
      const window w = b_.program.windows[std::size_t(n.rule.windows[i])].inverse(own);
      add(n.input(i), emit_moved(op::strided_slice, dy, at, w));
    }
  }

  /// Each operand's gradient is a convolution of the other two tensors. The gradient of the second operand reads the first through the same
  /// windows. The gradient of the first operand, which has the windows, uses their inverses.
  constexpr void pull_back_convolution(const node& n, symbol dy) {
    const short_list &a = n.rule.in[0], &w = n.rule.in[1], &y = n.rule.out[0];
    const symbol x = in(n, 0), second = n.inputs > 1 ? in(n, 1) : b_.nothing();
    if (n.inputs > 1 && wants(n, 1)) {
      std::uint32_t elsewhere = a.mask() | y.mask();
      for (int d = 0; d < a.size(); ++d)
        if (n.attr.dims[d]) elsewhere |= 1u << (n.attr.dims[d] - 1);
      short_list known;
      dim_list dims;
      for (int d = 0; d < w.size(); ++d) {
        if (!((elsewhere >> w[d]) & 1u)) continue;  // only summed: the gradient is constant along it
        known.push_back(w[d]);
        dims.push_back(second.get().dims[d]);
      }
      symbol g = emit_convolution(x, a, n.rule.windows, n.attr.dims, dy, y, known, dims);
      if (!b_.failed() && known.size() < w.size()) g = emit_broadcast(g, known, w, second.get().dims);
      add(n.input(1), g);
    }
    if (!wants(n, 0)) return;
    // The tensor with the positions is read through the inverse windows. The other tensor has the taps, if there are any.
    bool positions_in_y = true;
    for (int d = 0; d < a.size(); ++d)
      if (n.rule.windows[d]) positions_in_y = positions_in_y && y.contains(a[d]);
    const symbol from = positions_in_y ? dy : second, other = positions_in_y ? second : dy;
    const short_list &from_factors = positions_in_y ? y : w, &other_factors = positions_in_y ? w : y;
    dim_list windows, taps, dims;
    for (int d = 0; d < from_factors.size(); ++d) {
      windows.push_back(0);
      taps.push_back(0);
    }
    short_list known;
    for (int d = 0; d < a.size(); ++d) {
      const int at = from_factors.find(a[d]);
      if (n.rule.windows[d]) {
        if (at < 0) return b_.fail(fault::not_differentiable, "convolution");
        windows.set(at, b_.row_of(b_.program.windows[std::size_t(n.rule.windows[d])].inverse(x.get().dims[d])));
        taps.set(at, n.attr.dims[d]);
      } else if (at < 0 && !(other.id >= 0 && other_factors.contains(a[d]))) {
        continue;  // only summed: the gradient is constant along it
      }
      known.push_back(a[d]);
      dims.push_back(x.get().dims[d]);
    }
    symbol g = emit_convolution(from, from_factors, windows, taps, other, other_factors, known, dims);
    if (!b_.failed() && known.size() < a.size()) g = emit_broadcast(g, known, a, x.get().dims);
    add(n.input(0), g);
  }

  constexpr void pull_back_pool(const node& n, symbol dy) {
    const symbol x = in(n, 0);
    sharding_rule rule;
    rule.in[0] = rule.in[1] = rule.out[0] = counting(x.rank());
    for (int d = 0; d < x.rank(); ++d) {
      const int w = n.rule.windows[d];
      rule.windows.push_back(w ? b_.row_of(b_.program.windows[std::size_t(w)].inverse(x.get().dims[d])) : 0);
    }
    add(n.input(0), {&b_, b_.add_node(op::pool_grad, {n.output(1), dy.id}, rule, n.attr, {{x.get().dims, dy.get().type}})});
  }

  constexpr void pull_back_attention(const node& n, symbol dy) {
    emit_attention_grad(n, out(n), dy, at(gradients_[std::size_t(n.output(1))]));
    if (b_.failed()) return;
    const std::array parts{b_.result_of_last(0), b_.result_of_last(1), b_.result_of_last(2)};
    for (int i = 0; i < 3; ++i)
      if (wants(n, i)) add(n.input(i), parts[std::size_t(i)]);
  }
};

}}}  // namespace gshard::v0::detail
