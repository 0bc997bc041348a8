// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Puts the steps of a plan into the order of the program, and leaves out steps that nothing reads.
//
// The partitioner places nodes in an order that depends on the graph alone (canonical_order.hpp). Devices run them in the order in which
// the program states them, so that tensors live as long as in the program.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/storage.hpp>
#include <gshard/core/reshard/collective_combiner.hpp>
#include <gshard/core/reshard/cost.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// Orders steps by their `place.position`. A step comes before its readers, and a step that overwrites a tensor comes after all readers of
/// the tensor. Steps stay in their segment between two nodes of loops.
class step_order {
 public:
  // Plain arrays and few calls, because the constexpr evaluator keeps the result of every call.
  constexpr step_order(const list<node>& steps, const list<value>& values, const list<parameter>& parameters, const list<port>& outputs,
                       bool has_loops)
      : steps_(steps.data()), values_(values.data()), state_(steps.size(), unread), order_(steps.size(), 0) {
    find_read(steps.size(), values.size(), parameters, outputs);
    find_overwritten(steps, values.size());
    const auto end = std::int32_t(steps.size());
    for (std::int32_t begin = 0; begin < end;) {
      std::int32_t stop = has_loops ? begin : end;
      while (stop < end && !is_of_loop(steps_[stop].kind)) ++stop;
      add_segment(begin, stop);
      if (stop < end) order_.data()[count_++] = stop;
      begin = stop + 1;
    }
  }

  constexpr const std::int32_t* begin() const { return order_.data(); }
  constexpr const std::int32_t* end() const { return order_.data() + count_; }

 private:
  static constexpr char unread = 0, read = 1, added = 2;  // states of a step

  const node* steps_;
  const value* values_;
  list<char> state_;  // by step
  list<std::int32_t> order_;
  std::size_t count_ = 0;
  list<std::int32_t> open_;          // steps to add, the last one first
  list<std::int32_t> root_;          // by value: the one whose storage it shares. Empty if no step overwrites a tensor
  list<std::int32_t> first_reader_;  // by root: a row of the lists below, or -1
  list<std::int32_t> reader_, next_reader_;

  /// Marks the steps that outputs, parameters and loops need.
  constexpr void find_read(std::size_t steps, std::size_t values, const list<parameter>& parameters, const list<port>& outputs) {
    list<char> needed_list(values, 0);
    char *const needed = needed_list.data(), *const state = state_.data();
    for (const port& p : outputs) needed[p.value] = 1;
    for (const parameter& p : parameters)
      if (p.updated >= 0) needed[p.updated] = 1;
    for (std::size_t i = steps; i-- > 0;) {
      const node& n = steps_[i];
      bool is_read = n.in_place > 0;
      for (int o = 0; o < n.outputs && !is_read; ++o) is_read = needed[n.out[o]];
      if (!is_read && !is_of_loop(n.kind)) continue;
      state[i] = read;
      for (int k = 0; k < n.inputs; ++k) needed[n.in[k]] = 1;
    }
  }
  /// Lists the readers of tensors that steps overwrite.
  constexpr void find_overwritten(const list<node>& steps, std::size_t values) {
    list<char> overwritten_list;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps_[i].in_place == 0 || !updates_parameters(steps_[i])) continue;
      if (overwritten_list.empty()) overwritten_list = list<char>(values, 0);
      for (int o = 0; o < steps_[i].in_place; ++o) overwritten_list.data()[steps_[i].in[o]] = 1;
    }
    if (overwritten_list.empty()) return;
    root_ = storage_roots(steps, values);
    first_reader_ = list<std::int32_t>(values, -1);
    char* const overwritten = overwritten_list.data();
    const std::int32_t* const root = root_.data();
    std::int32_t* const first_reader = first_reader_.data();
    for (std::size_t v = 0; v < values; ++v)
      if (overwritten[v]) overwritten[root[v]] = 1;
    for (std::size_t i = 0; i < steps.size(); ++i)
      for (int k = 0; k < steps_[i].inputs; ++k) {
        const std::int32_t r = root[steps_[i].in[k]];
        if (!overwritten[r]) continue;
        reader_.push_back(std::int32_t(i));
        next_reader_.push_back(first_reader[r]);
        first_reader[r] = std::int32_t(reader_.size()) - 1;
      }
  }
  constexpr void add_segment(std::int32_t begin, std::int32_t stop) {
    std::int32_t last = -1;
    for (std::int32_t i = begin; i < stop; ++i)
      if (steps_[i].place.position > last) last = steps_[i].place.position;
    list<std::int32_t> first_list(std::size_t(last) + 1, -1), next_list(std::size_t(stop - begin), -1);  // by position; by step
    std::int32_t *const first = first_list.data(), *const next = next_list.data();
    for (std::int32_t i = stop; i-- > begin;) {
      next[i - begin] = first[steps_[i].place.position];
      first[steps_[i].place.position] = i;
    }
    for (std::int32_t position = 0; position <= last; ++position)
      for (std::int32_t i = first[position]; i >= 0; i = next[i - begin]) add(i, begin);
  }
  /// Adds a step, after the steps of its segment that must come before it.
  constexpr void add(std::int32_t step, std::int32_t begin) {
    char* const state = state_.data();
    if (state[step] != read) return;
    push_missing(step, begin);
    while (!open_.empty()) {
      const std::int32_t i = open_.back();
      const std::size_t before = open_.size();
      if (state[i] == read) push_missing(i, begin);
      if (open_.size() != before) continue;
      open_.pop_back();
      if (state[i] == read) order_.data()[count_++] = i;
      state[i] = added;
    }
    state[step] = added;
    order_.data()[count_++] = step;
  }
  constexpr void push_missing(std::int32_t i, std::int32_t begin) {
    const node& n = steps_[i];
    const char* const state = state_.data();
    for (int k = n.inputs; k-- > 0;)
      if (const std::int32_t made = values_[n.in[k]].producer; made >= begin && state[made] == read) open_.push_back(made);
    if (n.in_place == 0 || !updates_parameters(n)) return;
    for (int o = 0; o < n.in_place; ++o)
      for (std::int32_t r = first_reader_.data()[root_.data()[n.in[o]]]; r >= 0; r = next_reader_.data()[r])
        if (const std::int32_t reader = reader_.data()[r]; reader < i && reader >= begin && state[reader] == read) open_.push_back(reader);
  }
};

