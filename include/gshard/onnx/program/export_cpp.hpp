// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Writes an imported program as a C++ header: a model that users annotate, and that the compiler plans.

#include <gshard/core/ir/arithmetic.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/pointwise.hpp>
#include <gshard/core/ir/window.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/onnx/node/operator_functions.hpp>
#include <gshard/onnx/program/import_program.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

namespace exporting {

/// The text of a function, or nothing.
inline std::string_view text_of(const pointwise& f) {
  for (const operator_function& known : operator_functions)
    if (known.function == &f) return known.cpp;
  return {};
}

/// Writes the nodes of a program as statements.
class cpp_writer {
 public:
  explicit cpp_writer(const imported_program& p) : program_(p), graph_(p.program.graph()) {}

  std::string write(const std::string& name) {
    values_.resize(graph_.values.size());
    std::string arguments, types;
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const std::int32_t v = graph_.inputs[i].value;
      set(v, "x" + std::to_string(i));
      arguments += ", auto x" + std::to_string(i);
      types += ", gshard::in<\"" + letters_of(v) + "\"" + element_of_input(v) + ">";
    }
    for (const parameter& p : graph_.parameters) declare(p);
    for (const node& n : graph_.nodes) add(n);
    std::string results;
    for (const port& out : graph_.outputs) results += (results.empty() ? "" : ", ") + value(out.value);
    const bool several = graph_.outputs.size() != 1;
    std::string extents;
    for (const auto& [extent, letter] : letters_)
      extents += std::string(", gshard::extent<'") + letter + "', " + std::to_string(extent) + ">";
    std::string text = "// Made by gshard-onnx. Annotate inputs and parameters with mesh axes: \"A@data,B\".\n#pragma once\n\n";
    text += "#include <gshard/gshard.hpp>\n\n#include <tuple>\n\nnamespace " + name + " {\n\n";
    text += "inline constexpr auto model = [](auto& m" + arguments + ") {\n" + body_;
    text += "  return " + (several ? "std::tuple{" + results + "}" : results) + ";\n};\n\n";
    text += "template <class Mesh>\nusing program = gshard::program<model, Mesh" + types + extents + ">;\n\n}  // namespace " + name + "\n";
    return text;
  }

 private:
  struct written {
    std::string text;
    bool is_number = false;  // a tensor of equal numbers, of which the text is one
    double number = 0;
  };
  const imported_program& program_;
  const graph& graph_;
  std::vector<written> values_;
  std::map<std::int64_t, char> letters_;
  std::string body_;

  [[noreturn]] static void fail(const node& n, const std::string& why = {}) {
    throw error("the operation " + std::string(name_of(n)) + (why.empty() ? "" : " " + why) + " is not one that gshard-onnx writes as C++");
  }
  static std::string text_of_number(double x) {
    char digits[40];
    const auto [end, problem] = std::to_chars(digits, digits + sizeof digits, x);
    std::string text(digits, problem == std::errc() ? end : digits);
    return text.find_first_of(".en") == text.npos ? text + ".0" : text;
  }
  void set(std::int32_t v, const std::string& text) { values_[std::size_t(v)] = {text, false, 0}; }
  std::string value(std::int32_t v) const {
    const written& w = values_[std::size_t(v)];
    if (w.is_number || w.text.empty()) throw error("a constant tensor is not one that gshard-onnx writes as C++");
    return w.text;
  }
  /// A statement that makes a value.
  void make(std::int32_t v, const std::string& expression) {
    const std::string name = "v" + std::to_string(v);
    body_ += "  auto " + name + " = " + expression + ";\n";
    set(v, name);
  }

  std::int64_t extent_of(int d) const {
    const dim& known = graph_.dims[std::size_t(d)];
    const std::int64_t extent = known.what == dim::kind::fixed   ? known.number
                                : known.what == dim::kind::bound ? program_.extents.find(known.letter)
                                                                 : -1;
    if (extent < 0) throw error("a derived dim is not one that gshard-onnx writes as C++");
    return extent;
  }
  std::string letters_of(std::int32_t v) {
    std::string text;
    const dim_list& own = graph_.at(v).dims;
    for (int d = 0; d < own.size(); ++d) {
      const std::int64_t extent = extent_of(own[d]);
      const auto i = int(letters_.size());
      if (!letters_.contains(extent) && i == int(dims::most))
        throw error("the model has more than 52 different extents, and needs as many letters");
      text += letters_.emplace(extent, i < 26 ? char('A' + i) : char('a' + i - 26)).first->second;
    }
    return text;
  }
  std::string element_of_input(std::int32_t v) const {
    const dtype type = graph_.at(v).type;
    return type == dtype::f32 ? "" : ", " + std::string(c_type(type));
  }
  static std::string_view c_type(dtype t) { return t == dtype::i32 ? "std::int32_t" : t == dtype::i64 ? "std::int64_t" : cpp_name(t); }

