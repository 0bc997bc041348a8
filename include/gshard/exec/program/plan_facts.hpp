// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A bound plan as a list of facts, which processes compare before they run it.

#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/bind/bound_plan.hpp>
#include <gshard/exec/bind/each_attribute.hpp>
#include <gshard/exec/bind/step_text.hpp>
#include <gshard/exec/process/error.hpp>

#include <array>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The values of a function at a few points between -3 and 3, rounded from double to float. They are the same on all machines and
/// compilers, except for functions that are ill-conditioned there. Functions that differ only at other points are not distinguished.
inline std::string values_at_samples(const pointwise& f, int operands) {
  constexpr std::array samples{-2.75, -2.0, -1.5, -1.0, -0.625, -0.25, -0.0625, 0.0, 0.125, 0.5, 0.75, 1.0, 1.25, 2.0, 2.5, 3.0};
  constexpr std::size_t n = samples.size(), most = pointwise::most_operands;
  std::array<std::array<double, n>, most> x{};
  std::array<const double*, most> in{};
  std::array<double, n> y{};
  for (std::size_t k = 0; k < std::size_t(operands); ++k) {
    for (std::size_t i = 0; i < n; ++i) x[k][i] = samples[((2 * k + 1) * i + 5 * k) % n];  // each operand in its own order
    in[k] = x[k].data();
  }
  std::fenv_t traps;  // the application may trap floating-point exceptions
  std::feholdexcept(&traps);
  const process_error problem = problem_of([&] { row_of<double>(f)(in.data(), y.data(), std::int64_t(n)); });
  std::fesetenv(&traps);
  if (!problem.empty()) return "an exception: " + problem.text;
  std::string s;
  for (const double value : y) s.append(s.empty() ? "" : " ").append(value != value ? "nan" : number_text(float(value) + 0.0f));
  return s;
}

/// The facts of a bound plan.
class plan_facts {
 public:
  explicit plan_facts(const bound_plan& b) : bound_(b), plan_(b.plan), sizes_(b.sizes) {}

