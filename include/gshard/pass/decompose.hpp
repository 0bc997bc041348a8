// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Decomposes softmax, layer_norm, cross_entropy, cumsum, top_k and argmax along a sharded dim into operations on blocks.

#include <gshard/base/list.hpp>
#include <gshard/ir/all_operations.hpp>
#include <gshard/ir/graph.hpp>
#include <gshard/ir/mesh.hpp>
#include <gshard/pass/cost/cost.hpp>
#include <gshard/pass/cost/decompose_cost.hpp>
#include <gshard/trace/along.hpp>
#include <gshard/trace/builder.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/map.hpp>
#include <gshard/trace/reduce.hpp>
#include <gshard/trace/shape.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

namespace detail {

/// Rewrites operations along a sharded dim as sums and extrema of blocks. The partitioner then reduces these, instead of gathering the
/// operand.
// A template, so that only translation units that compile programs pay for it.
template <class Builder>
class decomposer {
 public:
  constexpr decomposer(graph& g, const mesh_shape& on) : g_(g) {
    b_.program = static_cast<graph&&>(g);
    b_.mesh = on;
  }
  constexpr void run() {
    static_assert(rewrites_all_lines(),
                  "gshard: an operation with `lines` needs its rewrite here, and its cost in decompose_cost");
    const list<node> before = static_cast<list<node>&&>(b_.program.nodes);
    b_.program.nodes = {};
    before_ = &before;
    for (const node& n : before) {
      const int at = line_of(b_.program, n);
      const bool stays = at < 0 || (traits(n.kind).after_extremum && !n.attr.by_blocks) || b_.program.at(n.input(0)).layout[at].empty() ||
                         n.rule.is_blocked(n.rule.in[0][at]);
      if (stays) keep(n);
      else decompose(n, at);
    }
    b_.keeps_place = false;
    for (std::size_t i = 0; i < b_.program.nodes.size(); ++i)
      for (int o = 0; o < b_.program.nodes[i].outputs; ++o) b_.program.at(b_.program.nodes[i].output(o)).producer = std::int32_t(i);
    g_ = static_cast<graph&&>(b_.program);
  }

 private:
  graph& g_;
  Builder b_;
  const list<node>* before_ = nullptr;  // the nodes before the rewrite: producers are indices into it
  /// log(sum exp) of every row of logits, and the target's logit. It depends on the labels, because rows without a label do not count.
  struct row_log_sum {
    std::int32_t logits, labels;
    double smoothing;
    symbol value, target;
  };
  list<row_log_sum> log_sums_;  // of decomposed losses and their gradients

  constexpr symbol in(const node& n, int i) { return {&b_, n.input(i)}; }
  /// True if operand 0 is the result of may_move. In that case, it may move in all nodes of the decomposition.
  constexpr bool producer_says(const node& n) const {
    const std::int32_t maker = b_.program.at(n.input(0)).producer;
    return maker >= 0 && (*before_)[std::size_t(maker)].attr.may_move;
  }
  constexpr void keep(const node& n) { b_.program.nodes.push_back(n); }
  /// Makes `made` the result o of n.
  constexpr void give(const node& n, int o, symbol made) {
    node& maker = b_.program.nodes[std::size_t(made.get().producer)];
    for (int k = 0; k < maker.outputs; ++k)
      if (maker.output(k) == made.id) maker.out[k] = n.output(o);
  }
  /// Sets the sharding of a tensor: complete, in the mesh's device order.
  constexpr symbol lay(symbol s, const sharding& layout) {
    sharding& to = b_.program.at(s.id).layout;
    to = layout;
    to.open = to.partial = to.order = 0;
    return s;
  }
  /// Shards a tensor like these dims of another one.
  constexpr symbol lay_as(symbol s, symbol like, const short_list& dims) {
    sharding to = sharding::replicated(dims.size());
    for (int d = 0; d < dims.size(); ++d) to[d] = like.get().layout[dims[d]];
    return lay(s, to);
  }

  constexpr void decompose(const node& n, int at) {
    b_.keeps_place = true;
    b_.place = n.place;
    b_.place.is_explicit = producer_says(n);
    (this->*rewrites[row_of(n.kind)].expand)(n, at);
  }

  // The dims of x: all, all but the last, and the last.
  static constexpr short_list all(symbol x) { return counting(x.rank()); }
  static constexpr short_list rows(symbol x) { return counting(x.rank() - 1); }
  static constexpr short_list last(symbol x) { return counting(1, x.rank() - 1); }

