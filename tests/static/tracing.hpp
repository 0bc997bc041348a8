// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Programs traced by hand: the verbs are called on a builder, without a lambda or a mesh type.
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/trace/parameter_scope.hpp>

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <type_traits>

namespace tracing {

namespace gs = gshard;

inline constexpr gs::mesh_shape mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>::shape;

constexpr gs::builder on(const gs::mesh_shape& shape) {
  gs::builder b;
  b.mesh = shape;
  return b;
}

constexpr gs::symbol input(gs::builder& b, std::string_view letters, gs::dtype type = gs::dtype::f32) {
  const gs::symbol s{&b, b.add_value(b.dims_of(letters, "input"), type)};
  b.program.inputs.push_back({gs::tensor_name(letters), s.id});
  return s;
}
template <class... Entries>
constexpr gs::symbol input(gs::builder& b, std::string_view letters, gs::spec<Entries...>) {
  const gs::symbol s = input(b, letters);
  b.program.at(s.id).layout = gs::resolve(gs::spec<Entries...>::named, b.mesh, letters, b.program.problem);
  return s;
}

/// True if the dims have these letters. '*': a product, '#': a number, 'C': a capacity or a part, '+': a sum, '?': a number of blocks.
constexpr bool has_dims(gs::symbol s, std::string_view letters) {
  if (s.id < 0 || s.rank() != int(letters.size())) return false;
  for (int d = 0; d < s.rank(); ++d) {
    const gs::dim& whole = s.owner->program.dims[std::size_t(s.get().dims[d])];
    char letter = whole.letter;
    if (whole.what == gs::dim::kind::product) letter = '*';
    if (whole.what == gs::dim::kind::fixed) letter = '#';
    if (whole.what == gs::dim::kind::ratio || whole.what == gs::dim::kind::rounded) letter = 'C';
    if (whole.what == gs::dim::kind::linear) letter = '+';
    if (whole.what == gs::dim::kind::blocks) letter = '?';
    if (letter != letters[std::size_t(d)]) return false;
  }
  return true;
}

/// The fault of f(builder, parameter_scope).
template <class F>
constexpr gs::diagnostic problem_of(F f) {
  gs::builder b = on(mesh);
  const gs::parameter_scope m(b);
  f(b, m);
  return b.program.problem;
}
template <class F>
constexpr bool fails(gs::fault expected, std::string_view about, F f) {
  const gs::diagnostic p = problem_of(f);
  return p.what == expected && p.subject.view() == about;
}
/// True if the program of f fails because options of a layer conflict: ".dropless and .slots".
template <class F>
constexpr bool conflicts(std::string_view layer, std::string_view options, F f) {
  const gs::diagnostic p = problem_of(f);
  return p.what == gs::fault::options_conflict && p.subject.view() == layer && p.word.view() == options;
}
/// True if the program of f fails because options or arguments of a verb are out of range: "start, stop". `values`: the values in the
/// fault.
template <class F>
constexpr bool out_of_range(std::string_view verb, std::string_view options, std::initializer_list<int> values, F f) {
  const gs::diagnostic p = problem_of(f);
  const int* const v = values.begin();
  return p.what == gs::fault::bad_range && p.subject.view() == verb && p.word.view() == options &&
         p.first == (values.size() > 0 ? v[0] : gs::diagnostic::no_number) &&
         p.second == (values.size() > 1 ? v[1] : gs::diagnostic::no_number);
}
/// True if the program of f fails because the element type of an operand, given by number or name, is not accepted: "i32".
template <class Operand, class F>
constexpr bool wrong_type(std::string_view operation, Operand operand, std::string_view given, std::string_view taken, F f) {
  const gs::diagnostic p = problem_of(f);
  bool named = false;
  if constexpr (std::is_same_v<Operand, int>) named = p.first == operand && p.word.empty();
  else named = p.first == gs::diagnostic::no_number && p.word.view() == operand;
  return named && p.what == gs::fault::wrong_type && p.subject.view() == operation && gs::name(p.given) == given &&
         gs::element_names(p.taken).view() == taken;
}
/// True if f(builder, parameter_scope) is true, and no fault was found.
template <class F>
constexpr bool holds(F f) {
  gs::builder b = on(mesh);
  const gs::parameter_scope m(b);
  return f(b, m) && !b.failed();
}

constexpr bool reads(const gs::short_list& l, std::initializer_list<int> values) {
  int i = 0;
  for (int v : values)
    if (i >= l.size() || l[i++] != v) return false;
  return i == l.size();
}
constexpr bool same(const gs::list<int>& l, std::initializer_list<int> values) {
  std::size_t i = 0;
  for (int v : values)
    if (i >= l.size() || l[i++] != v) return false;
  return i == l.size();
}
constexpr int count(const gs::graph& g, gs::op_ref kind) {
  int n = 0;
  for (const gs::node& node : g.nodes) n += node.kind == kind;
  return n;
}
/// True if two nodes are the same operation on the same values, on any lines.
constexpr bool same(const gs::node& m, const gs::node& n) {
  bool same = m.kind == n.kind && m.inputs == n.inputs && m.outputs == n.outputs && m.rule.blocked == n.rule.blocked &&
              m.rule.windows == n.rule.windows;
  for (int i = 0; i < m.inputs; ++i) same = same && m.in[i] == n.in[i] && m.rule.in[i] == n.rule.in[i];
  for (int i = 0; i < m.outputs; ++i) same = same && m.out[i] == n.out[i] && m.rule.out[i] == n.rule.out[i];
  const gs::attributes &a = m.attr, &c = n.attr;
  return same && a.dim == c.dim && a.window == c.window && a.combine == c.combine && a.change == c.change && a.inside == c.inside &&
         a.fill == c.fill && a.factor == c.factor && a.own.same(c.own) && a.dims == c.dims && a.may_move == c.may_move;
}
/// True if f(builder) and g(builder) trace the same program: some nodes, and no fault.
template <class F, class G>
constexpr bool alike(F f, G g) {
  gs::builder one = on(mesh), other = on(mesh);
  f(one);
  g(other);
  const gs::graph &p = one.program, &q = other.program;
  if (p.problem || q.problem || p.nodes.empty() || p.nodes.size() != q.nodes.size() || p.values.size() != q.values.size()) return false;
  bool all = p.dims.size() == q.dims.size() && p.windows.size() == q.windows.size();
  for (std::size_t i = 0; all && i < p.dims.size(); ++i) all = p.dims[i] == q.dims[i];
  for (std::size_t i = 0; all && i < p.windows.size(); ++i) all = p.windows[i] == q.windows[i];
  for (std::size_t i = 0; all && i < p.nodes.size(); ++i) all = same(p.nodes[i], q.nodes[i]);
  for (std::size_t i = 0; all && i < p.values.size(); ++i)
    all = p.values[i].dims == q.values[i].dims && p.values[i].type == q.values[i].type && p.values[i].layout == q.values[i].layout &&
          p.values[i].priority == q.values[i].priority;
  return all;
}

/// The factors of the last node that no axis may shard, a bit each.
constexpr unsigned blocked(const gshard::builder& b) { return b.program.nodes.back().rule.blocked; }

/// The window through which the last node reads a dim of its first operand.
constexpr const gshard::window& window_of_last(const gshard::builder& b, int d) {
  const gshard::node& n = b.program.nodes.back();
  return b.program.windows[std::size_t(gshard::window_row(n, 0, d))];
}

}  // namespace tracing
