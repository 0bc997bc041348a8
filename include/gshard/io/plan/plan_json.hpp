// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A plan as rows of JSON: what a plan file has.

#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/bind/each_attribute.hpp>
#include <gshard/exec/bind/step_text.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/io/plan/plan_words.hpp>
#include <gshard/runtime/plan_functions.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

/// A plan as rows of JSON. What follows from other rows is left out: producers and lifetimes of values. So is what only passes read.
class plan_json {
 public:
  using json = nlohmann::ordered_json;

  plan_json(const plan_view& plan, const plan_functions& functions) : plan_(plan), functions_(functions) {}

  json axis(int a) const {
    json j{{"name", plan_.mesh.name(a)}};
    if (plan_.mesh.static_extent(a) != dynamic) j["extent"] = plan_.mesh.static_extent(a);
    return j;
  }
  json row(const dim& d) const {
    json j;
    switch (d.what) {
      case dim::kind::bound:
        j["letter"] = std::string(1, d.letter);
        if (d.known) j["extent"] = d.number;
        return j;
      case dim::kind::fixed: j["fixed"] = d.number; return j;
      case dim::kind::product: j["product"] = {d.first, d.second}; return j;
      case dim::kind::ratio: j = {{"ratio", {d.first, d.second}}, {"times", d.number}, {"divisor", d.divisor}}; return j;
      case dim::kind::linear:
        j = {{"linear", {d.first, d.second}}, {"times", {d.first_times, d.second_times}}, {"plus", d.number}, {"divisor", d.divisor}};
        return j;
      case dim::kind::rounded: j = {{"rounded", d.first}, {"least", d.number}, {"multiple", d.divisor}}; return j;
      case dim::kind::blocks: j = {{"blocks", d.first}, {"each", d.number}}; return j;
    }
    return j;
  }
  json row(const window& w) const {
    json j = json::object();
    const window none;
    const auto put = [&](const char* name, auto value, auto unset) {
      if (value != unset) j[name] = value;
    };
    put("over", w.over, none.over);
    put("stride_dim", w.stride_dim, none.stride_dim);
    put("low_dim", w.low_dim, none.low_dim);
    put("taps_dim", w.taps_dim, none.taps_dim);
    put("plus_low", int(w.plus_low), int(none.plus_low));
    put("wrap", w.wrap, none.wrap);
    put("stride", w.stride, none.stride);
    put("low", w.low, none.low);
    put("step", w.step, none.step);
    put("dilation", w.dilation, none.dilation);
    for (int i = 0; i < w.pairs.count; ++i) j["pairs"].push_back({w.pairs.data[i].source, w.pairs.data[i].target});
    put("backwards", w.pairs.backwards, false);
    return j;
  }
  json row(const value& v) const {
    json j{{"type", name(v.type)}, {"dims", list_of(v.dims)}};
    if (v.layout.used())
      for (int d = 0; d < v.rank(); ++d) j["axes"].push_back(list_of(v.layout[d]));
    const auto put = [&](const char* name, int value) {
      if (value != 0) j[name] = value;
    };
    put("partial", v.layout.partial);
    if (v.layout.pending != reduction::sum) j["pending"] = word_of(v.layout.pending);
    put("open", v.layout.open);
    put("order", v.layout.order);
    if (!v.windows.empty()) j["windows"] = list_of(v.windows);
    if (v.bf16_on_wire) j["bf16_on_wire"] = true;
    if (v.fits_bf16) j["fits_bf16"] = true;
    return j;
  }
  json row(const parameter& p) const {
    json j{{"name", p.name.view()}, {"value", p.value}};
    if (p.updated >= 0) j["updated"] = p.updated;
    json& start = j["init"] = {{"kind", word_of(p.init.what)}};
    if (p.init.scale != 0) start["scale"] = json_of(p.init.scale);
    if (!p.init.fan_in.empty()) start["fan_in"] = list_of(p.init.fan_in);
    if (!p.trainable) j["trainable"] = false;
    if (p.of_optimizer) j["of_optimizer"] = true;
    if (p.is_cache) j["is_cache"] = true;
    if (p.copies_of >= 0) j["copies_of"] = p.copies_of;
    if (p.placed_by >= 0) j["placed_by"] = p.placed_by;
    return j;
  }
  json row(const port& p) const {
    json j{{"name", p.name.view()}, {"value", p.value}};
    if (p.is_loss) j["is_loss"] = true;
    if (p.is_column_major) j["is_column_major"] = true;
    return j;
  }
  json step(std::size_t i) const {
    const node& n = plan_.steps[i];
    json j{{"op", n.kind->name}, {"in", ids(n.inputs, n.in)}, {"out", ids(n.outputs, n.out)}};
    if (std::string rule = rule_text(n); rule.find_first_of("abcdefghijklmnop") != rule.npos) j["rule"] = std::move(rule);
    if (n.rule.blocked != 0) j["blocked"] = n.rule.blocked;
    if (!n.rule.windows.empty()) j["windows"] = list_of(n.rule.windows);
    if (n.in_place != 0) j["in_place"] = n.in_place;
    add_attributes(j, i);
    const std::string at = line_text(n.place);
    if (!at.empty()) j["at"] = at;
    if (n.place.scope) j["scope"] = n.place.scope;
    if (n.place.gradient) j["gradient"] = true;
    if (n.place.recomputed) j["recomputed"] = true;
    return j;
  }

