// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The extents that a plan assumes, and which of them decide what it does.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/program/program_options.hpp>

#include <cstdint>
#include <string>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/program/compile.hpp>
#include <gshard/core/reshard/cost.hpp>

#include <cstddef>
#include <string_view>
#endif

namespace gshard { inline namespace v0 {

/// An extent that the planner assumed, because neither the program nor its mesh states it.
struct assumed_extent {
  std::string name;         ///< A letter, or a mesh axis.
  std::int64_t extent = 0;  ///< What was assumed.
  /// With a sixteenth or sixteen times the extent (a quarter or four times the devices), the plan is another one.
  bool decides = false;
};

/// The extents that the plan of a traced program assumes: its letters, then its mesh axes. Plans the program twice for each.
std::vector<assumed_extent> assumed_extents(const graph& traced, const mesh_shape& mesh, const compile_options& options);

/// The same for a `program`.
template <class Program>
std::vector<assumed_extent> assumed_extents() {
  return assumed_extents(Program::traced(), Program::plan.mesh, Program::options());
}

/// One line: "assumes B=64, V=64*, x=8; with another extent of those with a *, the plan is another one". Empty if nothing is assumed.
std::string describe(const std::vector<assumed_extent>& all);

#if GSHARD_HAS_BODIES

namespace detail {

/// True if devices run the same steps on the same shards.
inline bool same_steps(const plan_tables& a, const plan_tables& b) {
  bool same = !a.problem && !b.problem && a.steps.size() == b.steps.size() && a.values.size() == b.values.size();
  for (std::size_t v = 0; same && v < a.values.size(); ++v)
    same = a.values[v].layout.same_layout(b.values[v].layout) && a.values[v].windows == b.values[v].windows;
  for (std::size_t i = 0; same && i < a.steps.size(); ++i) {
    const node &s = a.steps[i], &t = b.steps[i];
    same = s.kind == t.kind && s.inputs == t.inputs && s.outputs == t.outputs && s.attr.axes == t.attr.axes && s.attr.moves == t.attr.moves;
    for (int k = 0; same && k < s.inputs; ++k) same = s.input(k) == t.input(k);
    for (int o = 0; same && o < s.outputs; ++o) same = s.output(o) == t.output(o);
  }
  return same;
}

}  // namespace detail

GSHARD_INLINE std::vector<assumed_extent> assumed_extents(const graph& traced, const mesh_shape& mesh, const compile_options& options) {
  const auto planned = [&](const compile_options& how) {
    graph g = traced;
    return compile(g, mesh, how);
  };
  const plan_tables plan = planned(options);
  std::vector<assumed_extent> all;
  const auto add = [&](std::string_view name, std::int64_t extent, std::int64_t factor, const auto& assume) {
    const auto differs = [&](std::int64_t other) {
      compile_options how = options;
      assume(how, other < 1 ? 1 : other);
      return !detail::same_steps(planned(how), plan);
    };
    all.push_back({std::string(name), extent, differs(extent / factor) || differs(extent * factor)});
  };
  for (const dim& d : traced.dims) {
    if (d.what != dim::kind::bound || options.known.has(d.letter)) continue;
    const std::int64_t given = options.assumed.find(d.letter);
    add({&d.letter, 1}, given > 0 ? given : detail::assumed_dim, 16,
        [&](compile_options& how, std::int64_t extent) { how.assumed.set(d.letter, extent); });
  }
  for (int a = 0; a < mesh.rank(); ++a) {
    if (mesh.static_extent(a) != dynamic) continue;
    const int given = options.assumed_axes[std::size_t(a)];
    add(mesh.name(a), given > 0 ? given : detail::assumed_axis, 4,
        [&](compile_options& how, std::int64_t extent) { how.assumed_axes[std::size_t(a)] = int(extent); });
  }
  return all;
}

GSHARD_INLINE std::string describe(const std::vector<assumed_extent>& all) {
  std::string s;
  bool decides = false;
  for (const assumed_extent& e : all) {
    s.append(s.empty() ? "assumes " : ", ").append(e.name).append("=").append(std::to_string(e.extent)).append(e.decides ? "*" : "");
    decides = decides || e.decides;
  }
  if (decides) s += "; with another extent of those with a *, the plan is another one";
  return s.empty() ? s : s + "\n";
}

#endif

}}  // namespace gshard::v0