  constexpr symbol sum_of(symbol x, const short_list& kept) {
    const short_list dims = all(x);
    return lay_as(emit_einsum(b_, list_view(&x, 1), list_view(&dims, 1), kept), x, kept);
  }
  constexpr symbol row_mean(symbol x) { return lay_as(emit_scale(sum_of(x, rows(x)), 1, last_dim(x), -1), x, rows(x)); }
  static constexpr dim_list last_dim(symbol x) {
    dim_list d;
    d.push_back(x.get().dims[x.rank() - 1]);
    return d;
  }
  /// f(x, ...), sharded as x. Other operands have the dims of x, of its rows, or only its last dim.
  template <std::size_t N>
  constexpr symbol map_rows(const pointwise& f, const std::array<symbol, N>& operands) {
    const symbol x = operands[0];
    std::array<short_list, N> dims{};
    for (std::size_t i = 0; i < N; ++i)
      dims[i] = operands[i].rank() == x.rank()       ? all(x)
                : operands[i].rank() == x.rank() - 1 ? rows(x)
                                                     : last(x);
    return lay_as(emit_map_of(f, operands, dims, x), x, all(x));
  }

  constexpr void expand_softmax(const node& n, int /*at*/) {
    const symbol x = in(n, 0), m = lay_as(emit_reduce(x, reduction::max, all(x), rows(x), "softmax"), x, rows(x));
    const symbol e = map_rows(undifferentiated<[](auto v, auto top) { return exp(v - top); }, 2>, std::array{x, m});
    give(n, 0, map_rows(undifferentiated<[](auto v, auto total) { return v / total; }, 2>, std::array{e, sum_of(e, rows(x))}));
  }
  constexpr void expand_softmax_grad(const node& n, int /*at*/) {
    const symbol y = in(n, 0), dy = in(n, 1);
    const symbol total = sum_of(map_rows(undifferentiated<[](auto a, auto b) { return a * b; }, 2>, std::array{y, dy}), rows(y));
    give(n, 0, map_rows(undifferentiated<[](auto v, auto d, auto s) { return v * (d - s); }, 3>, std::array{y, dy, total}));
  }

  struct normalized {
    symbol x;      // (x - mean) / deviation
    symbol scale;  // 1 / deviation
  };
  constexpr normalized normalize(symbol x, double epsilon) {
    const symbol d = map_rows(undifferentiated<[](auto v, auto mean) { return v - mean; }, 2>, std::array{x, row_mean(x)});
    const symbol variance = row_mean(map_rows(undifferentiated<[](auto v) { return v * v; }, 1>, std::array{d}));
    const short_list own = counting(variance.rank());
    const symbol scale = emit_map_of(undifferentiated<[](auto v, auto e) { return decltype(v)(1) / sqrt(v + e); }, 2>,
                                     std::array{variance, emit_scale(emit_constant(pointwise_constant<1>, variance), epsilon)},
                                     std::array{own, own}, variance);
    lay_as(scale, variance, own);
    return {map_rows(undifferentiated<[](auto v, auto s) { return v * s; }, 2>, std::array{d, scale}), scale};
  }
  constexpr void expand_layer_norm(const node& n, int /*at*/) {
    const normalized x = normalize(in(n, 0), own<layer_norm_attributes>(n).epsilon);
    give(n, 0,
         emit_map_of(undifferentiated<[](auto v, auto gamma, auto beta) { return v * gamma + beta; }, 3>,
                     std::array{x.x, in(n, 1), in(n, 2)}, std::array{all(x.x), last(x.x), last(x.x)}, x.x));
  }
  constexpr void expand_layer_norm_grad(const node& n, int /*at*/) {
    const normalized x = normalize(in(n, 0), own<layer_norm_attributes>(n).epsilon);
    const symbol dy = in(n, 2);
    const symbol g = emit_map_of(undifferentiated<[](auto d, auto gamma) { return d * gamma; }, 2>, std::array{dy, in(n, 1)},
                                 std::array{all(dy), last(dy)}, dy);
    lay_as(g, dy, all(dy));
    const symbol product = map_rows(undifferentiated<[](auto a, auto b) { return a * b; }, 2>, std::array{g, x.x});
    const symbol of_g = row_mean(g), of_product = row_mean(product);
    give(n, 0, map_rows(undifferentiated<[](auto d, auto v, auto a, auto b, auto s) { return s * (d - a - v * b); }, 5>,
                        std::array{g, x.x, of_g, of_product, x.scale}));
    give(n, 1, sum_of(map_rows(undifferentiated<[](auto a, auto b) { return a * b; }, 2>, std::array{dy, x.x}), last(dy)));
    give(n, 2, sum_of(dy, last(dy)));
  }

