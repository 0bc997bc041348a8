// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/pass/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {

inline std::string dim_text(const plan_view& plan, int d) {
  const dim& whole = plan.dims[std::size_t(d)];
  switch (whole.what) {
    case dim::kind::bound: return {whole.letter};
    case dim::kind::fixed: return std::to_string(whole.number);
    case dim::kind::product: return dim_text(plan, whole.first) + dim_text(plan, whole.second);
    case dim::kind::ratio: return "C";
  }
  return "?";
}

inline std::string axes_of_mask(const plan_view& plan, std::uint32_t mask) {
  std::string s;
  for (int a = 0; a < plan.mesh.rank(); ++a)
    if ((mask >> a) & 1u) s += (s.empty() ? "" : ",") + std::string(plan.mesh.name(a));
  return s;
}

inline std::string pad(std::string s, std::size_t width) {
  s.resize(s.size() < width ? width : s.size(), ' ');
  return s;
}

}  // namespace detail

/// A tensor of a plan as text: `f32[E@expert,G,C,M]`; dims, the axes that cut them, and `+axis` where a sum is pending.
inline std::string describe(const plan_view& plan, const value& v) {
  std::string s(v.type == dtype::f32 ? "f32" : v.type == dtype::f64 ? "f64" : "i32");
  s += '[';
  for (int d = 0; d < v.rank(); ++d) {
    s += (d ? "," : "") + detail::dim_text(plan, v.dims[d]);
    for (int i = 0; i < v.layout[d].size(); ++i) s += "@" + std::string(plan.mesh.name(v.layout[d][i]));
  }
  s += ']';
  if (v.layout.partial) s += "+" + detail::axes_of_mask(plan, v.layout.partial);
  return s;
}

/// "1.5 MiB"
inline std::string describe_bytes(std::int64_t bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto amount = double(bytes);
  std::size_t u = 0;
  for (; amount >= 1024 && u < 4; ++u) amount /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, u == 0 ? "%.0f %s" : "%.1f %s", amount, units[u]);
  return text;
}

/// One step as text: `all_to_all over expert   %11 f32[E,G@expert,C,M] -> %12 f32[E@expert,G,C,M]`.
inline std::string describe(const plan_view& plan, const node& step) {
  std::string s(name(step.kind));
  if (traits(step.kind).collective || step.kind == op::slice)
    s += " over " + detail::axes_of_mask(plan, std::uint32_t(step.attr.integer[0]));
  s = detail::pad(s, 24);
  for (int i = 0; i < step.inputs; ++i) s += (i ? ", " : " ") + ("%" + std::to_string(step.input(i))) + " " + describe(plan, plan.at(step.input(i)));
  s += " ->";
  for (int o = 0; o < step.outputs; ++o) s += (o ? ", " : " ") + ("%" + std::to_string(step.output(o))) + " " + describe(plan, plan.at(step.output(o)));
  return s;
}

/// A whole plan, a line a step.
inline std::string describe(const plan_view& plan) {
  std::string s = "mesh";
  for (int a = 0; a < plan.mesh.rank(); ++a)
    s += " " + std::string(plan.mesh.name(a)) +
         (plan.mesh.static_extent(a) == dynamic ? "" : "=" + std::to_string(plan.mesh.static_extent(a)));
  s += "; " + std::to_string(plan.steps.size()) + " steps, " + std::to_string(plan.collectives()) + " of them communicate\n";
  for (const port& p : plan.inputs) s += "  input %" + std::to_string(p.value) + " " + describe(plan, plan.at(p.value)) + "\n";
  for (const parameter& p : plan.parameters)
    s += "  param %" + std::to_string(p.value) + " " + describe(plan, plan.at(p.value)) + " " + std::string(p.name.view()) + "\n";
  for (const node& step : plan.steps) s += "  " + describe(plan, step) + "\n";
  for (const port& p : plan.outputs) s += "  output %" + std::to_string(p.value) + " " + describe(plan, plan.at(p.value)) + "\n";
  return s;
}

/// The collectives of a plan by kind: how many, and the bytes that one device receives at these extents.
inline std::string describe_communication(const plan_view& plan, const extents& sizes) {
  std::string s;
  for (const op_traits& t : op_table) {
    if (!t.collective || plan.count(t.kind) == 0) continue;
    s += detail::pad("  " + std::string(t.name), 20) + detail::pad(std::to_string(plan.count(t.kind)), 6) +
         describe_bytes(plan.bytes_received(t.kind, sizes)) + "\n";
  }
  return s.empty() ? "  nothing is sent\n" : s;
}

}}  // namespace gshard::v0
