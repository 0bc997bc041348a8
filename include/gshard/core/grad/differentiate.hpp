// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Gradients of a program, appended to it as nodes.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/grad/backward_walk.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/parameter_scope.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {
/// The gradient of a parameter whose rows have copies: for each copy, the sum over all copies. Other gradients are returned unchanged.
constexpr symbol sum_copies(symbol of, symbol gradient) {
  builder& b = *of.owner;
  const std::int32_t row = b.failed() ? -1 : of.get().parameter;
  if (row < 0 || b.program.parameters[std::size_t(row)].placed_by < 0) return gradient;
  const parameter& p = b.program.parameters[std::size_t(row)];
  return p.sum_copies(gradient, {&b, b.program.parameters[std::size_t(p.placed_by)].value});
}
}  // namespace detail

/// gradients(y, {w, b}): dy/dw and dy/db, as further nodes of the program. Reverse mode, operation by operation: the gradient of an einsum
/// is another einsum. The gradient of a parameter that is used in several places is summed once. The gradient of a tensor in half precision
/// is float. That of a complex tensor w is dy/dRe(w) + i dy/dIm(w). A tensor on which y does not depend has the gradient 0.
/// Shapes: a scalar, and a list of tensors of any shapes -> a list of the same shapes.
/// Communicates: nothing by itself; the partitioner adds the communication of the appended nodes.
/// Compile time: that y is a real scalar; that the element types have gradients; that the operations between have gradients.
/// Throws: nothing.
/// @see trainable
template <class Symbols>
  requires(detail::takes<detail::list_of<symbol>, Symbols>)
constexpr list<symbol> gradients(symbol scalar, const Symbols& of) {
  builder& b = *scalar.owner;
  const list_view<symbol> wanted(of);
  list<symbol> result(wanted.size(), b.nothing());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!b.has(wanted[i])) return result;
  if (b.failed()) return result;
  if (scalar.rank() != 0) b.fail(fault::not_a_scalar, "gradients", {}, 0, scalar.rank());
  if (!is_real(scalar.get().type)) b.fail_type("gradients", 0, scalar.get().type, reals);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (const dtype type = wanted[i].get().type; !has_gradient(type)) b.fail_type("gradients", 1, type, types_with(has_gradient));
  if (b.failed()) return result;
  detail::backward_walk d(b, wanted);
  d.add(scalar.id, detail::emit_constant(detail::pointwise_constant<1>, scalar));
  d.run();
  if (b.failed()) return result;
  for (std::size_t i = 0; i < wanted.size(); ++i) result[i] = detail::sum_copies(wanted[i], d.of(wanted[i]));
  return result;
}

/// gradients(loss, {w, b}): the same.
template <class = void>  // a template, so that only programs that call it pay for it
constexpr list<symbol> gradients(symbol scalar, std::initializer_list<symbol> of) {
  return gradients(scalar, list_view<symbol>(of.begin(), of.size()));
}

namespace detail {

/// True if a value of a program depends on one of these tensors.
constexpr bool depends_on(const graph& g, std::int32_t v, list_view<symbol> any_of) {
  list<char> reached(g.values.size(), 0);
  for (const symbol& s : any_of) reached[std::size_t(s.id)] = 1;
  for (const node& n : g.nodes)
    for (int i = 0; i < n.inputs; ++i)
      if (reached[std::size_t(n.input(i))])
        for (int o = 0; o < n.outputs; ++o) reached[std::size_t(n.output(o))] = 1;
  return reached[std::size_t(v)] != 0;
}

/// The gradients by which an optimizer updates parameters. Reports a loss that depends on none of them.
template <class Symbols>
constexpr list<symbol> gradients_to_train(symbol loss, const Symbols& parameters, std::string_view optimizer) {
  builder& b = *loss.owner;
  if (!b.failed() && b.has(loss) && !parameters.empty() && !depends_on(b.program, loss.id, parameters))
    b.fail(fault::constant_loss, optimizer);
  return gradients(loss, parameters);
}

}  // namespace detail

/// trainable(m): the trainable parameters that a program has so far, in the order of their declarations.
/// Shapes: nothing -> a list of tensors of any shapes.
/// Communicates: nothing.
/// Compile time: nothing.
/// Throws: nothing.
/// @see gradients
constexpr list<symbol> trainable(const parameter_scope& m) {
  list<symbol> result;
  for (const parameter& p : m.owner().program.parameters)
    if (p.trainable) result.push_back({&m.owner(), p.value});
  return result;
}

template <class... Given>
  requires(!detail::call<2, symbol, detail::list_of<symbol>>::fits<Given...>)
constexpr auto gradients(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: gradients(loss, list) takes a scalar and a list of tensors of a program, as trainable(m) or {w, b}");
  return list<symbol>(16, detail::refused(given...));
}
template <class... Given>
  requires(!detail::call<1, parameter_scope>::fits<Given...>)
constexpr auto trainable(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: trainable(m) takes the first argument of the model");
  return list<symbol>(16, detail::refused(given...));
}

}}  // namespace gshard::v0
