// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The auto_shard program: the compiler chooses its shardings by a search over plans.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/ir/fault.hpp>
#include <gshard/core/ir/sharding.hpp>
#include <gshard/core/program/check.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/core/program/runs_on.hpp>
#include <gshard/sim/search/shard_search.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

namespace detail {
/// The base of search options, which a program ignores.
struct search_option : added_option {};
}  // namespace detail

/// Bytes that a device may hold: parameters with optimizer state, inputs, and the peak of all other tensors.
template <std::int64_t Bytes>
struct memory_limit : detail::search_option {};
/// The number of plans that the compiler may make. The default is 2500 divided by the number of nodes, but at least 32. That is enough to
/// try all shardings of a layer of a few tensors on one axis. Each node of a plan takes some milliseconds, and with g++ 0.4 MB of memory.
template <std::int64_t Count>
struct evaluations : detail::search_option {};
/// Optimizer state may be sharded where its parameter is replicated.
struct state_cut_freely : detail::search_option {};

namespace detail {

template <std::derived_from<search_option> T>
constexpr void apply(program_options&, T) {}

template <class T>
constexpr void apply_to_search(search_options&, T) {}
template <std::int64_t Bytes>
constexpr void apply_to_search(search_options& o, memory_limit<Bytes>) {
  o.memory_limit = Bytes;
}
template <machine Machine>
constexpr void apply_to_search(search_options& o, runs_on<Machine>) {
  o.on = Machine;
}
template <std::int64_t Count>
constexpr void apply_to_search(search_options& o, evaluations<Count>) {
  o.evaluations = Count;
}
constexpr void apply_to_search(search_options& o, state_cut_freely) { o.free_state = true; }

/// Search options that a compiler can afford. The program may set the number of plans.
constexpr search_options affordable_search(const graph& g) {
  constexpr std::int64_t nodes = 2500, least = 32;
  search_options o;
  o.evaluations = nodes / (std::int64_t(g.nodes.size()) + 1);
  if (o.evaluations < least) o.evaluations = least;
  o.beam = 1;
  return o;
}

/// The result of a search at compile time, in arrays of exact size.
template <std::size_t Tensors>
struct choice_storage {
  std::array<layout_choice, Tensors> tensors{};
  std::array<sharding, Tensors> layouts{};
  std::size_t count = 0;  // 0 after a fault
  shard_choice_view summary;
  diagnostic problem;

  constexpr explicit choice_storage(const shard_choice& c) : count(c.tensors.size()), summary(c.summary), problem(c.problem) {
    for (std::size_t i = 0; i < count; ++i) {
      tensors[i] = c.tensors[i];
      layouts[i] = c.tensors[i].layout;
    }
  }
};

/// The search of `auto_shard`, in a program with these options.
template <auto Model, class Mesh, class... Options>
constexpr shard_choice search_layouts(const program_options& options) {
  const graph g = trace_program<Model, Mesh, Options...>(options);
  search_options o = affordable_search(g);
  o.compile = options.compile;
  (apply_to_search(o, Options{}), ...);
  return search_shardings(g, Mesh::shape, o);
}

template <auto Model, class Mesh, class... Options>
struct layout_search {
  static constexpr program_options options = options_of<Options...>();
  static constexpr std::size_t tensors = [] {
    const graph g = trace_program<Model, Mesh, Options...>(options);
    return g.inputs.size() + g.parameters.size();
  }();
  static constexpr choice_storage<tensors> found{search_layouts<Model, Mesh, Options...>(options)};
  /// Faults that only a search finds. The program reports all others.
  static constexpr diagnostic problem =
      found.problem.what == fault::unknown_extent || found.problem.what == fault::too_little_memory ? found.problem : diagnostic{};
};

/// A program option: the shardings that a search found.
template <class Search>
struct layouts_of {};
template <class Search>
constexpr void apply(program_options& o, layouts_of<Search>) {
  o.layouts = {Search::found.layouts.data(), Search::found.count};
}

}  // namespace detail

/// A program whose shardings the compiler chooses: `auto_shard<layer, mesh<axis<"x", 4>>, in<"BM">, ...>`. It is the
/// `program` of the same arguments with the annotations that an expert would add. Extents of all letters and axes must be given. Existing
/// annotations are kept. `plan`: as in a program. `choice`: the chosen shardings, and the price of alternatives.
/// Compile time: the faults of a program; too little memory; a missing extent.
/// @see search_shardings: the same at run time, and the search space
template <auto Model, class Mesh, class... Options>
class auto_shard : public program<Model, Mesh, Options..., detail::layouts_of<detail::layout_search<Model, Mesh, Options...>>> {
  using search = detail::layout_search<Model, Mesh, Options...>;
  static_assert(detail::check_program<search::problem.what, search::problem, Mesh>());

 public:
  static constexpr shard_choice_view choice = [] {
    shard_choice_view v = search::found.summary;
    v.tensors = {search::found.tensors.data(), search::found.count};
    return v;
  }();
};

}}  // namespace gshard::v0
