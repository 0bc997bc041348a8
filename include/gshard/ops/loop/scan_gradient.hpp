// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The gradient of a scan: a loop from its last step to its first.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/grad/backward_walk.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/ops/loop/loop.hpp>
#include <gshard/ops/loop/scan_rows.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// Copies nodes, and replaces some of their operands.
class node_copier {
 public:
  constexpr explicit node_copier(builder& b) : b_(b) {
    for (std::size_t v = 0; v < b.program.values.size(); ++v) now_.push_back(std::int32_t(v));
  }

  constexpr void replace(std::int32_t tensor, symbol by) { now_[std::size_t(tensor)] = by.id; }
  constexpr symbol of(std::int32_t tensor) const { return {&b_, now_[std::size_t(tensor)]}; }

  /// Appends copies of the nodes [from, to) of the body of a loop. Inner loops get new loop numbers, but keep their random numbers.
  constexpr void copy(const scan_record& around) {
    const std::int32_t from = around.body, to = around.close, shift = std::int32_t(b_.program.nodes.size()) - from;
    const std::int32_t loops = b_.program.while_loops - around.loop;
    for (std::int32_t i = from; i < to; ++i) {
      node n = b_.program.nodes[std::size_t(i)];
      n.place.gradient = true;
      if (is_of_loop(n.kind)) n.attr.loop += loops;
      b_.program.while_loops += n.kind == op::loop_begin;
      for (int k = 0; k < n.inputs; ++k) n.in[k] = now_[std::size_t(n.in[k])];
      for (int o = 0; o < n.outputs; ++o) {
        value v = b_.program.at(n.out[o]);
        v.producer += shift;
        n.out[o] = now_[std::size_t(n.out[o])] = std::int32_t(b_.program.values.size());
        b_.program.values.push_back(v);
      }
      b_.program.nodes.push_back(n);
    }
    for (std::size_t i = 0, known = b_.bypasses.size(); i < known; ++i) {
      bypass r = b_.bypasses[i];
      const std::int32_t maker = r.result < 0 ? -1 : b_.program.at(r.result).producer;
      if (maker < from || maker >= to) continue;
      r.result = now_[std::size_t(r.result)];
      r.tensor = now_[std::size_t(r.tensor)];
      b_.bypasses.push_back(r);
    }
    for (std::size_t i = 0, known = b_.scans.size(); i < known; ++i)
      if (b_.scans[i].begin >= from && b_.scans[i].end < to) b_.scans.push_back(copy_of(b_.scans[i], shift, loops));
  }

 private:
  builder& b_;
  list<std::int32_t> now_;  // by tensor

  constexpr scan_record copy_of(scan_record r, std::int32_t shift, std::int32_t loops) const {
    const auto rename = [this](auto&... tensor) { ((tensor = now_[std::size_t(tensor)]), ...); };
    r.loop += loops;
    for (std::int32_t* at : {&r.begin, &r.body, &r.close, &r.end}) *at += shift;
    rename(r.last, r.step);
    for (scan_record::stack& v : r.saved) rename(v.stacked, v.row);
    for (scan_record::state& s : r.states) rename(s.start, s.now, s.next, s.after, s.history);
    for (scan_record::stack& x : r.inputs) {
      rename(x.stacked, x.row);
      if (x.last_row >= 0) rename(x.last_row);
    }
    for (std::int32_t& row : r.earlier) rename(row);
    for (scan_record::stack& y : r.outputs) rename(y.stacked, y.row);
    return r;
  }
};

/// Appends the loop that computes the gradients of a scan. Each iteration recomputes a step, and pulls gradients back through it. The loop
/// carries the gradients of the states, the summed gradients of tensors from outside, and the stacked gradients of the rows.
// A template, so that only programs with a scan pay for it.
template <class Walk>
class scan_differentiator {
 public:
  constexpr scan_differentiator(Walk& outer, builder& b, const scan_record& r) : outer_(outer), b_(b), scan_(r) {}

  constexpr void run() {
    if (!reached()) return;
    find_sums();
    loop_nodes<> loop(b_, b_.program.nodes[std::size_t(scan_.end)].attr.key);
    const symbol step = loop.open(at(scan_.last));
    open(loop);
    loop.begin(b_.program.at(scan_.states[0].history).dims[0]);
    loop.test(0.0 <= here(step));
    const Walk inner = step_back(step);
    if (b_.failed()) return;
    close(loop, inner, step);
    loop.close(step, here(step) - 1);
    loop.end();
    for (const list<part>* all : {&rows_, &sums_, &states_})
      for (const part& p : *all)
        if (outer_.needs(p.tensor)) outer_.add(p.tensor, p.after);
  }

