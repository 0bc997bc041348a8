// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mesh.hpp"
#include "refusal.hpp"
#include "scanner.hpp"

#include <gshard/core/ir/device_order.hpp>
#include <gshard/core/ir/sharding.hpp>
#include <gshard/exec/backend/device_group.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace planning {

/// A tensor on the command line: `4@x,24,100@(y,z)+partial(w)` is 4 x 24 x 100. Its dims are sharded over the axes after '@', major to
/// minor, and its sum over w is pending. `+max(w)`, `+min(w)` and `+prod(w)` are other pending reductions. `8@x+order(1,0)` is on the
/// devices in this order instead of the mesh's. A tensor without dims is a `scalar`.
struct shape {
  std::vector<std::int64_t> extents;
  gs::sharding layout;            // on the mesh's device order
  std::vector<int> order{};       // device order; empty: the mesh's

  int rank() const { return int(extents.size()); }
  bool operator==(const shape&) const = default;
};

namespace detail {
/// The text of each pending reduction, in the order of gs::reduction.
inline constexpr std::array<std::string_view, 4> pending_words{"+partial(", "+max(", "+min(", "+prod("};
}  // namespace detail

inline shape parse_shape(std::string_view text, const gs::mesh_shape& mesh) {
  shape s;
  scanner in("shape", text, "4@x,24,100@(y,z)+partial(w)");
  gs::diagnostic problem;
  unsigned seen = 0;
  const auto axis = [&] {
    const std::string_view name = in.axis();
    const int a = mesh.find(name);
    if (a < 0)
      problem.report(gs::fault::unknown_axis, text, name);
    else if ((seen >> a) & 1u)
      problem.report(gs::fault::axis_used_twice, text, name);
    refuse(problem, mesh);
    seen |= 1u << a;
    return a;
  };
  const auto axes = [&](auto add) {
    do add(axis());
    while (in.accept(","));
    in.expect(")");
  };
  if (!in.accept("scalar")) do {
      if (s.rank() == gs::max_rank) in.fail("expected its end, because a tensor has at most 8 dims");
      gs::short_list& cut = s.layout[s.rank()];
      s.extents.push_back(in.extent());
      if (!in.accept("@")) continue;
      if (in.accept("("))
        axes([&](int a) { cut.push_back(a); });
      else
        cut.push_back(axis());
    } while (in.accept(","));
  s.layout.rank = std::uint8_t(s.rank());
  for (std::size_t r = 0; r < detail::pending_words.size() && !s.layout.partial; ++r)
    if (in.accept(detail::pending_words[r])) {
      s.layout.pending = gs::reduction(r);
      axes([&](int a) { s.layout.partial = std::uint8_t(s.layout.partial | (1u << a)); });
    }
  if (in.accept("+order(")) {
    if (s.layout.partial) in.fail("expected its end, because partial sums lie in the mesh's order");
    do s.order.push_back(int(in.integer()));
    while (in.accept(","));
    in.expect(")");
    const int devices = gs::device_count(extents_of(mesh));
    if (!gs::is_order(s.order, devices))
      throw refusal("the order of \"" + std::string(text) + "\" must have each of the " +
                    std::to_string(devices) + " devices of the mesh once");
    if (s.layout.used() == 0 || std::is_sorted(s.order.begin(), s.order.end())) s.order.clear();
  }
  in.expect_end();
  return s;
}

namespace detail {
inline std::string list_of(const std::vector<std::string>& words) {
  std::string s;
  for (const std::string& w : words) s += (s.empty() ? "" : ",") + w;
  return s;
}
}  // namespace detail

/// The inverse of parse_shape.
inline std::string text_of(const shape& s, const gs::mesh_shape& mesh) {
  std::vector<std::string> dims, sums;
  for (int d = 0; d < s.rank(); ++d) {
    std::vector<std::string> cut;
    for (int i = 0; i < s.layout[d].size(); ++i) cut.emplace_back(mesh.name(s.layout[d][i]));
    const std::string axes = detail::list_of(cut);
    dims.push_back(std::to_string(s.extents[std::size_t(d)]) + (cut.empty() ? "" : cut.size() == 1 ? "@" + axes : "@(" + axes + ")"));
  }
  for (int a = 0; a < mesh.rank(); ++a)
    if (s.layout.is_partial(a)) sums.emplace_back(mesh.name(a));
  std::vector<std::string> devices;
  for (const int device : s.order) devices.push_back(std::to_string(device));
  return (dims.empty() ? "scalar" : detail::list_of(dims)) + (devices.empty() ? "" : "+order(" + detail::list_of(devices) + ")") +
         (sums.empty() ? "" : std::string(detail::pending_words[std::size_t(s.layout.pending)]) + detail::list_of(sums) + ")");
}

/// "[2,24,50]"
inline std::string text_of(std::span<const std::int64_t> extents) {
  std::vector<std::string> words;
  for (const std::int64_t e : extents) words.push_back(std::to_string(e));
  return "[" + detail::list_of(words) + "]";
}

}  // namespace planning
