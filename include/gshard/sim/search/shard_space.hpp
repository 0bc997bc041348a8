// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The search space of auto_shard: the candidate shardings of inputs and parameters.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/name.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/reshard/cost.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace detail {

/// True if `layout` satisfies an annotation: closed dims are unchanged, open dims may be sharded further.
constexpr bool refines(const sharding& given, const sharding& layout) {
  if (given.rank != layout.rank || given.partial != layout.partial) return false;
  for (int d = 0; d < given.rank; ++d)
    if (given.is_open(d) ? !given[d].is_prefix_of(layout[d]) : given[d] != layout[d]) return false;
  return true;
}

/// Tensors that share one sharding, and its candidates. The first candidate shards no open dim further.
struct shard_variable {
  list<std::int32_t> values;
  list<sharding> candidates;

  constexpr int find(const sharding& layout) const {
    for (std::size_t c = 0; c < candidates.size(); ++c)
      if (candidates[c].same_layout(layout)) return int(c);
    return -1;
  }
};

/// All shardings that refine an annotation. Each mesh axis shards one open dim or none. At most two axes shard a dim, in either order. The
/// extent of a sharded dim is a multiple of its blocks, or, if `uneven`, at least their number.
constexpr list<sharding> shard_candidates(const value& v, const mesh_shape& mesh, const extents& e, bool uneven) {
  constexpr int most_on_a_dim = 2;
  sharding given = v.layout;
  given.open = 0;
  list<sharding> found{given};
  for (int a = 0; a < mesh.count; ++a) {
    if (e.axis(a) <= 1 || (((given.used() | given.partial) >> a) & 1u)) continue;
    for (std::size_t i = 0, before = found.size(); i < before; ++i)
      for (int d = 0; d < v.rank(); ++d) {
        const short_list axes_of_dim = found[i][d];
        const std::int64_t extent = e.dim(v.dims[d]), pieces = e.devices(axes_of_dim.mask()) * e.axis(a);
        if (!v.layout.is_open(d) || axes_of_dim.size() >= most_on_a_dim || (uneven ? extent < pieces : extent % pieces != 0)) continue;
        for (int at = given[d].size(); at <= axes_of_dim.size(); ++at) {
          sharding s = found[i];
          s[d].insert(at, a);
          found.push_back(s);
        }
      }
  }
  return found;
}

/// The index of a candidate for every variable. -1: left to propagation.
using picks = list<std::int16_t>;

constexpr tensor_name without_digits(const tensor_name& name) {
  tensor_name s;
  for (const char c : name.view())
    if (c < '0' || c > '9') s.append({&c, 1});
  return s;
}

/// The inputs and parameters of a program as the variables of a search. Optimizer state takes the sharding of its parameter. It is a
/// variable only if the search may shard it further.
class shard_space {
 public:
  list<shard_variable> variables;

  /// `grouped`: tensors whose names differ only in digits get one sharding, for example in the layers of a model.
  constexpr shard_space(const graph& g, const mesh_shape& mesh, const extents& e, bool uneven, bool free_state, bool grouped) {
    if (!free_state) find_state(g);
    list<tensor_name> names;
    const auto add = [&](std::int32_t v, const tensor_name& called) {
      if (owner_of(v) >= 0) return;
      const value& t = g.at(v);
      const tensor_name name = without_digits(called);
      for (std::size_t k = 0; grouped && k < variables.size(); ++k) {
        const value& other = g.at(variables[k].values.front());
        if (names[k] != name || other.dims != t.dims || other.type != t.type || other.layout != t.layout ||
            (other.parameter < 0) != (t.parameter < 0))
          continue;
        variables[k].values.push_back(v);
        return;
      }
      shard_variable x;
      x.values.push_back(v);
      x.candidates = shard_candidates(t, mesh, e, uneven);
      variables.push_back(x);
      names.push_back(name);
    };
    for (const port& p : g.inputs) add(p.value, p.name);
    for (const parameter& p : g.parameters) add(p.value, p.name);
  }

  /// The number of combinations, or a lower bound of at least 2^40.
  constexpr std::int64_t ways() const {
    constexpr std::int64_t most = std::int64_t(1) << 40;
    std::int64_t n = 1;
    for (const shard_variable& x : variables)
      if (n < most) n *= std::int64_t(x.candidates.size());
    return n;
  }
  /// The picks of this space that equal the picks of a grouped space.
  constexpr picks as_in(const shard_space& groups, const picks& p) const {
    picks own(variables.size(), 0);
    for (std::size_t k = 0; k < groups.variables.size(); ++k)
      for (const std::int32_t member : groups.variables[k].values)
        for (std::size_t v = 0; v < variables.size(); ++v)
          if (variables[v].values.front() == member) own[v] = p[k];
    return own;
  }
  /// The parameter whose sharding this tensor takes, or -1.
  constexpr std::int32_t owner_of(std::int32_t v) const {
    for (const follower& f : state_)
      if (f.value == v) return f.owner;
    return -1;
  }

  /// Sets the sharding of the tensors of a variable, and of the optimizer state that takes it.
  constexpr void assign(graph& g, std::size_t variable, const sharding& layout) const {
    for (const std::int32_t v : variables[variable].values) {
      g.at(v).layout = layout;
      for (const follower& f : state_)
        if (f.owner == v && refines(f.given, layout)) g.at(f.value).layout = layout;
    }
  }

 private:
  struct follower {
    std::int32_t value = -1, owner = -1;
    sharding given;
  };
  list<follower> state_;

  constexpr void find_state(const graph& g) {
    for (const node& n : g.nodes)
      for (int i = 1; i < n.in_place; ++i) {
        const value &owner = g.at(n.input(0)), &v = g.at(n.input(i));
        if (owner.parameter < 0 || v.parameter < 0 || g.parameters[std::size_t(v.parameter)].trainable) continue;
        if (v.dims == owner.dims) state_.push_back({n.input(i), n.input(0), v.layout});
      }
  }
};

}}}  // namespace gshard::v0::detail
