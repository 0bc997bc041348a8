// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Lifetimes of a plan's values: which values share storage, and between which steps it is needed.

#include <gshard/base/list.hpp>
#include <gshard/ir/graph.hpp>

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
  for (const parameter& p : parameters)
    if (p.updated >= 0) at[at[p.updated].root].last = end;
  return life;
}

}  // namespace detail

}}  // namespace gshard::v0
