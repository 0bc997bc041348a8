// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Chooses one strategy for equal nodes, because the layers of a model repeat.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/partition/choose_strategy.hpp>
#include <gshard/core/partition/looped_einsum.hpp>
#include <gshard/core/partition/operands.hpp>
#include <gshard/core/partition/row_counts.hpp>
#include <gshard/core/partition/strategy.hpp>
#include <gshard/core/reshard/reshard.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// How a node gets an operand.
struct operand_place {
  sharding layout;  ///< The sharding in which it takes the operand.
  /// The number of the form that the operand has now, in the order in which the plan made them. -1: `get_or_reshard` decides.
  std::int32_t form = -1;
  list<move_list> moves;  ///< The reshard from that form. Empty: the operand is in the sharding already.

  /// `all_before`: the places of earlier operands are decided. If one is not, `get_or_reshard` may make forms of several tensors for it.
  constexpr operand_place(const planning& p, const node& n, int i, const partitioning& how, bool all_before)
      : layout(sharding_of(n.rule.in[i], how.how, how.partial.of_operand(i))) {
    std::int32_t from = -1;
    const bool exists = p.cache.cost_of_move(n.in[i], layout, &from) == 0;
    bool is_decided = exists || (all_before && from >= 0 && !p.cache.is_of_smaller(n.in[i]));
    for (int k = 0; k < i && !exists; ++k) is_decided = is_decided && n.in[k] != n.in[i];
    if (!is_decided) return;
    if (!exists) {
      moves.push_back(p.cache.moves_between(n.in[i], p.cache.at(from), p.cache.at(from).layout, layout));
      for (const move& m : moves[0])
        if (traits(m.kind).ragged) return;  // the counts of its rows may be an operand
    }
    form = 0;
    for (std::int32_t v = p.cache.first(n.in[i]); v != from; v = p.cache.next(v)) ++form;
  }
};

/// How a node is partitioned, and where its operands are.
struct placement {
  partitioning chosen;
  bool may_loop;
  list<operand_place> operands;  ///< Empty if the node reads an operand through windows.
  list<sharding> results;        ///< The shardings in which it makes its results.

  constexpr placement(const planning& p, const node& n, const partitioning& how, std::int64_t loop_bytes)
      : chosen(how), may_loop(detail::may_loop(p, n, loop_bytes)) {
    bool decided = true;
    for (int i = 0; i < n.inputs && n.rule.windows.empty(); ++i) {
      operands.push_back(operand_place(p, n, i, how, decided));
      decided = decided && operands.back().form >= 0;
    }
    for (int o = 0; o < n.outputs; ++o) results.push_back(result_sharding(n, o, how.how, how.partial));
  }
};

/// The placements of nodes so far. A node gets the placement of an earlier one if they agree in all that `choose_strategy` reads. These are
/// their rules, and the dims, element types, wanted shardings and forms of their tensors.
// Plain arrays and few calls, because the constexpr evaluator keeps the result of every call.
class chosen_strategies {
 public:
  constexpr chosen_strategies() : newest_(rows, -1), key_(most_words, 0) {
    entries_.reserve(rows);
    keys_.reserve(room_);
  }

  /// The placement of a node. The reference is valid until the next call. @see choose_strategy, may_loop
  constexpr const placement& choose(const planning& p, const node& n, bool combines, std::int64_t loop_bytes) {
    if (!entries_.empty() && entries_.back().words == 0) entries_.pop_back();  // no other node can get its placement
    const std::size_t words = write_key(p, n, combines);
    const std::uint64_t *const key = key_.data(), *const keys = keys_.data();
    std::int32_t& newest = newest_.data()[(std::size_t(n.kind->id) * 8 + words) % rows];  // a hash would cost more than it saves
    for (std::int32_t i = newest; i >= 0 && words > 0;) {
      const entry& e = entries_.data()[i];
      const std::uint64_t* const other = keys + e.begin;
      std::size_t same = e.words == words ? 0 : words + 1;
      while (same < words && other[same] == key[same]) ++same;
      if (same == words) return e.found;
      i = e.next;
    }
    entries_.push_back({{p, n, choose_strategy(p, n, combines), loop_bytes}, keys_.size(), words, newest});
    if (keys_.size() + words > room_) keys_.reserve(room_ = 2 * (keys_.size() + words));
    keys_.append(key, words);
    if (words > 0) newest = std::int32_t(entries_.size()) - 1;
    return entries_.back().found;
  }

 private:
  struct entry {
    placement found;
    std::size_t begin, words;  // its key in keys_
    std::int32_t next;         // the entry before it in the same row of newest_, or -1
  };
  static constexpr std::size_t rows = 256, most_words = 256, most_tensors = 24;

  list<entry> entries_;
  std::size_t room_ = rows * 32;  // the capacity of keys_
  list<std::uint64_t> keys_;
  list<std::int32_t> newest_;  // by kind of operation and words of the key
  list<std::uint64_t> key_;    // of the node
  std::size_t at_ = 0;         // the words of key_ so far
  std::int32_t tensors_[most_tensors]{};  // those in key_
  std::size_t count_ = 0;                 // of tensors_
  bool fits_ = true;

