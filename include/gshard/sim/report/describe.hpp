// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Text of plans: tensors, steps, complete plans, and their communication.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/bind/check_sizes.hpp>
#include <gshard/exec/bind/step_text.hpp>
#include <gshard/exec/program/assumed_extents.hpp>
#include <gshard/sim/report/reason.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

std::string dim_text(const plan_view& plan, int d);

/// Adds a term to a sum: "2H", "-1".
void add_term(std::string& s, std::int64_t n, const std::string& of = {});

/// "2H+W-1", "(H+3)/2"
std::string linear_text(const plan_view& plan, const dim& d);

/// The elements of a dim that a device holds through a window, for the indices i of its block: "{i-1..i+1}", "{2i..2i+W-1 of H/2}", "{i+3
/// wrapped}".
std::string window_text(const plan_view& plan, const window& w, int read_dim);

std::string axes_of_mask(const plan_view& plan, std::uint32_t mask);

/// "3,2,1,0": the devices of a device order.
std::string order_text(list_view<int> order);

std::string pad(std::string s, std::size_t width);

}  // namespace detail

/// A tensor of a plan as text: `f32[E@expert,G,C,M]` has its dims and the axes that shard them. `+axis`: it is a partial sum over the axis.
/// `+order(1,0)`: its device order is not the mesh's. `f32[H@x{i-1..i+1},W]`: a device holds these elements of H for the indices i of its
/// block, that is, the block and a halo. `{2i..2i+2 of O}`: for the indices i of its block of O. `{0>1,1>2}`: index 1 reads element 0, and
/// index 2 element 1.
std::string describe(const plan_view& plan, const value& v);

/// "1.5 MiB"
std::string describe_bytes(std::int64_t bytes);

namespace detail {
/// ` %11 f32[E,M]`: a value of a plan with its number.
void put_value(std::string& s, const plan_view& plan, std::int32_t v);
}  // namespace detail

/// One step as text: `all_to_all over expert %11 f32[E,G@expert,C,M] -> %12 f32[E@expert,G,C,M]`. A step that combines moves of several
/// kinds has all kinds: `all_gather+all_to_all over expert`.
std::string describe(const plan_view& plan, const node& step);

/// A complete plan as text: one line per step, with the steps of a loop indented. A step that communicates also has the operation and
/// source line that it serves, and the reason.
std::string describe(const plan_view& plan);

/// The same with the extents that it assumed, and a mark at those on which a choice of the planner depends: `assumes B=64, V=64*`.
/// `describe(plan, assumed_extents(program.graph(), program.mesh(), program.options()))` for a run-time program.
std::string describe(const plan_view& plan, const std::vector<assumed_extent>& assumed);
template <class Program>
std::string describe() {
  return describe(Program::plan, assumed_extents<Program>());
}

/// The collectives of a plan by kind: their number, and the bytes that a device receives at these extents. Each step counts the device that
/// receives most.
/// Throws: `gshard::error` if extents are missing or negative, or a tensor has more bytes than can be counted.
/// @see plan_view::bytes_received
std::string describe_communication(const plan_view& plan, const extents& sizes);

#if GSHARD_HAS_BODIES

namespace detail {

GSHARD_INLINE void add_term(std::string& s, std::int64_t n, const std::string& of) {
  if (n == 0) return;
  s += n < 0 ? "-" : s.empty() ? "" : "+";
  const std::string count = std::to_string(n < 0 ? -n : n);
  s += of.empty() ? count : (count == "1" ? "" : count) + of;
}

GSHARD_INLINE std::string linear_text(const plan_view& plan, const dim& d) {
  std::string s;
  add_term(s, d.first_times, dim_text(plan, d.first));
  if (d.second_times != 0) add_term(s, d.second_times, dim_text(plan, d.second));
  add_term(s, d.number);
  return d.divisor == 1 ? s : "(" + s + ")/" + std::to_string(d.divisor);
}

GSHARD_INLINE std::string window_text(const plan_view& plan, const window& w, int read_dim) {
  if (!w.pairs.empty()) {
    std::string s;
    for (int i = 0; i < w.pairs.count; ++i) {
      const device_pair& p = w.pairs.data[i];
      s.append(s.empty() ? "{" : ",").append(std::to_string(w.pairs.backwards ? p.target : p.source)) += ">";
      s += std::to_string(w.pairs.backwards ? p.source : p.target);
    }
    return s + "}";
  }
  const auto add_dim = [&](std::string& s, std::int64_t& rest, std::int64_t n, int d) {
    if (plan.dims[std::size_t(d)].what == dim::kind::fixed) rest += n * plan.dims[std::size_t(d)].number;
    else add_term(s, n, dim_text(plan, d));
  };
  const auto position = [&](bool of_last_tap) {
    std::string s;
    std::int64_t rest = w.low;
    if (w.stride_dim == window::none) add_term(s, w.stride, "i");
    else s = dim_text(plan, w.stride_dim) + "*i";
    if (w.low_dim != window::none) add_dim(s, rest, w.plus_low, w.low_dim);
    if (of_last_tap && w.taps_dim != window::none) {
      rest -= w.step;
      add_dim(s, rest, w.step, w.taps_dim);
    }
    add_term(s, rest);
    return s;
  };
  const std::string first = position(w.step < 0), last = position(w.step >= 0);
  std::string s = first == last ? first : first + ".." + last;
  if (w.dilation != 1) s = "(" + s + ")/" + std::to_string(w.dilation);
  if (w.over != read_dim) s += " of " + dim_text(plan, w.over);
  return "{" + s + (w.wrap ? " wrapped}" : "}");
}

GSHARD_INLINE std::string dim_text(const plan_view& plan, int d) {
  const dim& whole = plan.dims[std::size_t(d)];
  switch (whole.what) {
    case dim::kind::bound: return {whole.letter};
    case dim::kind::fixed: return std::to_string(whole.number);
    case dim::kind::product: return dim_text(plan, whole.first) + dim_text(plan, whole.second);
    case dim::kind::ratio:
      if (plan.dims[whole.second].what == dim::kind::blocks) return dim_text(plan, whole.first) + "/" + dim_text(plan, whole.second);
      return "C";
    case dim::kind::rounded: return "C";
    case dim::kind::linear: return linear_text(plan, whole);
    case dim::kind::blocks: return (whole.number == 1 ? "" : std::to_string(whole.number)) + "n";
  }
  return "?";
}

GSHARD_INLINE std::string axes_of_mask(const plan_view& plan, std::uint32_t mask) {
  std::string s;
  for (int a = 0; a < plan.mesh.rank(); ++a)
    if ((mask >> a) & 1u) s.append(s.empty() ? "" : ",").append(plan.mesh.name(a));
  return s;
}

GSHARD_INLINE std::string order_text(list_view<int> order) {
  std::string s;
  for (const int device : order) s.append(s.empty() ? "" : ",").append(std::to_string(device));
  return s;
}

GSHARD_INLINE std::string pad(std::string s, std::size_t width) {
  s.resize(s.size() < width ? width : s.size(), ' ');
  return s;
}

}  // namespace detail