  void declare(const parameter& p) {
    const auto& v = graph_.at(p.value);
    const std::string verb = p.trainable ? "param" : "variable";
    const std::string type =
        v.type == dtype::f32 ? "" : ", gshard::dtype::" + std::string(v.type == dtype::boolean ? "boolean" : gshard::name(v.type));
    make(p.value,
         "m." + verb + "(\"" + std::string(p.name.view()) + "\", \"" + letters_of(p.value) + "\", gshard::init::zeros()" + type + ")");
  }

  static std::string factors(const short_list& all) {
    std::string text;
    for (int d = 0; d < all.size(); ++d) text += char('a' + all[d]);
    return text;
  }
  /// The equation of a node: "ab,bc->ac".
  static std::string equation_of(const node& n, int operands) {
    std::string text;
    for (int i = 0; i < operands; ++i) text += (i ? "," : "") + factors(n.rule.in[i]);
    return text + "->" + factors(n.rule.out[0]);
  }

  void add(const node& n) {
    const std::string_view kind = name_of(n);
    const std::int32_t out = n.output();
    const std::string at = std::to_string(n.attr.dim);
    const auto x = [&](int i) { return value(n.input(i)); };
    if (kind == "map") return add_map(n);
    if (kind == "scale") return add_scale(n);
    if (kind == "einsum") {
      std::string operands = x(0);
      if (n.inputs > 1) operands += ", " + x(1);
      return make(out, "gshard::einsum<\"" + equation_of(n, n.inputs) + "\">(" + operands + ")");
    }
    if (kind == "cast") {
      if (values_[std::size_t(n.input(0))].is_number) return void(values_[std::size_t(out)] = values_[std::size_t(n.input(0))]);
      return make(out, "gshard::cast<" + std::string(c_type(graph_.at(out).type)) + ">(" + x(0) + ")");
    }
    if (kind == "reduce") {
      constexpr std::string_view names[]{"sum", "max", "min", "prod"};
      return make(out,
                  "gshard::reduce_" + std::string(names[std::size_t(n.attr.combine)]) + "<\"" + equation_of(n, 1) + "\">(" + x(0) + ")");
    }
    if (kind == "softmax") return make(out, "gshard::softmax(" + x(0) + ")");
    if (kind == "layer_norm")
      return make(out, "gshard::layer_norm(" + x(0) + ", " + x(1) + ", " + x(2) + ", " + text_of_number(n.attr.own.numbers[0]) + ")");
    if (kind == "gather") {
      const std::string batch = n.attr.own.integers[0] ? ", " + std::to_string(n.attr.own.integers[0]) : "";
      return make(out, "gshard::gather(" + x(0) + ", " + x(1) + ", " + at + batch + ")");
    }
    if (kind == "concat") {
      std::string parts;
      for (int i = 0; i < n.inputs; ++i) parts += (i ? ", " : "") + x(i);
      return make(out, "gshard::concat({" + parts + "}, " + at + ")");
    }
    if (kind == "reshape") return add_reshape(n);
    if (kind == "strided_slice" || kind == "pad") return add_moved(n, kind == "pad");
    if (kind == "reverse") {
      std::string dims;
      for (int d = 0; d < graph_.at(out).rank(); ++d)
        if (window_of(n, d)) dims += (dims.empty() ? "" : ", ") + std::to_string(d);
      return make(out, "gshard::reverse(" + x(0) + ", {" + dims + "})");
    }
    if (kind == "convolution" && n.inputs == 2) return add_convolution(n);
    if (kind == "convolution") return add_pool(n, "sum");
    if (kind == "pool") return add_pool(n, n.attr.combine == reduction::max ? "max" : "min");
    fail(n);
  }

  void add_scale(const node& n) {
    const written& w = values_[std::size_t(n.input(0))];
    if (n.attr.own.numbers[0] != 0) fail(n, "by extents");
    if (w.is_number) return void(values_[std::size_t(n.output())] = {"", true, w.number * n.attr.factor});
    make(n.output(), value(n.input(0)) + " * " + text_of_number(n.attr.factor));
  }