 private:
  /// A tensor whose gradient the loop computes.
  struct part {
    std::int32_t tensor = -1;  // the tensor of the gradient
    symbol leaf;               // the tensor of an iteration, whose gradient is added
    symbol carried, after;     // the state of the loop, and its result
    symbol index;              // for a row: its index in the stack
  };

  Walk& outer_;
  builder& b_;
  scan_record scan_;
  list<part> states_, sums_, rows_;
  list<part> earlier_;  // by state: the gradients of its earlier values, stacked by the step that reads them

  constexpr symbol at(std::int32_t id) const { return {&b_, id}; }
  constexpr bool differentiable(std::int32_t id) const { return has_gradient(b_.program.at(id).type); }
  constexpr bool is_of_scan(std::int32_t id) const { return b_.program.at(id).producer >= scan_.begin; }

  /// True if a gradient has reached a result that depends on a wanted tensor.
  constexpr bool reached() const {
    const auto is_reached = [this](std::int32_t v) { return outer_.needs(v) && outer_.gradient_so_far(v).id >= 0; };
    for (const scan_record::state& s : scan_.states)
      if (is_reached(s.after)) return true;
    for (const scan_record::stack& y : scan_.outputs)
      if (is_reached(y.stacked)) return true;
    return false;
  }
  /// Finds the tensors from outside that the body reads and that wanted gradients pass through.
  constexpr void find_sums() {
    list<char> found(b_.program.values.size(), 0);
    const auto read = [&](std::int32_t v) {
      if (found[std::size_t(v)] || is_of_scan(v) || !outer_.needs(v) || !differentiable(v)) return;
      found[std::size_t(v)] = 1;
      sums_.push_back({v, at(v), {}, {}, {}});
    };
    for (std::int32_t i = scan_.body; i < scan_.close; ++i) {
      const node n = outer_.as_written(std::size_t(i));
      for (int k = 0; k < n.inputs; ++k) read(n.input(k));
    }
    for (const scan_record::state& s : scan_.states) read(s.next);
    for (const scan_record::stack& y : scan_.outputs) read(y.row);
  }
  constexpr void open(loop_nodes<>& loop) {
    for (const scan_record::state& s : scan_.states) {
      if (!differentiable(s.now)) continue;
      const symbol g = outer_.gradient_so_far(s.after);
      const value like = gradient_of(b_.program.at(s.now));
      states_.push_back({s.start, {}, g.id >= 0 ? loop.open(g, like) : loop.open_zeros(like), {}, {}});
      if (!scan_.earlier.empty()) earlier_.push_back({-1, {}, loop.open_zeros(stack_of(like, b_.program.at(s.history).dims[0])), {}, {}});
    }
    for (part& w : sums_) w.carried = loop.open_sum(gradient_of(w.leaf.get()));
    for (const scan_record::stack& x : scan_.inputs)
      if (outer_.needs(x.stacked) && differentiable(x.row))
        rows_.push_back({x.stacked, {}, loop.open_sum(gradient_of_stack(x)), {}, {}});
  }
  /// The dims, type and sharding of the gradient of a tensor.
  static constexpr value gradient_of(value like) {
    like.type = gradient_type(like.type);
    return like;
  }
  /// The same for stacked rows: the sharding of the stack, if it is annotated and not sharded along dim 0; otherwise the sharding of a row.
  constexpr value gradient_of_stack(const scan_record::stack& x) const {
    const value all = b_.program.at(x.stacked);
    value like = gradient_of(stack_of(b_.program.at(x.row), all.dims[0]));
    if (!is_annotated(all) || !all.layout[0].empty()) return like;
    like.layout = all.layout;
    return like;
  }
  /// Recomputes a step, and computes the gradients of its operands.
  constexpr Walk step_back(symbol step) {
    node_copier copies(b_);
    list<symbol> leaves;
    const auto add_leaf = [&leaves](part& p, symbol leaf) {
      p.leaf = leaf;
      leaves.push_back(leaf);
    };
    copies.replace(scan_.step, step);
    std::size_t next = 0;
    for (const scan_record::state& s : scan_.states) {
      const symbol before = emit_row(at(s.history), step);
      copies.replace(s.now, before);
      if (differentiable(s.now)) add_leaf(states_[next++], before);
    }
    next = 0;
    for (std::size_t i = 0; i < scan_.earlier.size(); ++i) {
      const symbol before = emit_row(at(scan_.states[i].history), index_before(step, scan_.lag));
      copies.replace(scan_.earlier[i], before);
      if (differentiable(before.id)) add_leaf(earlier_[next++], before);
    }
    next = 0;
    for (const scan_record::stack& x : scan_.inputs) {
      const symbol index = index_of_row(x, step), row = emit_row(at(x.stacked), index);
      copies.replace(x.row, row);
      if (!outer_.needs(x.stacked) || !differentiable(x.row)) continue;
      rows_[next].index = index;
      add_leaf(rows_[next++], row);
    }
    for (const part& w : sums_) leaves.push_back(w.leaf);
    list<symbol> output_gradients;
    for (const scan_record::stack& y : scan_.outputs) {
      const symbol g = outer_.gradient_so_far(y.stacked);
      output_gradients.push_back(g.id < 0 ? g : emit_row(g, step));
    }
    list<symbol> saved;
    for (const scan_record::stack& v : scan_.saved) saved.push_back(emit_row(at(v.stacked), step));
    const std::size_t from = b_.program.nodes.size();
    copies.copy(scan_);
    Walk inner(b_, leaves, from);
    next = 0;
    for (const scan_record::state& s : scan_.states)
      if (differentiable(s.now)) inner.add(copies.of(s.next).id, states_[next++].carried);
    for (std::size_t i = 0; i < scan_.outputs.size(); ++i) inner.add(copies.of(scan_.outputs[i].row).id, output_gradients[i]);
    if (!b_.failed()) inner.run();
    if (!b_.failed()) read_saved(copies, saved, from);
    return inner;
  }
  /// Makes the nodes from `from` on read saved tensors in place of their copies, so that nothing needs these copies.
  constexpr void read_saved(const node_copier& copies, const list<symbol>& saved, std::size_t from) {
    list<std::int32_t> now;
    for (std::size_t v = 0; v < b_.program.values.size() && !saved.empty(); ++v) now.push_back(std::int32_t(v));
    for (std::size_t i = 0; i < saved.size(); ++i) now[std::size_t(copies.of(scan_.saved[i].row).id)] = saved[i].id;
    for (std::size_t i = from; i < b_.program.nodes.size() && !saved.empty(); ++i) {
      node& n = b_.program.nodes[i];
      for (int k = 0; k < n.inputs; ++k) n.in[k] = now[std::size_t(n.in[k])];
    }
  }
  /// The gradient of a state from its reader, the step `lag` steps later; zeros if there is no such step.
  constexpr symbol read_later(symbol rows, symbol step) {
    const symbol later = here(step) + double(scan_.lag), last = at(scan_.last), exists = here(later) <= last;
    const symbol row = emit_row(rows, select(exists, later, last));
    if (b_.failed()) return b_.nothing();
    const symbol zeros = emit_constant(pointwise_constant<0>, row), gate = emit_cast(exists, row.get().type);
    const short_list all = counting(row.rank());
    return emit_map_of(choice<>, std::array{gate, row, zeros}, std::array{short_list{}, all, all}, row);
  }
  constexpr void close(loop_nodes<>& loop, const Walk& inner, symbol step) {
    list<symbol> next, carried;
    for (const part& s : states_) {
      carried.push_back(s.carried);
      next.push_back(inner.of(s.leaf));
    }
    for (std::size_t i = 0; i < earlier_.size(); ++i) {
      next[i] = here(next[i]) + read_later(earlier_[i].carried, step);
      if (const symbol g = inner.gradient_so_far(earlier_[i].leaf.id); g.id >= 0) loop.close_row(earlier_[i].carried, g, step);
    }
    copy_shared(next, carried);
    list<symbol> sums;
    for (const part& w : sums_) {
      const symbol g = inner.gradient_so_far(w.leaf.id);
      sums.push_back(g.id < 0 ? g : here(w.carried) + g);
    }
    for (part& x : rows_)
      if (const symbol g = inner.gradient_so_far(x.leaf.id); g.id >= 0) x.after = loop.close_row(x.carried, g, x.index);
    for (std::size_t i = 0; i < sums_.size(); ++i)
      if (sums[i].id >= 0) sums_[i].after = loop.close(sums_[i].carried, sums[i]);
    for (std::size_t i = 0; i < states_.size(); ++i) states_[i].after = loop.close(states_[i].carried, next[i]);
  }
};

template <class Walk>
constexpr void scan_gradient(Walk& walk, const scan_record& r) {
  scan_differentiator<Walk>(walk, walk.owner(), r).run();
}

}}}  // namespace gshard::v0::detail