GSHARD_INLINE std::string describe(const plan_view& plan, const value& v) {
  std::string s(name(v.type));
  s += '[';
  for (int d = 0; d < v.rank(); ++d) {
    if (d) s += ',';
    s += detail::dim_text(plan, v.dims[d]);
    for (int i = 0; i < v.layout[d].size(); ++i) s.append("@").append(plan.mesh.name(v.layout[d][i]));
    if ((v.layout.open >> d) & 1u) s += '?';
    if (const int row = v.windows.empty() ? 0 : v.windows[d]) s += detail::window_text(plan, plan.windows[std::size_t(row)], v.dims[d]);
  }
  s += ']';
  if (v.layout.partial) s.append("+").append(detail::axes_of_mask(plan, v.layout.partial));
  if (v.layout.order) s.append("+order(").append(detail::order_text(plan.order_of(v.layout))).append(")");
  return s;
}

GSHARD_INLINE std::string describe_bytes(std::int64_t bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto amount = double(bytes);
  std::size_t u = 0;
  for (; amount >= 1024 && u < 4; ++u) amount /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, u == 0 ? "%.0f %s" : "%.1f %s", amount, units[u]);
  return text;
}

namespace detail {

GSHARD_INLINE void put_value(std::string& s, const plan_view& plan, std::int32_t v) {
  s.append(" %").append(std::to_string(v)).append(" ").append(describe(plan, plan.at(v)));
}

}  // namespace detail

GSHARD_INLINE std::string describe(const plan_view& plan, const node& step) {
  std::string s = kind_text(step);
  if (traits(step.kind).collective || step.kind == op::slice)
    s.append(" over ").append(detail::axes_of_mask(plan, step.attr.axes));
  if (step.inputs + step.outputs > 0) s = detail::pad(s, 24);
  for (int i = 0; i < step.inputs; ++i) {
    if (i) s += ',';
    detail::put_value(s, plan, step.input(i));
  }
  if (step.outputs > 0) s += " ->";
  for (int o = 0; o < step.outputs; ++o) {
    if (o) s += ',';
    detail::put_value(s, plan, step.output(o));
  }
  return s;
}

GSHARD_INLINE std::string describe(const plan_view& plan) {
  std::string s = "mesh";
  for (int a = 0; a < plan.mesh.rank(); ++a) {
    s.append(" ").append(plan.mesh.name(a));
    if (plan.mesh.static_extent(a) != dynamic) s.append("=").append(std::to_string(plan.mesh.static_extent(a)));
  }
  s.append("; ").append(std::to_string(plan.steps.size())).append(" steps, ");
  s.append(std::to_string(plan.collectives())).append(" of them communicate\n");
  const auto line = [&](const char* what, std::int32_t v, std::string_view called) {
    s.append(what);
    detail::put_value(s, plan, v);
    if (!called.empty()) s.append(" ").append(called);
    s += '\n';
  };
  for (const port& p : plan.inputs) line("  input", p.value, {});
  for (const parameter& p : plan.parameters) line("  param", p.value, p.name.view());
  std::size_t indent = 2;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].kind == op::loop_end) indent -= 2;
    s.append(indent, ' ').append(describe(plan, plan.steps[i]));
    if (plan.steps[i].kind == op::loop_begin) indent += 2;
    if (const std::string why = describe_reason(plan, i); !why.empty()) s.append("  ").append(why);
    s += '\n';
  }
  for (const port& p : plan.outputs) line("  output", p.value, {});
  return s;
}

GSHARD_INLINE std::string describe(const plan_view& plan, const std::vector<assumed_extent>& assumed) {
  std::string s = describe(plan);
  if (!assumed.empty()) s.insert(s.find('\n') + 1, "  " + describe(assumed));
  return s;
}

GSHARD_INLINE std::string describe_communication(const plan_view& plan, const extents& sizes) {
  detail::check_sizes(plan, sizes, "describe_communication");
  std::string s;
  for (const op_ref kind : move_operations) {
    const operation& t = *kind;
    if (!t.collective || plan.count(t) == 0) continue;
    s.append("  ").append(detail::pad(std::string(t.name), 20)).append(detail::pad(std::to_string(plan.count(t)), 6));
    s.append(describe_bytes(plan.bytes_received(t, sizes))).append("\n");
  }
  return s.empty() ? "  nothing is sent\n" : s;
}

#endif

}}  // namespace gshard::v0
