// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Text about a search of auto_shard: the chosen shardings, their cost, and the alternatives; and the shardings as annotations.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/sim/report/describe.hpp>
#include <gshard/sim/search/shard_choice.hpp>

#include <cstddef>
#include <cstdio>
#include <string>

namespace gshard { inline namespace v0 {

/// "1.5 ms"
std::string describe_seconds(double seconds);

/// The result of a search as text: time and memory of the plan, then one line per input and parameter. A line has the tensor's sharding and
/// the cost of the best plan in which it has another one.
std::string describe(const shard_choice_view& choice, const plan_view& plan);

/// The chosen shardings as annotations to paste into a program: one line for each input and parameter, as `wi: P<none, "x">`. Optimizer
/// state is left out if it takes the sharding of its parameter.
/// @see search_shardings, describe
std::string annotations(const shard_choice_view& choice, const mesh_shape& mesh);

#if GSHARD_HAS_BODIES

GSHARD_INLINE std::string describe_seconds(double seconds) {
  const char* const units[] = {"s", "ms", "us", "ns"};
  std::size_t u = 0;
  for (; seconds < 1 && u < 3; ++u) seconds *= 1000;
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", seconds, units[u]);
  return text;
}

GSHARD_INLINE std::string describe(const shard_choice_view& choice, const plan_view& plan) {
  const step_price& p = choice.price;
  std::string s = "a step takes " + describe_seconds(p.seconds()) + ": " + describe_seconds(p.compute) + " computing, " +
                  describe_seconds(p.communicate) + " sending; as annotated " +
                  (choice.unsearched.seconds() > 0 ? describe_seconds(choice.unsearched.seconds()) : "it is refused") + "\n";
  s += "a device holds " + describe_bytes(p.bytes()) + ": parameters " + describe_bytes(p.parameters) + ", inputs " +
       describe_bytes(p.inputs) + ", in between " + describe_bytes(p.peak);
  if (choice.memory_limit > 0) s += "; allowed " + describe_bytes(choice.memory_limit);
  s += "\n" + std::to_string(choice.evaluations) + (choice.exact ? " plans: all there are\n" : " plans tried\n");

  const std::size_t inputs = plan.inputs.size();
  for (std::size_t i = 0; i < choice.tensors.size(); ++i) {
    const layout_choice& t = choice.tensors[i];
    value v = plan.at(t.is_parameter ? plan.parameters[i - inputs].value : plan.inputs[i].value);
    constexpr std::size_t layout_width = 32, name_width = 16;
    s += std::string(t.is_parameter ? "  param  " : "  input  ") + detail::pad(describe(plan, v), layout_width) + " ";
    s += detail::pad(t.is_parameter ? std::string(t.name.view()) : "", name_width) + " ";
    if (t.as >= 0) {
      s.append("as ").append(choice.tensors[std::size_t(t.as)].name.view()).append("\n");
    } else if (t.candidates == 1) {
      s += "no choice\n";
    } else if (t.next_seconds < 0) {
      s += "no other was tried\n";
    } else {
      v.layout = t.next;
      char slower[32];
      constexpr double rounding = 1e-9;
      const double more = t.next_seconds / p.seconds() - 1;
      std::snprintf(slower, sizeof slower, "%+.2g %%", more < 0 && more > -rounding ? 0 : 100 * more);
      s += "best of " + std::to_string(t.candidates) + "; next " + describe(plan, v) + " ";
      s += (choice.fits(t.next_bytes) ? std::string(slower) : "needs " + describe_bytes(t.next_bytes)) + "\n";
    }
  }
  return s;
}

GSHARD_INLINE std::string annotations(const shard_choice_view& choice, const mesh_shape& mesh) {
  const auto quoted = [&](int axis) { return "\"" + std::string(mesh.name(axis)) + "\""; };
  std::string s;
  for (const layout_choice& t : choice.tensors) {
    if (t.as >= 0) continue;
    s += (t.is_parameter ? "" : "in ") + std::string(t.name.view()) + ": P<";
    for (int d = 0; d < t.layout.rank; ++d) {
      const short_list& axes = t.layout[d];
      std::string entry = axes.empty() ? "none" : quoted(axes[0]);
      for (int i = 1; i < axes.size(); ++i) entry += ", " + quoted(axes[i]);
      s += (d ? ", " : "") + (axes.size() > 1 ? "axes<" + entry + ">" : entry);
    }
    s += ">\n";
  }
  return s;
}

#endif

}}  // namespace gshard::v0
