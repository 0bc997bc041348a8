// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Lifetimes of a plan's values: which values share storage, and between which steps it is needed.

#include <gshard/core/base/list.hpp>
#include <gshard/core/ir/graph.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

/// The storage of a value's shards, and the steps between which it is needed.
struct lifetime {
  std::int32_t root = -1;      ///< the value whose storage this one shares; itself if it has its own
  std::int32_t first = 0;      ///< step that writes the storage
  std::int32_t last = -1;      ///< last step that reads it
  bool persistent = false;     ///< a parameter, or memory of the caller: outlives the run of the plan
};

namespace detail {

/// True if the kernel of a step may overwrite this operand with its result.
constexpr bool may_write_over(const node& n, int operand) {
  const int may = traits(n.kind).overwrites;
  return may == operation::any_of_its_dims ? n.rule.in[operand] == n.rule.out[0] : operand == may;
}

/// New values of variables are computed in the storage of the variables, if no later step reads the old value and none may fail. Other new
/// values are copied there when the run has succeeded.
constexpr void write_into_parameters(list<lifetime>& life, const list<node>& steps, const list<parameter>& parameters) {
  lifetime* const at = life.data();
  const auto end = std::int32_t(steps.size());
  std::int32_t safe = end;  // no step from here on may fail
  const auto is_safe = [&](std::int32_t step) {
    const auto fails = [](const node& n) { return (may_fail(n.kind) && !n.attr.inside) || is_of_loop(n.kind); };
    while (safe > step && !fails(steps[std::size_t(safe - 1)])) --safe;
    return safe <= step;
  };
  bool moved = false;
  for (const parameter& p : parameters) {
    if (p.updated < 0) continue;
    lifetime& next = at[at[p.updated].root];
    const std::int32_t root = next.root, made = next.first;
    next.last = end;
    if (next.persistent || made < 0 || at[p.value].last > made || !is_safe(made)) continue;
    const node& maker = steps[std::size_t(made)];
    bool may = !traits(maker.kind).reshards && !traits(maker.kind).collective;
    for (int k = 0; k < maker.inputs; ++k) may = may && (at[maker.in[k]].root != p.value || may_write_over(maker, k));
    if (!may) continue;
    at[root].root = p.value;
    at[p.value].last = end;
    moved = true;
  }
  for (std::size_t v = 0; moved && v < life.size(); ++v)
    if (at[v].root >= 0) at[v].root = at[at[v].root].root;
}

/// Lifetimes of all values: a result of an alias operation or of an in-place update shares its operand's storage.
constexpr list<lifetime> lifetimes(const list<value>& values, const list<node>& steps,
                                          const list<parameter>& parameters, const list<port>& inputs,
                                          const list<port>& outputs) {
  list<lifetime> life(values.size());
  lifetime* const at = life.data();
  const auto own = [at](std::int32_t v, std::int32_t step) {
    lifetime& l = at[v];
    l.root = v;
    l.first = l.last = step;
  };
  for (const port& p : inputs) own(p.value, -1);
  for (const parameter& p : parameters) {
    own(p.value, -1);
    at[p.value].persistent = true;
  }
  const node* const step = steps.data();
  const auto end = std::int32_t(steps.size());
  for (std::int32_t now = 0; now < end; ++now) {
    const node& n = step[now];
    for (int k = 0; k < n.inputs; ++k) at[at[n.in[k]].root].last = now;
    for (int o = 0; o < n.outputs; ++o) {
      if (o < n.in_place || (o == 0 && traits(n.kind).alias)) at[n.out[o]].root = at[n.in[o]].root;
      else own(n.out[o], now);
    }
  }
  for (const port& p : outputs) at[at[p.value].root].last = end;
  for (const parameter& p : parameters)  // the old value of one parameter may be the new value of another
    if (p.updated >= 0 && at[at[p.updated].root].persistent) at[at[p.updated].root].last = end;
  write_into_parameters(life, steps, parameters);
  return life;
}

}  // namespace detail

}}  // namespace gshard::v0
