// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reads the rows of a plan file.

#include <gshard/core/base/name.hpp>
#include <gshard/core/plan/lifetime.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/schedule/while_loop.hpp>
#include <gshard/exec/bind/each_attribute.hpp>
#include <gshard/io/json_field.hpp>
#include <gshard/io/plan/plan_check.hpp>
#include <gshard/io/plan/plan_words.hpp>
#include <gshard/runtime/plan_functions.hpp>
#include <gshard/runtime/runtime_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// Reads the rows of a plan. Each refers to rows that were read before. Throws `gshard::error` that names the field for a wrong kind of
/// value, a number out of range, an unknown name. @see plan_json, plan_check
class plan_reader {
 public:
  plan_reader(const json_field& file, const plan_functions& functions) : functions_(functions) {
    read_mesh(file["mesh"]);
    read_dims(file["dims"]);
    read_windows(file["windows"]);
    read_orders(file["orders"]);
    each(file["values"], max_int, [&](const json_field& f) { plan_.values.push_back(value_of(f)); });
    each(file["parameters"], max_int, [&](const json_field& f) { add_parameter(f); });
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i)
      if (const std::int32_t by = plan_.parameters[i].placed_by; by >= std::int32_t(plan_.parameters.size()))
        file["parameters"][i]["placed_by"].fail("is no parameter");
    each(file["inputs"], max_int, [&](const json_field& f) { plan_.inputs.push_back(port_of(f)); });
    each(file["outputs"], max_int, [&](const json_field& f) { plan_.outputs.push_back(port_of(f)); });
    each(file["steps"], max_int, [&](const json_field& f) { add_step(f); });
    plan_check(made_->planned, file).run();
    finish();
  }

  std::shared_ptr<const plan_contents> take() { return std::move(made_); }

 private:
  static constexpr std::int64_t max_int = std::numeric_limits<std::int32_t>::max();

  std::shared_ptr<plan_contents> made_ = std::make_shared<plan_contents>();
  plan_tables& plan_ = made_->planned;
  const plan_functions& functions_;

  template <class F>
  static void each(const json_field& list, std::int64_t most, const F& f) {
    const std::size_t n = list.size();
    if (std::int64_t(n) > most) list.fail("has more than " + std::to_string(most) + " entries");
    for (std::size_t i = 0; i < n; ++i) f(list[i]);
  }
  template <class T>
  static T integer_of(const json_field& f) {
    return T(f.integer(std::int64_t(std::numeric_limits<T>::min()),
                       sizeof(T) == 8 ? std::numeric_limits<std::int64_t>::max() : std::int64_t(std::numeric_limits<T>::max())));
  }
  /// Reads a member that may be missing.
  template <class T>
  static void take(const json_field& f, const char* name, T& to) {
    if (!f.has(name)) return;
    if constexpr (std::is_same_v<T, bool>) to = f[name].flag();
    else if constexpr (std::is_enum_v<T>) to = T(f[name].one_of(words_of(to)));
    else if constexpr (std::is_floating_point_v<T>) to = f[name].any_number();
    else to = integer_of<T>(f[name]);
  }
  std::int32_t id_of(const json_field& f) const {
    if (plan_.values.empty()) f.fail("refers to a value, and there is none");
    return std::int32_t(f.integer(0, std::int64_t(plan_.values.size()) - 1));
  }
  std::uint8_t dim_of(const json_field& f) const {
    if (plan_.dims.empty()) f.fail("refers to a dim, and there is none");
    return std::uint8_t(f.integer(0, std::int64_t(plan_.dims.size()) - 1));
  }
  std::uint32_t axes_of(const json_field& f) const { return std::uint32_t(f.integer(0, (std::int64_t(1) << plan_.mesh.count) - 1)); }
  template <class List, class Entry>
  static List list_of(const json_field& f, const Entry& entry) {
    List made;
    each(f, max_rank, [&](const json_field& e) { made.push_back(int(entry(e))); });
    return made;
  }
  dim_list dims_of(const json_field& f) const {
    return list_of<dim_list>(f, [&](const json_field& e) { return dim_of(e); });
  }
  /// For each dim, 1 + the factor of its taps, or 0.
  static dim_list factors_of_taps(const json_field& f) {
    return list_of<dim_list>(f, [](const json_field& e) { return e.integer(0, short_list::largest); });
  }
  dim_list rows_of(const json_field& f) const {
    return list_of<dim_list>(f, [&](const json_field& e) { return e.integer(0, std::int64_t(plan_.windows.size()) - 1); });
  }
  const char* kept(std::string text) {
    if (text.find('\0') != text.npos) text.resize(text.find('\0'));
    return made_->texts.emplace_back(std::move(text)).c_str();
  }

  void read_mesh(const json_field& axes) {
    each(axes, max_axes, [&](const json_field& f) {
      f.only({"name", "extent"});
      const std::string name = f["name"].text();
      if (name.empty() || !axis_name::fits(name) || name.find_first_of(",@?+ ") != name.npos) f["name"].fail("is no name of a mesh axis");
      if (plan_.mesh.find(name) >= 0) f["name"].fail("is the name of two axes");
      plan_.mesh.push_back(name, f.has("extent") ? int(f["extent"].integer(1, max_devices)) : dynamic);
    });
    if (plan_.mesh.static_devices() > max_devices) axes.fail("has too many devices");
  }
  void read_dims(const json_field& all) {
    constexpr int most_terms = 1000;  // plans as text print all terms
    std::vector<int> terms;           // by dim: the dims that it is made of
    each(all, dim_list::largest + 1, [&](const json_field& f) {
      dim d;
      const auto two = [&](const json_field& list, auto& first, auto& second, const auto& entry) {
        if (list.size() != 2) list.fail("has not two entries");
        first = entry(list[0]);
        second = entry(list[1]);
      };
      const auto earlier = [&](const json_field& e) { return dim_of(e); };
      const auto divisor = [&](const char* name) { return f[name].integer(1, std::int64_t(1) << 40); };
      constexpr std::int64_t largest = std::int64_t(1) << 60;
      if (f.has("letter")) {
        f.only({"letter", "extent"});
        const std::string letter = f["letter"].text();
        if (letter.size() != 1 || !is_letter(letter[0])) f["letter"].fail("is not a letter");
        d.letter = letter[0];
        for (const dim& before : plan_.dims)
          if (before.letter == d.letter) f["letter"].fail("is the letter of two dims");
        d.known = f.has("extent");
        if (d.known) d.number = f["extent"].integer(0, largest);
      } else if (f.has("fixed")) {
        f.only({"fixed"});
        d.what = dim::kind::fixed;
        d.number = f["fixed"].integer(0, largest);
      } else if (f.has("product")) {
        f.only({"product"});
        d.what = dim::kind::product;
        two(f["product"], d.first, d.second, earlier);
      } else if (f.has("ratio")) {
        f.only({"ratio", "times", "divisor"});
        d.what = dim::kind::ratio;
        two(f["ratio"], d.first, d.second, earlier);
        d.number = f["times"].integer(0, largest);
        d.divisor = divisor("divisor");
      } else if (f.has("linear")) {
        f.only({"linear", "times", "plus", "divisor"});
        d.what = dim::kind::linear;
        two(f["linear"], d.first, d.second, earlier);
        two(f["times"], d.first_times, d.second_times, integer_of<std::int32_t>);
        d.number = f["plus"].integer(-largest, largest);
        d.divisor = divisor("divisor");
      } else if (f.has("rounded")) {
        f.only({"rounded", "least", "multiple"});
        d.what = dim::kind::rounded;
        d.first = dim_of(f["rounded"]);
        d.number = f["least"].integer(0, largest);
        d.divisor = divisor("multiple");
      } else {
        f.only({"blocks", "each"});
        d.what = dim::kind::blocks;
        d.first = std::uint8_t(axes_of(f["blocks"]));
        d.number = f["each"].integer(0, largest);
      }
      const bool is_made = d.what != dim::kind::bound && d.what != dim::kind::fixed && d.what != dim::kind::blocks;
      terms.push_back(1 + (is_made ? terms[d.first] + terms[d.second] : 0));
      if (terms.back() > most_terms) f.fail("is made of too many dims");
      plan_.dims.push_back(d);
    });
  }
  void read_windows(const json_field& all) {
    plan_.windows.push_back({});  // row 0: none
    each(all, dim_list::largest, [&](const json_field& f) {
      f.only({"over", "stride_dim", "low_dim", "taps_dim", "plus_low", "wrap", "stride", "low", "step", "dilation", "pairs", "backwards"});
      window w;
      const auto dim = [&](const char* name, std::int16_t& to) {
        if (f.has(name)) to = dim_of(f[name]);
      };
      dim("over", w.over);
      dim("stride_dim", w.stride_dim);
      dim("low_dim", w.low_dim);
      dim("taps_dim", w.taps_dim);
      take(f, "plus_low", w.plus_low);
      take(f, "wrap", w.wrap);
      take(f, "stride", w.stride);
      take(f, "low", w.low);
      take(f, "step", w.step);
      if (f.has("dilation")) w.dilation = std::int32_t(f["dilation"].integer(1, max_int));
      if (f.has("pairs")) {
        auto& pairs = made_->pairs.emplace_back();
        each(f["pairs"], max_int, [&](const json_field& e) {
          if (e.size() != 2) e.fail("has not two entries");
          pairs.push_back({int(e[0].integer(0, max_int)), int(e[1].integer(0, max_int))});
        });
        w.pairs = {pairs.data(), int(pairs.size()), false};
      }
      take(f, "backwards", w.pairs.backwards);
      plan_.windows.push_back(w);
    });
  }
  void read_orders(const json_field& all) {
    const std::int64_t devices = plan_.mesh.static_devices();
    if (all.size() > 0 && devices < 1) all.fail("needs a mesh whose extents are all known");
    each(all, 255, [&](const json_field& row) {
      std::vector<char> found(row.size() == std::size_t(devices) ? row.size() : 0);
      if (found.empty()) row.fail("has not " + std::to_string(devices) + " devices");
      for (std::size_t i = 0; i < row.size(); ++i) {
        const auto device = int(row[i].integer(0, devices - 1));
        if (std::exchange(found[std::size_t(device)], 1) != 0) row[i].fail("is a device that the row has twice");
        plan_.orders.push_back(device);
      }
    });
  }
  value value_of(const json_field& f) const {
    f.only({"type", "dims", "axes", "partial", "pending", "open", "order", "windows", "bf16_on_wire", "fits_bf16"});
    value v;
    v.type = dtype(f["type"].one_of(words_of(v.type)));
    v.dims = dims_of(f["dims"]);
    v.layout = sharding::replicated(v.rank());
    const int axes = plan_.mesh.count;
    if (f.has("axes")) {
      const json_field all = f["axes"];
      if (all.size() != std::size_t(v.rank())) all.fail("has not a list for each dim");
      for (int d = 0; d < v.rank(); ++d) {
        const json_field one = all[std::size_t(d)];
        for (std::size_t i = 0; i < one.size(); ++i) {
          const auto a = int(one[i].integer(0, axes - 1));
          if ((v.layout.used() >> a) & 1u) one[i].fail("is an axis that shards a dim already");
          v.layout[d].push_back(a);
        }
      }
    }
    if (f.has("partial")) v.layout.partial = std::uint8_t(axes_of(f["partial"]));
    if (v.layout.partial & v.layout.used()) f["partial"].fail("has an axis that shards a dim");
    take(f, "pending", v.layout.pending);
    if (f.has("open")) v.layout.open = std::uint8_t(f["open"].integer(0, (1 << v.rank()) - 1));
    const std::int64_t devices = plan_.mesh.static_devices();
    if (f.has("order")) v.layout.order = std::uint8_t(f["order"].integer(1, devices > 0 ? std::int64_t(plan_.orders.size()) / devices : 0));
    if (f.has("windows")) {
      v.windows = rows_of(f["windows"]);
      if (v.windows.size() != v.rank()) f["windows"].fail("has not an entry for each dim");
    }
    take(f, "bf16_on_wire", v.bf16_on_wire);
    take(f, "fits_bf16", v.fits_bf16);
    return v;
  }
  static tensor_name name_of(const json_field& f) {
    const std::string name = f.text();
    if (!tensor_name::fits(name) || name.find('\0') != name.npos) f.fail("is too long a name, or has a character NUL");
    return tensor_name(name);
  }
  void add_parameter(const json_field& f) {
    f.only({"name", "value", "updated", "init", "trainable", "of_optimizer", "is_cache", "copies_of", "placed_by"});
    parameter p;
    p.name = name_of(f["name"]);
    p.value = id_of(f["value"]);
    if (f.has("updated")) p.updated = id_of(f["updated"]);
    const json_field start = f["init"];
    start.only({"kind", "scale", "fan_in"});
    p.init.what = initializer::kind(start["kind"].one_of(words_of(p.init.what)));
    take(start, "scale", p.init.scale);
    if (start.has("fan_in")) p.init.fan_in = dims_of(start["fan_in"]);
    take(f, "trainable", p.trainable);
    take(f, "of_optimizer", p.of_optimizer);
    take(f, "is_cache", p.is_cache);
    if (f.has("copies_of")) p.copies_of = dim_of(f["copies_of"]);
    if (f.has("placed_by")) p.placed_by = std::int32_t(f["placed_by"].integer(0, max_int));
    value& v = plan_.values[std::size_t(p.value)];
    if (v.parameter >= 0) f["value"].fail("is another parameter");
    v.parameter = std::int32_t(plan_.parameters.size());
    plan_.parameters.push_back(p);
  }
  port port_of(const json_field& f) const {
    f.only({"name", "value", "is_loss", "is_column_major"});
    port p;
    p.name = name_of(f["name"]);
    p.value = id_of(f["value"]);
    take(f, "is_loss", p.is_loss);
    take(f, "is_column_major", p.is_column_major);
    return p;
  }
  static std::vector<std::string_view> names_of_step() {
    std::vector<std::string_view> all{"op",    "in",      "out", "rule", "blocked", "windows", "in_place", "function",
                                      "custom", "of_dims", "own", "at",   "scope",   "label",   "gradient", "recomputed"};
    for_each_attribute([&](const char* name, auto) { all.push_back(name); });
    return all;
  }
  void add_step(const json_field& f) {
    static const std::vector<std::string_view> names = names_of_step();
    f.only(names);
    node n;
    n.kind = all_operations[f["op"].one_of(words_of(op_ref()))];
    const auto ids = [&](const json_field& list, int most, std::uint8_t& count, std::int32_t* to) {
      each(list, most, [&](const json_field& e) { to[count++] = id_of(e); });
    };
    ids(f["in"], sharding_rule::most_in, n.inputs, n.in);
    ids(f["out"], sharding_rule::most_out, n.outputs, n.out);
    if (f.has("rule")) read_rule(f["rule"], n);
    if (f.has("blocked")) n.rule.blocked = integer_of<std::uint16_t>(f["blocked"]);
    if (f.has("windows")) n.rule.windows = rows_of(f["windows"]);
    if (f.has("in_place")) n.in_place = std::uint8_t(f["in_place"].integer(0, n.inputs < n.outputs ? n.inputs : n.outputs));
    for_each_attribute([&](const char* name, auto member) { take(f, name, n.attr.*member); });
    if (f.has("function")) {
      n.attr.function = functions_.find(f["function"].text());
      if (!n.attr.function) f["function"].fail("\"" + f["function"].text() + "\" is no function that plan_functions has");
    }
    if (f.has("custom")) {
      n.attr.custom = functions_.find_custom(f["custom"].text());
      if (!n.attr.custom) f["custom"].fail("\"" + f["custom"].text() + "\" is no operation that plan_functions has");
    }
    if (f.has("label")) n.attr.label = kept(f["label"].text());
    if (f.has("of_dims")) n.attr.dims = n.kind->taps ? factors_of_taps(f["of_dims"]) : dims_of(f["of_dims"]);
    if (f.has("own")) read_own(f["own"], n.attr.own);
    if (f.has("at")) read_place(f["at"], n.place);
    if (f.has("scope")) n.place.scope = kept(f["scope"].text());
    take(f, "gradient", n.place.gradient);
    take(f, "recomputed", n.place.recomputed);
    plan_.steps.push_back(n);
  }
  static void read_rule(const json_field& f, node& n) {
    const std::string text = f.text();
    std::size_t at = 0;
    const auto lists = [&](int count, short_list* to, std::string_view end) {
      for (int i = 0; i < count; ++i) {
        if (i && (at == text.size() || text[at++] != ',')) f.fail("has not a part for each tensor");
        while (at < text.size() && text[at] >= 'a' && text[at] <= 'p') {
          if (to[i].full()) f.fail("has too many letters for one tensor");
          to[i].push_back(text[at++] - 'a');
        }
      }
      if (text.substr(at, end.size()) != end) f.fail("is not a rule such as \"ab,bc->ac\"");
      at += end.size();
    };
    lists(n.inputs, n.rule.in, "->");
    lists(n.outputs, n.rule.out, "");
    if (at != text.size()) f.fail("has parts for more tensors than the step");
  }
  static void read_own(const json_field& f, packed_attributes& own) {
    for (const attribute_names* const names : own_attributes) {
      bool same = f.members() == std::size_t(names->count);
      for (int i = 0; i < names->count; ++i) same = same && f.has(names->items[i].name);
      if (!same) continue;
      own.names = names;
      for (int i = 0; i < names->count; ++i) {
        const attribute_names::item& item = names->items[i];
        using enum attribute_names::kind;
        if (item.what == flag) own.flags |= std::uint32_t(f[item.name].flag()) << item.at;
        else if (item.what == integer) own.integers[item.at] = integer_of<std::int32_t>(f[item.name]);
        else own.numbers[item.at] = f[item.name].any_number();
      }
      return;
    }
    f.fail("has not the attributes of an operation");
  }
  /// "moe.hpp:38"
  void read_place(const json_field& f, code_place& to) {
    const std::string text = f.text();
    const std::size_t colon = text.rfind(':');
    if (colon == text.npos || colon == 0 || text.find_first_not_of("0123456789", colon + 1) != text.npos || text.size() - colon > 10)
      f.fail("is not a file and a line");
    to.file = kept(text.substr(0, colon));
    for (std::size_t i = colon + 1; i < text.size(); ++i) to.line = 10 * to.line + std::uint32_t(text[i] - '0');
  }

  /// Computes what a file does not have.
  void finish() {
    bool has_loops = false;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const node& n = plan_.steps[i];
      has_loops = has_loops || n.kind->nesting > 0;
      for (int o = 0; o < n.outputs; ++o) plan_.values[std::size_t(n.output(o))].producer = std::int32_t(i);
    }
    plan_.lifetimes = lifetimes(plan_.values, plan_.steps, plan_.parameters, plan_.inputs, plan_.outputs);
    if (has_loops) keep_through_loops(plan_.lifetimes, plan_.steps);
    made_->plan = plan_.view();
    for (const port& p : plan_.inputs) made_->inputs.push_back(text_of_input(p));
  }
  tensor_text text_of_input(const port& p) const {
    const value& v = plan_.values[std::size_t(p.value)];
    const sharding layout = p.is_column_major ? v.layout.reversed() : v.layout;
    tensor_text text(p.name.view());
    text.type = v.type;
    text.dims.is_sharded = true;
    text.dims.sharding = spec_of_sharding(layout, plan_.mesh, made_->plan.order_of(layout));
    text.is_column_major = p.is_column_major;
    return text;
  }
};

}}}  // namespace gshard::v0::detail