 private:
  const plan_view& plan_;
  const plan_functions& functions_;

  static json json_of(double x) {
    if (std::isfinite(x)) return x;
    return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
  }
  template <class List>
  static json list_of(const List& list) {
    json j = json::array();
    for (int i = 0; i < list.size(); ++i) j.push_back(list[i]);
    return j;
  }
  static json ids(int count, const std::int32_t* all) {
    json j = json::array();
    for (int i = 0; i < count; ++i) j.push_back(all[i]);
    return j;
  }
  /// "ab,bc->ac": a letter for each factor.
  static std::string rule_text(const node& n) {
    std::string s;
    const auto put = [&](int count, const short_list* lists) {
      for (int i = 0; i < count; ++i) {
        if (i) s += ',';
        for (int d = 0; d < lists[i].size(); ++d) s += char('a' + lists[i][d]);
      }
    };
    put(n.inputs, n.rule.in);
    s += "->";
    put(n.outputs, n.rule.out);
    return s;
  }
  void add_attributes(json& j, std::size_t step) const {
    const attributes& a = plan_.steps[step].attr;
    const attributes unset;
    for_each_attribute([&](const char* name, auto member) {
      const auto value = a.*member;
      if (value == unset.*member) return;
      if constexpr (std::is_enum_v<decltype(value)>) j[name] = word_of(value);
      else if constexpr (std::is_floating_point_v<decltype(value)>) j[name] = json_of(value);
      else j[name] = value;
    });
    if (a.function) {
      const std::string_view name = functions_.name_of(*a.function);
      if (name.empty())
        throw error("plan: the function of step " + step_text(plan_, std::int32_t(step)) +
                    " has no name: give it one, as plan_functions().map<f, 1>(\"f\")");
      j["function"] = name;
    }
    if (a.custom) {
      if (functions_.find_custom(a.custom->name) != a.custom)
        throw error("plan: the operation of step " + step_text(plan_, std::int32_t(step)) +
                    " is not known: name it, as plan_functions().custom<operation>()");
      j["custom"] = a.custom->name;
    }
    if (a.label) j["label"] = a.label;
    if (!a.dims.empty()) j["of_dims"] = list_of(a.dims);
    for (int i = 0; a.own.names && i < a.own.names->count; ++i) {
      const attribute_names::item& item = a.own.names->items[i];
      using enum attribute_names::kind;
      json& own = j["own"][item.name];
      if (item.what == flag) own = ((a.own.flags >> item.at) & 1u) != 0;
      else if (item.what == integer) own = a.own.integers[item.at];
      else own = json_of(a.own.numbers[item.at]);
    }
  }
};

}}}  // namespace gshard::v0::detail