  /// For every block of classes: log(sum exp), and its part of the target's logit. A dim of blocks replaces the classes.
  struct loss_parts {
    symbol log_sum, target;
  };
  constexpr loss_parts emit_loss_parts(const node& n) {
    const symbol x = in(n, 0);
    const short_list& classes = x.get().layout[x.rank() - 1];
    sharding_rule rule;
    rule.in[0] = rule.out[0] = rule.out[1] = all(x);
    rule.in[1] = rows(x);
    dim_list blocks = x.get().dims;
    blocks.set(x.rank() - 1, b_.blocks_dim(classes.mask(), 1));
    const dtype type = x.get().type;
    b_.add_node(op::block_cross_entropy, {x.id, n.input(1)}, rule, n.attr, {{blocks, type}, {blocks, type}});
    const loss_parts parts{b_.result_of_last(0), b_.result_of_last(1)};
    lay(parts.log_sum, x.get().layout);
    lay(parts.target, x.get().layout);
    return parts;
  }
  /// log(sum exp) over the blocks of a row. The largest block contributes exactly 1, even if it is infinite.
  constexpr symbol log_sum_of_blocks(symbol blocks) {
    const symbol m = lay_as(emit_reduce(blocks, reduction::max, all(blocks), rows(blocks), "cross_entropy"), blocks, rows(blocks));
    constexpr auto share = [](auto v, auto top) { return v == top ? decltype(v)(1) : exp(v - top); };
    const symbol total = sum_of(map_rows(undifferentiated<share, 2>, std::array{blocks, m}), rows(blocks));
    const short_list own = all(m);
    constexpr auto log_sum = [](auto sum, auto top) { return log(sum) + top; };
    return lay_as(emit_map_of(undifferentiated<log_sum, 2>, std::array{total, m}, std::array{own, own}, m), m, own);
  }
  /// The sums of a loss and of its gradient, made for the one that the program states first.
  constexpr row_log_sum log_sum_of(const node& n) {
    const double smoothing = own<cross_entropy_attributes>(n).smoothing;
    for (const row_log_sum& s : log_sums_)
      if (s.logits == n.input(0) && s.labels == n.input(1) && s.smoothing == smoothing) return s;
    const loss_parts parts = emit_loss_parts(n);
    const symbol target = sum_of(parts.target, rows(parts.target));  // first, so that it is completed together with the exponentials
    log_sums_.push_back({n.input(0), n.input(1), smoothing, log_sum_of_blocks(parts.log_sum), target});
    return log_sums_.back();
  }
  constexpr void expand_cross_entropy(const node& n, int /*at*/) {
    const row_log_sum sums = log_sum_of(n);
    const short_list own = all(sums.value);
    constexpr auto loss = [](auto s, auto t) { return s - t; };
    give(n, 0, emit_map_of(undifferentiated<loss, 2>, std::array{sums.value, sums.target}, std::array{own, own}, sums.value));
  }
  /// The gradient of a decomposed loss reuses the sums of the loss.
  constexpr void expand_cross_entropy_grad(const node& n, int /*at*/) {
    node g = n;
    g.in[g.inputs] = log_sum_of(n).value.id;
    g.rule.in[g.inputs++] = rows(in(n, 0));
    keep(g);
  }

  /// The sum of every block, then the running sum over blocks. The running sum within each block starts at it.
  constexpr void expand_cumsum(const node& n, int at) {
    const symbol x = in(n, 0);
    const sharding layout = x.get().layout;
    const short_list dims = all(x);
    sharding_rule rule;
    rule.in[0] = rule.in[1] = rule.out[0] = dims;
    dim_list blocks = x.get().dims;
    blocks.set(at, b_.blocks_dim(layout[at].mask(), 1));
    const symbol sums{&b_, b_.add_node(op::block_sum, {x.id}, rule, n.attr, {{blocks, x.get().type}})};
    lay(sums, layout);
    const symbol before = lay(emit_cumsum(sums, at, true, own<cumsum_attributes>(n).reverse), layout.without(layout[at].mask()));
    b_.program.nodes.back().rule.block(at);
    const symbol y{&b_, b_.add_node(op::cumsum, {x.id, before.id}, rule, n.attr, {{x.get().dims, x.get().type}})};
    b_.program.nodes.back().attr.of_blocks = true;
    lay(y, layout);
    settle(n, 0, y);
  }
  /// The best elements of every block, then the best of these.
  constexpr void expand_top_k(const node& n, int at) {
    const symbol x = in(n, 0);
    auto order = own<sort_attributes>(n);
    const int k = order.count;
    const sharding layout = x.get().layout;
    const sorted best = emit_sorted(op::top_k, x, at, b_.blocks_dim(layout[at].mask(), k), k, order.descending);
    b_.program.nodes.back().attr.of_blocks = true;
    lay(best.values, layout);
    lay(best.ids, layout);
    node merge = n;
    merge.inputs = 2;
    merge.in[0] = best.values.id;
    merge.in[1] = best.ids.id;
    merge.rule.in[1] = merge.rule.in[0];
    merge.rule.block(merge.rule.in[0][at]);
    order.count = 0;
    merge.attr.own = order;
    keep(merge);
  }
  /// The best element of every block with its index, then the best of these.
  constexpr void expand_argmax(const node& n, int at) {
    const symbol x = in(n, 0);
    const sharding layout = x.get().layout;
    const node& extremum = (*before_)[std::size_t(b_.program.at(n.input(1)).producer)];
    const bool largest = extremum.attr.combine == reduction::max;
    const sorted blocks = emit_sorted(op::top_k, x, at, b_.blocks_dim(layout[at].mask(), 1), 1, largest, true);
    lay(blocks.values, layout);
    lay(blocks.ids, layout);
    node merge = b_.program.nodes.back();
    b_.program.nodes.back().attr.of_blocks = true;
    merge.rule.in[1] = merge.rule.in[0];
    merge.rule.block(merge.rule.in[0][at]);
    auto order = own<sort_attributes>(merge);
    order.count = 0;
    merge.attr.own = order;
    dim_list dims = x.get().dims;
    dims.set(at, b_.fixed_dim(1));
    b_.add_node(op::top_k, {blocks.values.id, blocks.ids.id}, merge.rule, merge.attr, {{dims, x.get().type}, {dims, dtype::i32}});
    const sharding whole = layout.without(layout[at].mask());
    lay(b_.result_of_last(0), whole);
    give(n, 0, emit_squeeze(lay(b_.result_of_last(1), whole), at));
  }
  /// Makes `made` the result o of n, by an annotation that keeps its sharding.
  constexpr void settle(const node& n, int o, symbol made) {
    sharding_rule rule;
    rule.in[0] = rule.out[0] = all(made);
    const symbol named{&b_, b_.add_node(op::annotate, {made.id}, rule, {}, {{made.get().dims, made.get().type}})};
    give(n, o, named);
  }

