// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/list_view.hpp>
#include <gshard/ir/fault.hpp>
#include <gshard/ir/sharding.hpp>
#include <gshard/pass/check.hpp>
#include <gshard/pass/cost/step_time.hpp>
#include <gshard/pass/program.hpp>
#include <gshard/pass/search/shard_search.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

namespace detail {
/// Options of a search, which a program passes over.
struct search_option {};
}  // namespace detail

/// Bytes that a device may hold: parameters with the state of optimizers, inputs, and what is alive at once in between.
template <std::int64_t Bytes>
struct memory_limit : detail::search_option {};
/// The devices that plans are priced for.
template <machine Machine>
struct runs_on : detail::search_option {};
/// How many plans the compiler may make to choose among. As a node of one takes it some milliseconds and, with g++, 0.4 MB, these are
/// unless said as many as have 2500 nodes together: all that there are for a layer of a few tensors on one axis.
template <std::int64_t Count>
struct evaluations : detail::search_option {};
/// The state of an optimizer may be cut where its parameter is whole.
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

/// A search that a compiler can afford, unless the program says how many plans it may make.
constexpr search_options affordable_search(const graph& g) {
  constexpr std::int64_t nodes = 2500, least = 32;
  search_options o;
  o.evaluations = nodes / (std::int64_t(g.nodes.size()) + 1);
  if (o.evaluations < least) o.evaluations = least;
  o.beam = 1;
  return o;
}

/// What a search at compile time found, in arrays of just the right size.
template <std::size_t Tensors>
struct choice_storage {
  std::array<layout_choice, Tensors> tensors{};
  std::array<sharding, Tensors> layouts{};
  std::size_t count = 0;  // none after a fault
  shard_choice_view summary;
  diagnostic problem;

  constexpr explicit choice_storage(const shard_choice& c) : count(c.tensors.size()), summary(c.summary), problem(c.problem) {
    for (std::size_t i = 0; i < count; ++i) {
      tensors[i] = c.tensors[i];
      layouts[i] = c.tensors[i].layout;
    }
  }
};

template <auto Model, class Mesh, class... Options>
struct layout_search {
  static constexpr program_options options = [] {
    program_options o;
    (apply(o, Options{}), ...);
    return o;
  }();
  static constexpr std::size_t tensors = [] {
    const graph g = trace_program<Model, Mesh, Options...>(options);
    return g.inputs.size() + g.parameters.size();
  }();
  static constexpr choice_storage<tensors> found{[] {
    const graph g = trace_program<Model, Mesh, Options...>(options);
    search_options o = affordable_search(g);
    o.compile = options.compile;
    (apply_to_search(o, Options{}), ...);
    return search_shardings(g, Mesh::shape, o);
  }()};
  /// What only a search can find wrong. The rest is said by the program.
  static constexpr diagnostic problem =
      found.problem.what == fault::unknown_extent || found.problem.what == fault::too_little_memory ? found.problem : diagnostic{};
};

/// An option of a program: the layouts that a search found.
template <class Search>
struct layouts_of {};
template <class Search>
constexpr void apply(program_options& o, layouts_of<Search>) {
  o.layouts = {Search::found.layouts.data(), Search::found.count};
}

}  // namespace detail

/// A program whose layouts the compiler chooses: `auto_shard<layer, mesh<axis<"x", 4>>, in<"BM">, extent<'B', 64>, ...>` is the
/// `program` of the same arguments with the annotations that an expert would add. Extents of all letters and axes must be given.
/// Annotations that are there are kept. `plan`: as that of a program. `choice`: what was chosen, and what else it would have cost.
/// Compile time: as a program; too little memory; an extent that is missing.
/// @see search_shardings: the same at run time, and what is searched
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
