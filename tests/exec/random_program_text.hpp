// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program.hpp"

#include <string>
#include <string_view>
#include <vector>

// Prints a recipe as a test that can be pasted into a file.
namespace random_program {

namespace detail {

inline std::string in_quotes(std::string_view s) { return '"' + std::string(s) + '"'; }
inline std::string joined(const std::vector<std::string>& parts) {
  std::string t;
  for (const std::string& p : parts) t += (t.empty() ? "" : ", ") + p;
  return t;
}
inline std::string number(double v) {
  std::string t = std::to_string(v);
  while (t.back() == '0') t.pop_back();
  return t.back() == '.' ? t + '0' : t;
}
inline std::string type_name(int type) {
  const gs::dtype t{std::uint8_t(type)};
  switch (t) {
    case gs::dtype::f32: return "float";
    case gs::dtype::f64: return "double";
    case gs::dtype::f16: return "gs::half";
    case gs::dtype::bf16: return "gs::bfloat16";
    default: return "std::int32_t";
  }
}
inline std::string numbers(const std::vector<int>& all) {
  std::vector<std::string> texts;
  for (const int n : all) texts.push_back(std::to_string(n));
  return joined(texts);
}
inline std::string truth(int v) { return v ? "true" : "false"; }

inline std::string spec(const gs::sharding& s) {
  const auto axis = [](int a) { return in_quotes(run_graph::axis_letters.substr(std::size_t(a), 1)); };
  std::vector<std::string> entries, left;
  for (int d = 0; d < s.rank; ++d) {
    std::vector<std::string> axes;
    for (int i = 0; i < s[d].size(); ++i) axes.push_back(axis(s[d][i]));
    entries.push_back(axes.empty()       ? (s.is_open(d) ? "gs::any" : "gs::none")
                      : axes.size() == 1 ? axes[0]
                                         : "gs::axes<" + joined(axes) + ">");
  }
  for (int a = 0; a < gs::max_axes; ++a)
    if (s.is_partial(a)) left.push_back(axis(a));
  if (!left.empty()) entries.push_back("gs::partial<" + joined(left) + ">");
  return "gs::P<" + joined(entries) + ">{}";
}

inline std::string window(const std::vector<int>& n, std::size_t i) {
  const auto at = [&](std::size_t k) { return std::to_string(n[i + k]); };
  return "{" + joined({at(0), at(1), at(2), at(3), at(4)}) + "}";
}
inline std::string windows(const step& s) {
  std::vector<std::string> list;
  if (s.what == verb::conv)
    for (std::size_t i = 0; i + 4 < s.number.size(); i += 5) list.push_back(window(s.number, i));
  else
    for (std::size_t i = 0; i + 6 < s.number.size(); i += 7)
      list.push_back("{" + joined({std::to_string(s.number[i]), std::to_string(s.number[i + 1]), window(s.number, i + 2)}) + "}");
  return "{" + joined(list) + "}";
}

inline std::string call(std::string_view verb, std::vector<std::string> arguments) {
  return "gs::" + std::string(verb) + "(" + joined(arguments) + ")";
}

}  // namespace detail

/// A step as an expression of the library's verbs.
inline std::string code_of(const step& s) {
  using namespace detail;
  const std::vector<int>& n = s.number;
  std::vector<std::string> x;
  for (const int i : s.in) x.push_back("v" + std::to_string(i));
  const auto with = [&](std::string_view verb, std::vector<std::string> more) {
    std::vector<std::string> all = x;
    all.insert(all.end(), more.begin(), more.end());
    return detail::call(verb, all);
  };
  const auto over = [&](const std::string& verb) { return detail::call(verb + "<" + in_quotes(s.text) + ">", x); };
  const auto at = [&](std::size_t i) { return std::to_string(n[i]); };
  switch (s.what) {
    case verb::input: return "x[]";
    case verb::einsum: return over("einsum");
    case verb::mean: return over("mean");
    case verb::logsumexp: return over("logsumexp");
    case verb::reduce:
      return over(n[0] == int(gs::reduction::max) ? "reduce_max" : n[0] == int(gs::reduction::min) ? "reduce_min" : "reduce_prod");
    case verb::argmax: return over(n[0] ? "argmin" : "argmax");
    case verb::map: return detail::call("map<" + std::string(functions[std::size_t(n[0])].text) + ">", x);
    case verb::relu: return with("relu", {});
    case verb::maximum: return detail::call("map<[](auto v, auto w) { return gs::max(v, w); }>", x);
    case verb::minimum: return detail::call("map<[](auto v, auto w) { return gs::min(v, w); }>", x);
    case verb::broadcast: return over("broadcast");
    case verb::add: return x[0] + " + " + x[1];
    case verb::subtract: return x[0] + " - " + x[1];
    case verb::multiply: return x[0] + " * " + x[1];
    case verb::scale: return number(std::ldexp(1.0, n[0])) + " * " + x[0];
    case verb::stop_gradient: return with("stop_gradient", {});
    case verb::softmax: return with("softmax", {});
    case verb::layer_norm: return with("layer_norm", {"0.125"});
    case verb::cross_entropy: return with("cross_entropy", {number(n[0] / 8.0)});
    case verb::merge_dims: return detail::call("merge_dims<" + at(0) + ">", x);
    case verb::split_dim: return detail::call("split_dim<" + at(0) + ">", x);
    case verb::slice: return with("slice", {at(0), at(1), at(2), at(3)});
    case verb::pad: return with("pad", {at(0), at(1), at(2), at(3), number(n[4] / 4.0)});
    case verb::reverse: return with("reverse", {at(0)});
    case verb::roll: return with("roll", {at(0), at(1)});
    case verb::concat: return "gs::concat({" + joined(x) + "}, " + at(0) + ")";
    case verb::cumsum: return with("cumsum", {at(0), truth(n[1]), truth(n[2])});
    case verb::sort: return with("sort", {at(0), truth(n[1])}) + (n[2] ? ".ids" : ".values");
    case verb::top_k: return with("top_k", {at(0), at(1), truth(n[2])}) + (n[3] ? ".ids" : ".values");
    case verb::gather: return with("gather", {at(0), at(1)});
    case verb::scatter_add: return with("scatter_add", {at(0), at(1)});
    case verb::dynamic_slice: return detail::call("dynamic_slice", {x[0], at(0), x[1], at(1)});
    case verb::dynamic_update: return detail::call("dynamic_update_slice", {x[0], x[1], at(0), x[2]});
    case verb::iota: return "gs::iota<" + in_quotes(s.text) + ">(m, " + at(0) + ")";
    case verb::conv: return detail::call("conv<" + in_quotes(s.text) + ">", {x[0], x[1], windows(s)});
    case verb::sum_pool: return with("sum_pool", {windows(s)});
    case verb::mean_pool: return with("mean_pool", {windows(s)});
    case verb::max_pool: return with("max_pool", {windows(s)});
    case verb::min_pool: return with("min_pool", {windows(s)});
    case verb::dropout: return with("dropout", {number(n[0] / 10.0)});
    case verb::cast: return detail::call("cast<" + type_name(n[0]) + ">", x);
    case verb::annotate: return with("annotate", {spec(s.layout)});
    case verb::check_finite: return with("check_finite", {in_quotes("x")});
    case verb::one_hot: return detail::call("one_hot<" + in_quotes(s.text) + ", double>", x);
    case verb::attention:
      return "random_program::attention(std::array{" + numbers(n) + "}, std::array{" + joined(x) + "})";
    case verb::experts:
      return "random_program::experts(std::array{" + numbers(n) + "}, std::array{" + joined(x) + "})";
    case verb::scan:
      return "random_program::scan(" + joined({at(0), at(1)}) + ", " + joined(x) + ", on_mesh::layout_of(" + spec(s.layout) + "))";
    case verb::loop: return "random_program::loop(" + at(0) + ", " + joined(x) + ", on_mesh::layout_of(" + spec(s.layout) + "))";
    case verb::count_: break;
  }
  return "";
}

/// The statements of a recipe. Its inputs are x[0], x[1], ...; its results go between `begin` and `end`.
inline std::string body_of(const recipe& r, const std::string& begin, const std::string& end) {
  using namespace detail;
  std::vector<std::string> results, terms, wanted;
  std::string body;
  int inputs = 0;
  for (std::size_t i = 0; i < r.steps.size(); ++i) {
    const std::string code = r.steps[i].what == verb::input ? "x[" + std::to_string(inputs++) + "]" : code_of(r.steps[i]);
    body += "    const symbol v" + std::to_string(i) + " = " + code + ";\n";
  }
  const auto laid = [](const std::string& x, const result& y) { return y.laid ? "gs::annotate(" + x + ", " + spec(y.layout) + ")" : x; };
  for (const result& y : r.results) results.push_back(laid("v" + std::to_string(y.of), y));
  for (const int i : r.loss) terms.push_back("v" + std::to_string(i));
  for (std::size_t i = 0; i < r.gradients.size(); ++i) {
    wanted.push_back("v" + std::to_string(r.gradients[i].of));
    results.push_back(laid("g[" + std::to_string(i) + "]", r.gradients[i]));
  }
  if (!wanted.empty())
    body += "    const auto g = on_mesh::gradients_of(std::array{" + joined(terms) + "}, std::array{" + joined(wanted) + "});\n";
  return body + "    return " + begin + joined(results) + end + ";\n";
}

/// The code of a test that fails with this program.
inline std::string code_of(const recipe& r) {
  using namespace detail;
  std::vector<std::string> mesh, dims, inputs;
  for (const int n : r.on.mesh) mesh.push_back(std::to_string(n));
  for (std::size_t i = 0; i < r.on.dims.count; ++i)
    dims.push_back(std::string("{'") + r.on.dims.entries[i].letter + "', " + std::to_string(r.on.dims.entries[i].extent) + "}");
  for (const step& s : r.steps) {
    if (s.what != verb::input) continue;
    std::string what = in_quotes(s.text);
    if (gs::dtype(s.number[0]) == gs::dtype::i32)
      what += std::string(", gs::dtype::i32, '") + char(s.number[1]) + "', " + std::to_string(s.number[2]);
    inputs.push_back("{{" + what + "}, on_mesh::layout_of(" + spec(s.layout) + "), " + std::to_string(s.number[3]) +
                     (s.number[4] ? ", " + std::to_string(s.number[4]) : "") + "}");
  }
  return "TEST_CASE(\"seed " + std::to_string(r.seed) + "\") {\n  CHECK(on_mesh::failure({.mesh = {" + joined(mesh) + "}, .dims = {" +
         joined(dims) + "}, .known_axes = " + in_quotes(r.on.known_axes) + ", .known_dims = " + in_quotes(r.on.known_dims) +
         ", .keep_pending = " + truth(r.on.keep_pending) + "},\n      {" + joined(inputs) +
         "},\n      []([[maybe_unused]] const gs::parameter_scope& m, std::span<const symbol> x) {\n" +
         body_of(r, "gs::list<symbol>{", "}") + "  }) == \"\");\n}\n";
}

}  // namespace random_program