  void add_to(std::vector<fact>& facts) const {
    std::string axes;
    for (int a = 0; a < plan_.mesh.rank(); ++a) axes.append(a ? " x " : "").append(plan_.mesh.name(a));
    facts.push_back({"the axes of a program's mesh", axes});
    for (std::size_t i = 0; i < plan_.dims.size(); ++i)
      facts.push_back({"the extent of " + text_of(plan_.dims[i]), std::to_string(sizes_.dim(int(i)))});
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i)
      facts.push_back({"input " + std::to_string(i), text(plan_.inputs[i].value)});
    for (const parameter& p : plan_.parameters) add(facts, p);
    for (std::size_t i = 1; i < plan_.windows.size(); ++i) facts.push_back({"window " + std::to_string(i), text(plan_.windows[i])});
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) add(facts, i);
    for (std::size_t i = 0; i < plan_.outputs.size(); ++i)
      facts.push_back({"output " + std::to_string(i), text(plan_.outputs[i].value)});
  }
  /// The source line of the first step that has one, as text.
  std::string place() const {
    for (const node& step : plan_.steps)
      if (step.place.file) return line_text(step.place);
    return {};
  }

 private:
  const bound_plan& bound_;
  plan_view plan_;
  const extents& sizes_;

  /// "%3 f32[8@data,4]"
  std::string text(std::int32_t id) const {
    return "%" + std::to_string(id) + " " + layout_text(bound_.value(id), bound_.on.mesh());
  }
  static std::string text(const window& w) {
    std::string s = w.wrap ? "wrapped" : "bounded";
    for (const int dim : {w.over, w.stride_dim, w.low_dim, w.taps_dim}) s.append(" ").append(std::to_string(dim));
    for (const int x : {int(w.plus_low), w.stride, w.low, w.step, w.dilation}) s.append(" ").append(std::to_string(x));
    for (int i = 0; i < w.pairs.count; ++i) {
      const device_pair& p = w.pairs.data[i];
      s.append(w.pairs.backwards ? " <" : " ").append(std::to_string(p.source)).append(">").append(std::to_string(p.target));
    }
    return s;
  }
  /// The attributes that an operation has set.
  static std::string text(const attributes& a) {
    std::string s;
    const auto add = [&](const char* what, auto value, auto before) {
      const std::string text = number_text(value);
      if (text != number_text(before)) s.append(", ").append(what).append(" ").append(text);
    };
    const auto add_kind = [&](const char* what, auto value, auto before) { add(what, int(value), int(before)); };
    const attributes unset;
    for_each_attribute([&](const char* what, auto member) {
      const auto value = a.*member, before = unset.*member;
      if constexpr (std::is_enum_v<decltype(value)> || std::is_same_v<decltype(value), const bool>) add_kind(what, value, before);
      else add(what, value, before);
    });
    for (int i = 0; a.own.names && i < a.own.names->count; ++i) {
      const attribute_names::item& item = a.own.names->items[i];
      using enum attribute_names::kind;
      if (item.what == number) add(item.name, a.own.numbers[item.at], 0.0);
      else add_kind(item.name, item.what == flag ? (a.own.flags >> item.at) & 1u : std::uint32_t(a.own.integers[item.at]), 0u);
    }
    if (a.label) s.append(", named ").append(a.label);
    for (int d = 0; d < a.dims.size(); ++d) s.append(d ? " " : ", dims ").append(std::to_string(a.dims[d]));
    return s;
  }
  void add(std::vector<fact>& facts, const parameter& p) const {
    const std::string called = "parameter \"" + std::string(p.name.view()) + "\"";
    facts.push_back({called, text(p.value) + (p.trainable ? ", trained" : p.is_cache ? ", a cache" : "") +
                                 (p.updated >= 0 ? ", becomes %" + std::to_string(p.updated) : "")});
    using enum initializer::kind;
    std::string start = p.init.what == zeros ? "zeros" : p.init.what == row ? "row numbers" : "normal ";
    if (p.init.what == constant) start = "constant ";
    if (p.init.what == constant || p.init.what == normal) start += number_text(p.init.scale);
    if (p.copies_of >= 0) start.append(", copies of ").append(std::to_string(sizes_.dim(p.copies_of))).append(" rows");
    for (int i = 0; i < p.init.fan_in.size(); ++i)
      start.append(i ? " * " : " / sqrt of ").append(std::to_string(sizes_.dim(p.init.fan_in[i])));
    facts.push_back({"the initial values of " + called, start});
  }
  void add(std::vector<fact>& facts, std::size_t i) const {
    const node& step = plan_.steps[i];
    const std::string number = "step " + std::to_string(i) + " of a program", place = line_text(step.place);
    std::string s(name_of(step));
    const auto lists = [&](int n, const auto& ids, const short_list* factors) {
      for (int k = 0; k < n; ++k) {
        s.append(k ? ", " : " ").append(text(ids[k])).append(" ");
        for (int d = 0; d < factors[k].size(); ++d) s += char('a' + factors[k][d]);
      }
    };
    lists(step.inputs, step.in, step.rule.in);
    s += " ->";
    lists(step.outputs, step.out, step.rule.out);
    s += text(step.attr);
    const auto entries = [&](const char* what, const dim_list& all) {
      if (!all.empty()) s += what;
      for (int d = 0; d < all.size(); ++d) s.append(" ").append(std::to_string(all[d]));
    };
    entries(", windows", step.rule.windows);
    if (step.in_place) s.append(", in place ").append(std::to_string(step.in_place));
    const pointwise* const f = step.attr.function;
    // The functions of call_on_shards and custom are not called on samples. They are compared by their names and the line that calls them.
    if (step.attr.custom || (f && !f->f64 && f->own < 0)) s.append(", function at ").append(place);
    if (f && f->own >= 0) s.append(", function ").append(std::to_string(f->own));
    facts.push_back({number, std::move(s), place});
    if (f && !f->function.empty()) facts.push_back({"the function of " + number, std::string(f->function), place});
    if (f && f->f64)
      facts.push_back({"the values of the function of " + number + " at sample points", values_at_samples(*f, step.inputs), place});
  }
};

}}}  // namespace gshard::v0::detail
