// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/schedule/update_companions.hpp>

#include <gshard/core/trace/map.hpp>
#include <gshard/train/adam.hpp>

#include "../../tracing.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gs = gshard;
using gs::builder, gs::dtype, gs::symbol;
using tracing::holds, tracing::input;

namespace {

constexpr symbol weight(const gs::parameter_scope& m, std::string_view name, dtype type = dtype::bf16) {
  return m.param(name, "M", gs::init::zeros(), type);
}
constexpr symbol variable(const gs::parameter_scope& m, std::string_view name) { return m.variable(name, "M", gs::init::zeros()); }
constexpr std::int32_t producer_of_updated(symbol p) {
  const gs::graph& g = p.owner->program;
  return g.at(g.parameters[std::size_t(p.get().parameter)].updated).producer;
}

struct found {
  gs::list<std::int32_t> updates;
  gs::detail::update_companions with;

  /// The index of the update together with which this node runs, or -1.
  constexpr int update_of(std::int32_t node) const {
    for (std::size_t u = 0; u < updates.size(); ++u)
      if (with.update_of(node) == updates[u]) return int(u);
    return -1;
  }
  constexpr int update_of(symbol s) const { return update_of(s.get().producer); }
  /// The number of nodes that run before, or after, an update, in their own order.
  constexpr int before(std::size_t u) const { return count(u, true); }
  constexpr int after(std::size_t u) const { return count(u, false); }
  constexpr int count(std::size_t u, bool before) const {
    int n = 0;
    for (std::int32_t i = with.first(updates[u]), last = -1; i >= 0; last = i, i = with.next(i)) {
      if (i <= last || with.update_of(i) != updates[u]) return -1;
      n += (i < updates[u]) == before;
    }
    return n;
  }
};
constexpr found companions_of(const gs::graph& g) {
  gs::list<std::int32_t> updates;
  for (std::size_t i = 0; i < g.nodes.size(); ++i)
    if (gs::updates_parameters(g.nodes[i])) updates.push_back(std::int32_t(i));
  const gs::list<char> live(g.nodes.size(), 1);
  return {updates, {g, live.data(), updates}};
}

// The master value of a weight in bf16, and the weight and the remainder that are rounded from it, but not the gradient.
static_assert(holds([](builder& b, auto& m) {
  const symbol w = weight(m, "w"), gradient = 2.0 * input(b, "M");
  gs::adam{}.update(m, w, gradient, input(b, ""));
  const found f = companions_of(b.program);
  return f.updates.size() == 1 && f.before(0) > 0 && f.after(0) > 0 && f.update_of(producer_of_updated(w)) == 0 &&
         f.update_of(gradient) == -1;
}));
// Each weight has its own companions.
static_assert(holds([](builder& b, auto& m) {
  const symbol v = weight(m, "v"), w = weight(m, "w"), rate = input(b, "");
  gs::adam{}.update(m, v, input(b, "M"), rate);
  gs::adam{}.update(m, w, input(b, "M"), rate);
  const found f = companions_of(b.program);
  return f.before(0) == f.before(1) && f.after(0) == f.after(1) && f.update_of(producer_of_updated(v)) == 0 &&
         f.update_of(producer_of_updated(w)) == 1;
}));
// Weights in float are overwritten directly.
static_assert(holds([](builder& b, auto& m) {
  const symbol decay = 0.5 * variable(m, "decay");
  gs::adam{}.update(m, weight(m, "w", dtype::f32), decay, input(b, ""));
  const found f = companions_of(b.program);
  return f.updates.size() == 1 && f.with.update_of(decay.get().producer) == -1 && f.with.first(f.updates[0]) == -1;
}));
// A tensor that several updates or an output read, or that an update overwrites, is not moved to an update.
static_assert(holds([](builder& b, auto& m) {
  const symbol rate = input(b, ""), plain = weight(m, "plain", dtype::f32);
  const symbol alone = 0.5 * variable(m, "alone"), shared = 0.5 * variable(m, "shared"), shown = 0.5 * variable(m, "shown"),
               old = 0.5 * plain;
  b.program.outputs.push_back({gs::tensor_name("shown"), shown.id});
  int i = 0;
  for (const symbol gradient : {alone, shared, shared, shown, old}) gs::adam{}.update(m, weight(m.scope(i++), "w"), gradient, rate);
  gs::adam{}.update(m, plain, input(b, "M"), rate);
  const found f = companions_of(b.program);
  return f.updates.size() == 6 && f.update_of(alone) == 0 && f.update_of(shared) == -1 && f.update_of(shown) == -1 &&
         f.update_of(old) == -1;
}));
// A tensor that is computed from an updated weight, but is no weight itself, is not moved. A tensor computed from two is not moved either.
static_assert(holds([](builder& b, auto& m) {
  const symbol v = weight(m, "v"), w = weight(m, "w"), rate = input(b, "");
  gs::adam{}.update(m, v, input(b, "M"), rate);
  gs::adam{}.update(m, w, input(b, "M"), rate);
  const symbol shown = gs::cast<float>(m.updated(v)), both = shown + gs::cast<float>(m.updated(w));
  b.program.outputs.push_back({gs::tensor_name("shown"), shown.id});
  m.update(variable(m, "sum"), both);
  const found f = companions_of(b.program);
  return f.update_of(producer_of_updated(v)) == 0 && f.update_of(shown) == -1 && f.update_of(both) == -1;
}));
// An annotation has the storage of its tensor.
static_assert(holds([](builder& b, auto&) {
  const symbol x = input(b, "M"), y = gs::annotate<gs::P<"x">>(gs::annotate<gs::P<gs::none>>(x)), z = 2.0 * x;
  const auto storage = [&](symbol s) { return gs::detail::storage_of(b.program.values.data(), b.program.nodes.data(), s.id); };
  return y.id != x.id && storage(y) == x.id && storage(x) == x.id && storage(z) == z.id;
}));

}  // namespace
