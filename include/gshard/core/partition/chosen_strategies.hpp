// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Chooses the strategy of every node once for all nodes of its kind, because the layers of a model repeat.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/partition/choose_strategy.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// The strategies that were chosen so far. A node that agrees with an earlier one in all that `choose_strategy` reads gets its strategy:
/// they have the same rule, and tensors of the same dims, element types, wanted shardings and forms.
// Plain arrays and few calls, because the constexpr evaluator keeps the result of every call.
class chosen_strategies {
 public:
  constexpr chosen_strategies() : newest_(rows, -1), key_(most_words, 0) { keys_.reserve(rows * most_words); }

  /// The strategy of a node. The reference is valid until the next call. @see choose_strategy
  constexpr const partitioning& choose(const planning& p, const node& n, bool combines) {
    const std::size_t words = write_key(p, n, combines);
    const std::uint64_t* const key = key_.data();
    if (words == 0) return own_ = choose_strategy(p, n, combines);
    std::uint64_t hash = words;
    for (std::size_t i = 0; i < words; ++i) hash = (hash ^ key[i] ^ hash >> 32) * 0x9e3779b97f4a7c15;
    std::int32_t& newest = newest_.data()[hash >> 56];
    const std::uint64_t* const keys = keys_.data();
    for (std::int32_t i = newest; i >= 0;) {
      const entry& e = entries_.data()[i];
      std::size_t same = e.words == words ? 0 : words + 1;
      while (same < words && keys[e.begin + same] == key[same]) ++same;
      if (same == words) return e.chosen;
      i = e.next;
    }
    entries_.push_back({choose_strategy(p, n, combines), keys_.size(), words, newest});
    keys_.append(key, words);
    newest = std::int32_t(entries_.size()) - 1;
    return entries_.back().chosen;
  }

 private:
  struct entry {
    partitioning chosen;
    std::size_t begin, words;  // its key in keys_
    std::int32_t next;         // the entry before it with the same hash, or -1
  };
  static constexpr std::size_t rows = 256, most_words = 96;

  list<entry> entries_;
  list<std::uint64_t> keys_;
  list<std::int32_t> newest_;  // by hash
  list<std::uint64_t> key_;    // of the node
  partitioning own_{strategy(0), {}};

  /// Writes all that `choose_strategy` reads to `key_`, and returns the number of words. 0: it reads more than the node and the forms of its
  /// tensors, or there are too many forms.
  constexpr std::size_t write_key(const planning& p, const node& n, bool combines) {
    const operation& t = traits(n.kind);
    if (n.rule.windows.count > 0 || t.taps || t.ids_of_result || follows_result(n)) return 0;
    const value* const values = p.g.values.data();
    std::uint64_t* const key = key_.data();
    std::size_t at = 0;
    const attributes& a = n.attr;
    key[at++] = std::uint64_t(t.id) | std::uint64_t(n.inputs) << 16 | std::uint64_t(n.outputs) << 24 | std::uint64_t(a.combine) << 32 |
                std::uint64_t(a.change) << 36 | std::uint64_t(combines) << 40 | std::uint64_t(a.fill != 0) << 41 |
                std::uint64_t(n.inputs == 2 && n.in[0] == n.in[1]) << 42 | std::uint64_t(n.rule.blocked) << 48;
    key[at++] = std::uint32_t(a.dim) | std::uint64_t(a.window) << 32;
    if (a.function) key[at++] = std::uint64_t(a.function->linear) | std::uint64_t(a.function->linear_operands) << 8;
    for (int i = 0; i < n.inputs + n.outputs; ++i) {
      const bool is_operand = i < n.inputs;
      const std::int32_t tensor = is_operand ? n.in[i] : n.out[i - n.inputs];
      const value& v = values[tensor];
      if ((is_operand && p.cache.is_of_smaller(tensor)) || p.cache.may_count_rows(tensor)) return 0;
      const short_list& factors = is_operand ? n.rule.in[i] : n.rule.out[i - n.inputs];
      const char may = is_operand ? p.needs_complete.data()[tensor] : p.may_stay_partial.data()[tensor];
      key[at++] = factors.bits | std::uint64_t(factors.count) << 32 | std::uint64_t(v.type) << 40 | std::uint64_t(v.bf16_on_wire) << 48 |
                  std::uint64_t(v.fits_bf16) << 49 | std::uint64_t(may) << 50;
      key[at++] = v.dims.bits;
      if (!is_operand) {
        at = write(v.layout, v.layout.open, at);
        continue;
      }
      for (std::int32_t form = p.cache.first(tensor); form >= 0; form = p.cache.next(form)) {
        if (at + 3 * (max_rank + 2) > most_words) return 0;
        const value& held = p.cache.at(form);
        at = write(held.layout, held.windows.count, at);
      }
    }
    return at;
  }
  /// Writes a sharding after `at` words. The first word of a sharding has its highest bit set.
  constexpr std::size_t write(const sharding& s, std::uint8_t more, std::size_t at) {
    std::uint64_t* const key = key_.data();
    key[at++] = std::uint64_t(1) << 63 | std::uint64_t(s.rank) << 40 | std::uint64_t(more) << 32 | std::uint64_t(s.partial) << 16 |
                std::uint64_t(s.pending) << 8 | std::uint64_t(s.order);
    for (int d = 0; d < s.rank; ++d)
      if (s.axes[d].count > 0) key[at++] = s.axes[d].bits | std::uint64_t(s.axes[d].count) << 32 | std::uint64_t(d) << 40;
    return at;
  }
};

}}}  // namespace gshard::v0::detail