  using rewrite = void (decomposer::*)(const node&, int at);
  struct rewrite_row {
    op_ref kind;
    rewrite expand;
  };
  static constexpr rewrite_row rewrites[] = {
      {op::softmax, &decomposer::expand_softmax},
      {op::softmax_grad, &decomposer::expand_softmax_grad},
      {op::layer_norm, &decomposer::expand_layer_norm},
      {op::layer_norm_grad, &decomposer::expand_layer_norm_grad},
      {op::cross_entropy, &decomposer::expand_cross_entropy},
      {op::cross_entropy_grad, &decomposer::expand_cross_entropy_grad},
      {op::cumsum, &decomposer::expand_cumsum},
      {op::top_k, &decomposer::expand_top_k},
      {op::argmax, &decomposer::expand_argmax},
  };
  /// The row of an operation; the number of rows if it has none.
  static constexpr std::size_t row_of(op_ref kind) {
    std::size_t row = 0;
    while (row < std::size(rewrites) && rewrites[row].kind != kind) ++row;
    return row;
  }
  static constexpr bool rewrites_all_lines() {
    for (const op_ref kind : all_operations)
      if (kind->lines != line_dim::absent && (row_of(kind) == std::size(rewrites) || kind->line_sums == 0)) return false;
    return true;
  }
};

}  // namespace detail

/// Decomposes operations along a sharded dim. Softmax, layer_norm, cross_entropy, cumsum, top_k and their gradients become operations on
/// blocks with small reductions between them. Softmax needs one maximum and one sum per row. Operations keep their kernels if the dim is
/// unsharded, or if gathering their operand is cheaper.
///
/// An argmax is a maximum and the index of that maximum: two collectives, one after the other. It becomes one gather of each block's best
/// element and its index, if may_gather is set and that is known to cost less.
template <class Graph>
constexpr void decompose(Graph& g, const mesh_shape& mesh, const extents& e, bool may_gather = true) {
  bool found = false;
  for (node& n : g.nodes) {
    const int at = detail::line_of(g, n);
    if (at < 0) continue;
    const bool is_sharded = !g.at(n.input(0)).layout[at].empty(), is_made_apart = traits(n.kind).after_extremum;
    if (is_sharded) {
      const detail::decompose_cost<Graph> cost(g, n, e);
      if (is_made_apart && may_gather && cost.is_best_by_blocks()) {
        n.attr.by_blocks = true;
        found = true;
        continue;
      }
      if (!cost.is_known() || cost.apart() <= cost.whole()) {
        found = found || !is_made_apart;
        continue;
      }
    }
    const int line = n.rule.in[0][at];
    if (!is_made_apart) n.rule.block(line);
    else if (is_sharded)
      for (const std::int32_t same : {n.output(), n.input(1)}) g.nodes[std::size_t(g.at(same).producer)].rule.block(line);
  }
  if (found) detail::decomposer<builder>(g, mesh).run();
}

}}  // namespace gshard::v0