  /// Writes all that `choose_strategy` reads to `key_`, and returns the number of words. 0: it reads too much. Each part of a key states
  /// which parts follow it and how many, so that equal keys have equal parts.
  constexpr std::size_t write_key(const planning& p, const node& n, bool combines) {
    if (traits(n.kind).taps || traits(n.kind).ids_of_result || follows_result(n)) return 0;
    count_ = 0;
    key_.data()[0] = combines;
    at_ = 1;
    fits_ = true;
    write_node(p, n);
    const value* const values = p.g.values.data();
    for (int o = 0; o < n.outputs && has_room(); ++o) {
      const value& v = values[n.out[o]];
      write_value(v, p.may_stay_partial.data()[n.out[o]] | p.cache.may_count_rows(n.out[o]) << 2);
      write_sharding(v.layout, v.layout.open);
      write_counts(p, n.out[o]);
    }
    return fits_ ? at_ : 0;
  }
  /// True if the next part of the key fits: a node, or a tensor without its forms.
  constexpr bool has_room() { return fits_ = fits_ && at_ + 64 <= most_words; }
  constexpr void write_node(const planning& p, const node& n) {
    std::uint64_t* const key = key_.data();
    const attributes& a = n.attr;
    std::size_t at = at_;
    key[at++] = std::uint64_t(n.kind->id) | std::uint64_t(n.inputs) << 16 | std::uint64_t(n.outputs) << 24 |
                std::uint64_t(a.combine) << 32 | std::uint64_t(a.change) << 36 | std::uint64_t(a.fill != 0) << 41 |
                std::uint64_t(n.rule.windows.count) << 42 | std::uint64_t(n.rule.blocked) << 48;
    key[at++] = std::uint32_t(a.dim) | std::uint64_t(std::uint32_t(a.window)) << 32;
    key[at++] = n.rule.windows.bits;
    if (traits(n.kind).linear == linearity::of_function)
      key[at++] = std::uint64_t(a.function->linear) | std::uint64_t(a.function->linear_operands) << 8;
    for (int o = 0; o < n.outputs; ++o) key[at++] = n.rule.out[o].bits | std::uint64_t(n.rule.out[o].count) << 32;
    for (int i = 0; i < n.inputs; ++i) key[at++] = n.rule.in[i].bits | std::uint64_t(n.rule.in[i].count) << 32;
    at_ = at;
    for (int i = 0; i < n.inputs && has_room(); ++i) write_operand(p, n.in[i]);
  }
  /// A tensor that is in the key already is written as its number there: the price of a repetition counts it once.
  constexpr void write_operand(const planning& p, std::int32_t tensor) {
    std::uint64_t* const key = key_.data();
    std::size_t number = 0;
    while (number < count_ && tensors_[number] != tensor) ++number;
    const std::size_t begin = at_++;
    key[begin] = number;
    if (number < count_) return;
    fits_ = count_ < most_tensors;
    if (!fits_) return;
    tensors_[count_++] = tensor;
    const bool of_smaller = p.cache.is_of_smaller(tensor);
    write_value(p.g.values.data()[tensor], p.needs_complete.data()[tensor] | of_smaller << 1 | p.cache.may_count_rows(tensor) << 2);
    key[begin] |= write_forms(p, tensor) << 32;
    write_counts(p, tensor);
    if (!of_smaller || !has_room()) return;
    const node& maker = p.g.nodes.data()[p.g.values.data()[tensor].producer];
    for (int i = 0; i < maker.inputs; ++i) key[at_++] = std::uint64_t(p.cache.is_overwritten(maker.in[i]));
    write_node(p, maker);
  }
  constexpr void write_value(const value& v, int more = 0) {
    std::uint64_t* const key = key_.data();
    key[at_++] = std::uint64_t(v.type) | std::uint64_t(v.bf16_on_wire) << 8 | std::uint64_t(v.fits_bf16) << 9 |
                 std::uint64_t(more) << 10 | std::uint64_t(v.dims.count) << 16;
    key[at_++] = v.dims.bits;
  }
  /// Returns the number of forms.
  constexpr std::uint64_t write_forms(const planning& p, std::int32_t tensor) {
    std::uint64_t forms = 0;
    for (std::int32_t form = p.cache.first(tensor); form >= 0 && has_room(); form = p.cache.next(form), ++forms) {
      const value& held = p.cache.at(form);
      write_sharding(held.layout, held.windows.count);
      if (held.windows.count > 0) key_.data()[at_++] = held.windows.bits;
    }
    return forms;
  }
  constexpr void write_sharding(const sharding& s, std::uint8_t more) {
    std::uint64_t* const key = key_.data();
    std::size_t at = at_ + 1;
    std::uint64_t sharded = 0;  // a bit per dim
    for (int d = 0; d < s.rank; ++d)
      if (s.axes[d].count > 0) {
        key[at++] = s.axes[d].bits | std::uint64_t(s.axes[d].count) << 32;
        sharded |= std::uint64_t(1) << d;
      }
    key[at_] = sharded << 48 | std::uint64_t(s.rank) << 40 | std::uint64_t(more) << 32 | std::uint64_t(s.partial) << 16 |
               std::uint64_t(s.pending) << 8 | std::uint64_t(s.order);
    at_ = at;
  }
  /// The counts of a tensor's rows, and the choices that are counted. @see layout_cache::moves_between
  constexpr void write_counts(const planning& p, std::int32_t tensor) {
    if (!p.cache.may_count_rows(tensor) || !has_room()) return;
    const std::int32_t counts = row_counts(p.g, tensor);
    const std::size_t begin = at_++;
    key_.data()[begin] = std::uint64_t(counts >= 0);
    if (counts < 0) return;
    fits_ = !p.cache.is_of_smaller(counts);
    write_value(p.g.at(p.g.nodes.data()[p.g.at(counts).producer].in[0]));
    key_.data()[begin] |= write_forms(p, counts) << 32;
  }
};

}}}  // namespace gshard::v0::detail
