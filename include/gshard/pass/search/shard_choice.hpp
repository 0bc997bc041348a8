// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/list.hpp>
#include <gshard/base/list_view.hpp>
#include <gshard/base/name.hpp>
#include <gshard/ir/fault.hpp>
#include <gshard/ir/graph.hpp>
#include <gshard/ir/sharding.hpp>
#include <gshard/pass/compile.hpp>
#include <gshard/pass/cost/step_time.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

struct search_options {
  /// Extents by letter (all of them), and how the plan will be compiled.
  compile_options compile;
  machine on;
  /// Bytes that a device may hold; 0: any number.
  std::int64_t memory_limit = 0;
  /// How many plans may be made and priced. Where there are no more ways than that to lay everything out, all are tried.
  std::int64_t evaluations = 4096;
  /// How many partial choices a search that cannot try all goes on with.
  int beam = 4;
  /// From how many other places, besides what it finds so, it then improves choices one by one.
  int restarts = 8;
  /// The state of an optimizer may be cut otherwise than its parameter.
  bool free_state = false;
};

/// The layout chosen for an input or a parameter, and the best plan seen in which it lies otherwise.
struct layout_choice {
  tensor_name name;
  std::int32_t value = -1;  ///< of the program that was searched
  bool is_parameter = false;
  std::int32_t as = -1;  ///< state of an optimizer: its parameter, a row of this table; else -1
  int candidates = 1;    ///< 1: the annotation left no choice
  sharding layout;
  sharding next;
  double next_seconds = -1;  ///< -1: none was tried
  std::int64_t next_bytes = 0;
};

/// What a search found, and why: a row for every input in order, then one for every parameter. It is the best of all plans that were
/// priced.
struct shard_choice_view {
  list_view<layout_choice> tensors;
  step_price price;       ///< of the plan chosen
  step_price unsearched;  ///< of the program as it was annotated; none (0) where strictness refuses that
  std::int64_t memory_limit = 0;
  std::int64_t evaluations = 0;  ///< plans that were priced
  bool exact = false;            ///< every way was tried

  constexpr bool fits(std::int64_t bytes) const { return memory_limit <= 0 || bytes <= memory_limit; }
};

struct shard_choice {
  list<layout_choice> tensors;
  shard_choice_view summary;  // without its table
  diagnostic problem;

  constexpr shard_choice_view view() const {
    shard_choice_view v = summary;
    v.tensors = tensors;
    return v;
  }
  /// Gives the layouts to the program that was searched, or to the same one traced again.
  constexpr void apply_to(graph& g) const {
    for (const layout_choice& t : tensors) g.at(t.value).layout = t.layout;
  }
};

}}  // namespace gshard::v0