  /// A call of a verb that takes numbers as operands, and tensors of integers.
  static std::string verb_of(const pointwise& f, const std::vector<std::string>& x) {
    namespace functions = gshard::detail::arithmetic;
    const auto is = [&]<class F>(F) { return f.own == functions::number_of<F>; };
    if (is(functions::add{})) return x[0] + " + " + x[1];
    if (is(functions::subtract{})) return x[0] + " - " + x[1];
    if (is(functions::multiply{})) return x[0] + " * " + x[1];
    if (is(functions::divide{})) return x[0] + " / " + x[1];
    if (is(functions::less{})) return "gshard::less(" + x[0] + ", " + x[1] + ")";
    if (is(functions::at_most{})) return x[0] + " <= " + x[1];
    if (is(functions::equal{})) return "gshard::equal(" + x[0] + ", " + x[1] + ")";
    if (is(functions::choose{})) return "gshard::select(" + x[0] + ", " + x[1] + ", " + x[2] + ")";
    if (is(functions::both{})) return "gshard::logical_and(" + x[0] + ", " + x[1] + ")";
    if (is(functions::either{})) return "gshard::logical_or(" + x[0] + ", " + x[1] + ")";
    if (is(functions::negation{})) return "gshard::logical_not(" + x[0] + ")";
    return {};
  }

  void add_map(const node& n) {
    const pointwise& f = *n.attr.function;
    if (n.inputs == 0) {
      const bool one = f.own == detail::arithmetic::number_of<detail::arithmetic::one>;
      return void(values_[std::size_t(n.output())] = {"", true, one ? 1.0 : 0.0});
    }
    // The operand with all dims of the result gives the extents to which others are broadcast.
    const int rank = n.rule.out[0].size();
    int largest = -1;
    for (int i = 0; i < n.inputs; ++i)
      if (largest < 0 && n.rule.in[i].same(n.rule.out[0]) && !values_[std::size_t(n.input(i))].is_number) largest = i;
    std::vector<std::string> operands, parameters, names, all;  // `all`: tensors and numbers
    for (int i = 0; i < n.inputs; ++i) {
      const written& w = values_[std::size_t(n.input(i))];
      names.push_back(std::string(1, char('a' + i)));
      if (w.is_number) {
        names.back() = text_of_number(w.number);
        all.push_back(names.back());
        continue;
      }
      if (largest < 0) fail(n, "of operands that all lack dims of the result");
      parameters.push_back("auto " + names.back());
      const bool whole = n.rule.in[i].size() == rank;
      operands.push_back(whole ? w.text
                               : "gshard::broadcast<\"" + factors(n.rule.in[i]) + "," + factors(n.rule.out[0]) + "->" +
                                     factors(n.rule.out[0]) + "\">(" + w.text + ", " + value(n.input(largest)) + ")");
      all.push_back(operands.back());
    }
    if (operands.empty()) fail(n, "of constants");
    if (f.is_identity()) return set(n.output(), operands[0]);
    if (const std::string text = verb_of(f, all); !text.empty()) return make(n.output(), text);
    const std::string_view known = exporting::text_of(f);
    if (known.empty()) fail(n, "with this function");
    std::string text;
    for (std::size_t i = 0; i < known.size(); ++i) {
      const auto is_letter_at = [&](std::size_t k) {
        return k < known.size() && (is_letter(known[k]) || known[k] == ':' || known[k] == '_');
      };
      const bool alone = known[i] >= 'a' && known[i] <= 'd' && !is_letter_at(i + 1) && !(i > 0 && is_letter_at(i - 1));
      text += alone ? names[std::size_t(known[i] - 'a')] : std::string(1, known[i]);
    }
    std::string lambda, given;
    for (const std::string& p : parameters) lambda += (lambda.empty() ? "" : ", ") + p;
    for (const std::string& o : operands) given += ", " + o;
    make(n.output(), "gshard::map([](" + lambda + ") { return " + text + "; }" + given + ")");
  }

  void add_reshape(const node& n) {
    const std::string x = value(n.input(0)), at = std::to_string(n.attr.dim);
    const dim_list& dims = graph_.at(n.output()).dims;
    const auto extent = [&](int d) { return std::to_string(extent_of(dims[d])); };
    switch (n.attr.change) {
      case reshape_kind::merge:
        return make(n.output(), "gshard::merge_dims(" + x + ", " + at + ")");
      case reshape_kind::split:
        return make(n.output(), "gshard::split_dim(" + x + ", " + at + ", " + extent(n.attr.dim) + ", " + extent(n.attr.dim + 1) + ")");
      case reshape_kind::insert:
        return make(n.output(), "gshard::expand_dims(" + x + ", " + at + ")");
      case reshape_kind::remove:
        return make(n.output(), "gshard::squeeze(" + x + ", " + at + ")");
      case reshape_kind::rename:
        return set(n.output(), x);
      case reshape_kind::unchanged:
        break;
    }
    fail(n);
  }