/// Numbers values in the order in which steps make them, after parameters and inputs. Values that no step makes are removed.
constexpr void number_values(list<value>& values, list<node>& steps, list<parameter>& parameters, list<port>& inputs, list<port>& outputs) {
  list<std::int32_t> number_list(values.size(), -1), value_list(values.size(), 0);
  std::int32_t *const number = number_list.data(), *const value_of = value_list.data();
  std::int32_t count = 0;
  for (const parameter& p : parameters) value_of[number[p.value] = count++] = p.value;
  for (const port& p : inputs) value_of[number[p.value] = count++] = p.value;
  node* const all = steps.data();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    node& n = all[i];
    for (int k = 0; k < n.inputs; ++k) n.in[k] = number[n.in[k]];
    for (int o = 0; o < n.outputs; ++o) {
      const std::int32_t made = n.out[o];
      if (number[made] < 0) value_of[number[made] = count++] = made;
      n.out[o] = number[made];
    }
  }
  list<value> made;
  made.reserve(std::size_t(count));
  for (std::int32_t i = 0; i < count; ++i) made.push_back(values.data()[value_of[i]]);
  values.swap(made);
  for (parameter& p : parameters) {
    p.value = number[p.value];
    if (p.updated >= 0) p.updated = number[p.updated];
  }
  for (port& p : inputs) p.value = number[p.value];
  for (port& p : outputs) p.value = number[p.value];
}

/// Rewrites the steps of a plan in the order of the program, and combines its collectives. Collectives in loops are not combined.
constexpr void order_steps(list<value>& values, list<node>& steps, list<parameter>& parameters, list<port>& inputs, list<port>& outputs,
                           const list<window>& windows, const extents& e, std::int64_t combine_bytes, bool has_loops) {
  const step_order order(steps, values, parameters, outputs, has_loops);
  list<node> ordered;
  ordered.reserve(steps.size());
  collective_combiner combiner(ordered, values, windows, e, combine_bytes);
  int loops = 0;
  for (const std::int32_t i : order) {
    const node& n = steps.data()[i];
    for (int o = 0; o < n.outputs; ++o) values.data()[n.out[o]].producer = std::int32_t(ordered.size());
    const operation& kind = traits(n.kind);
    loops += kind.nesting;
    if (has_loops && is_of_loop(n.kind)) combiner.forget();
    if (loops == 0 && kind.collective && kind.reshards) combiner.add(n);
    else ordered.push_back(n);
  }
  steps.swap(ordered);
  number_values(values, steps, parameters, inputs, outputs);
}

}}}  // namespace gshard::v0::detail
