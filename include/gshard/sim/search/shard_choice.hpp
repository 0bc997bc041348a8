// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Options and result of a sharding search: the sharding chosen for each input and parameter, and its price.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/base/name.hpp>
#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/ir/fault.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/sharding.hpp>
#include <gshard/core/program/compile.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

struct search_options {
  /// Extents of all letters, and the options with which the plan will be compiled.
  compile_options compile{};
  /// Plans are made for this machine and priced on it. `start_bytes_of(on)` replaces `compile.start_bytes`, unless this is the default
  /// machine.
  machine on{};
  /// Bytes that a device may hold; 0: no limit.
  std::int64_t memory_limit = 0;
  /// The number of plans that may be made and priced. If there are at most this many combinations of shardings, all are tried.
  std::int64_t evaluations = 4096;
  /// The beam width of a search that cannot try all combinations.
  int beam = 4;
  /// The number of other starting points from which such a search improves single choices.
  int restarts = 8;
  /// Optimizer state may have another sharding than its parameter.
  bool free_state = false;
};

/// The sharding chosen for an input or a parameter, and the best priced plan with another sharding for it.
struct layout_choice {
  tensor_name name;
  std::int32_t value = -1;  ///< its id in the searched program
  bool is_parameter = false;
  std::int32_t as = -1;  ///< optimizer state: the row of its parameter in this table; otherwise -1
  int candidates = 1;    ///< 1: the annotation leaves no choice
  sharding layout;
  sharding next;
  double next_seconds = -1;  ///< -1: none was tried
  std::int64_t next_bytes = 0;
};

/// The result of a search: one row for each input in order, then one for each parameter. It is the best of all plans that were priced.
struct shard_choice_view {
  list_view<layout_choice> tensors;
  step_price price;       ///< of the chosen plan
  step_price unsearched;  ///< of the program as annotated; 0 if strictness refuses it
  std::int64_t memory_limit = 0;
  std::int64_t evaluations = 0;  ///< plans that were priced
  bool exact = false;            ///< all combinations were tried

  constexpr bool fits(std::int64_t bytes) const { return memory_limit <= 0 || bytes <= memory_limit; }
};

struct shard_choice {
  list<layout_choice> tensors;
  compile_options compile;  ///< The options with which the plans were made, with the start bytes of the machine.
  shard_choice_view summary;  // without its table
  diagnostic problem;

  constexpr shard_choice_view view() const {
    shard_choice_view v = summary;
    v.tensors = tensors;
    return v;
  }
  /// Applies the shardings to the searched program, or to the same program traced again.
  constexpr void apply_to(graph& g) const {
    for (const layout_choice& t : tensors) g.at(t.value).layout = t.layout;
  }
};

}}  // namespace gshard::v0