  const window* window_of(const node& n, int d) const {
    const int row = n.rule.windows[d];
    return row == 0 ? nullptr : &graph_.windows[std::size_t(row)];
  }
  void add_moved(const node& n, bool pads) {
    const dim_list &from = graph_.at(n.input(0)).dims, &to = graph_.at(n.output()).dims;
    std::string parts;
    for (int d = 0; d < from.size(); ++d) {
      const window* const w = window_of(n, d);
      if (!w) continue;
      const std::int64_t in = extent_of(from[d]), out = extent_of(to[d]), low = -std::int64_t(w->low);
      const std::int64_t spread = (in - 1) * w->dilation + 1;
      const auto number = [](std::int64_t i) { return ", " + std::to_string(i); };
      parts += (parts.empty() ? "{" : ", {") + std::to_string(d);
      if (pads)
        parts += number(low) + number(out - spread - low) + number(w->dilation - 1) + "}";
      else
        parts += number(w->low) + number(out == 0 ? w->low : w->low + (out - 1) * w->stride + 1) + number(w->stride) + "}";
    }
    if (pads)
      make(n.output(), "gshard::pad(" + value(n.input(0)) + ", {" + parts + "}, " + text_of_number(n.attr.fill) + ")");
    else
      make(n.output(), "gshard::slice(" + value(n.input(0)) + ", {" + parts + "})");
  }

  void add_pool(const node& n, const std::string& what) {
    std::string windows;
    for (int d = 0; d < graph_.at(n.input(0)).rank(); ++d) {
      const window* const w = window_of(n, d);
      if (!w) continue;
      const std::int64_t in = extent_of(graph_.at(n.input(0)).dims[d]), out = extent_of(graph_.at(n.output()).dims[d]);
      const std::int64_t taps = extent_of(w->taps_dim);
      windows += (windows.empty() ? "{" : ", {") + std::to_string(d) + ", " + std::to_string(taps) + ", " +
                 text_of_window(*w, in, out, taps) + "}";
    }
    make(n.output(), "gshard::" + what + "_pool(" + value(n.input(0)) + ", {" + windows + "})");
  }
  /// "{.stride = 2, .low = 1, .high = 1, .step = 1, .dilation = 1}"
  static std::string text_of_window(const window& w, std::int64_t in, std::int64_t out, std::int64_t taps) {
    const std::int64_t low = -std::int64_t(w.low), high = (out - 1) * w.stride + (taps - 1) * w.step - low - (in - 1) * w.dilation;
    return "{.stride = " + std::to_string(w.stride) + ", .low = " + std::to_string(low) + ", .high = " + std::to_string(high) +
           ", .step = " + std::to_string(w.step) + ", .dilation = " + std::to_string(w.dilation) + "}";
  }
  /// Factors are upper-case letters; the taps of a dim have its letter in lower case.
  void add_convolution(const node& n) {
    const short_list &a = n.rule.in[0], &b = n.rule.in[1], &y = n.rule.out[0];
    std::string letters(16, '?'), windows;
    for (int f = 0; f < 16; ++f) letters[std::size_t(f)] = char('A' + f);
    for (int d = 0; d < a.size(); ++d) {
      const window* const w = window_of(n, d);
      if (!w) continue;
      letters[std::size_t(n.attr.dims[d] - 1)] = char('a' + a[d]);
      const std::int64_t in = extent_of(graph_.at(n.input(0)).dims[d]),
                         taps = extent_of(graph_.at(n.input(1)).dims[b.find(n.attr.dims[d] - 1)]);
      const std::int64_t out = extent_of(graph_.at(n.output()).dims[y.find(a[d])]);
      windows += (windows.empty() ? "" : ", ") + text_of_window(*w, in, out, taps);
    }
    const auto text = [&](const short_list& all) {
      std::string t;
      for (int d = 0; d < all.size(); ++d) t += letters[std::size_t(all[d])];
      return t;
    };
    make(n.output(), "gshard::conv<\"" + text(a) + "," + text(b) + "->" + text(y) + "\">(" + value(n.input(0)) + ", " + value(n.input(1)) +
                         ", {" + windows + "})");
  }
};

}  // namespace exporting

/// An imported program as a C++ header: `model`, a lambda of gshard's verbs, and `program<Mesh>`, in the namespace `name`. Dims are
/// letters, one for each extent. Parameters have the names of the model. Throws `gshard::error` for an operation that is not among those
/// that it writes: products, elementwise functions, reductions, reshapes, slices, convolutions and lookups.
inline std::string cpp_of(const imported_program& p, const std::string& name) {
  return exporting::cpp_writer(p).write(name);
}

}}}  // namespace gshard::v0::onnx
