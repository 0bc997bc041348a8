// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/schedule/step_order.hpp>
#include <gshard/train/adam.hpp>

#include <array>
#include <cstddef>
#include <initializer_list>

namespace gs = gshard;
namespace op = gs::op;

namespace {

/// Steps as from a partitioner. Value 0 is an input, value 1 a parameter.
struct draft {
  gs::list<gs::value> values = gs::list<gs::value>(2);
  gs::list<gs::node> steps;
  gs::list<gs::parameter> parameters;
  gs::list<gs::port> inputs, outputs;

  constexpr draft() {
    inputs.push_back({{}, 0});
    parameters.push_back({});
    parameters[0].value = 1;
  }
  constexpr int add(gs::op_ref kind, std::initializer_list<int> operands, int position) {
    gs::node n;
    n.kind = kind;
    n.outputs = 1;
    n.place.position = position;
    for (const int v : operands) n.in[n.inputs++] = v;
    n.out[0] = std::int32_t(values.size());
    values.push_back({});
    values.back().producer = std::int32_t(steps.size());
    steps.push_back(n);
    return n.out[0];
  }
  /// The positions of the steps in their order, 9 beyond the end.
  constexpr std::array<int, 5> order(bool has_loops = false) const {
    std::array<int, 5> found{9, 9, 9, 9, 9};
    std::size_t at = 0;
    for (const std::int32_t i : gs::detail::step_order(steps, values, parameters, outputs, has_loops))
      found[at++] = steps[std::size_t(i)].place.position;
    return found;
  }
};

// Steps are sorted by their positions, unless one reads a later one.
constexpr draft by_position() {
  draft d;
  const int third = d.add(op::map, {0}, 3), first = d.add(op::map, {0}, 1), fourth = d.add(op::map, {first}, 4);
  const int second = d.add(op::map, {fourth}, 2);
  d.outputs.push_back({{}, d.add(op::map, {third, second}, 5)});
  return d;
}
static_assert(by_position().order() == std::array{1, 4, 2, 3, 5});

// Unused steps are left out, and values are renumbered.
constexpr draft with_unread() {
  draft d;
  d.add(op::map, {0}, 1);
  const int used = d.add(op::map, {0}, 2);
  d.outputs.push_back({{}, d.add(op::map, {used}, 3)});
  return d;
}
static_assert(with_unread().order() == std::array{2, 3, 9, 9, 9});
constexpr bool removes_unread() {
  draft d = with_unread();
  gs::extents e;
  gs::detail::order_steps(d.values, d.steps, d.parameters, d.inputs, d.outputs, {}, e, 0, false);
  return d.steps.size() == 2 && d.values.size() == 4 && d.outputs[0].value == 3 && d.steps[1].input(0) == 2 && d.values[3].producer == 1;
}
static_assert(removes_unread());

// An update of a parameter is placed after all of its readers, also through a view.
constexpr draft with_update() {
  draft d;
  const int view = d.add(op::reshape, {1}, 1), read = d.add(op::map, {view}, 4), next = d.add(op::adam, {1, 0}, 2);
  d.steps.back().in_place = 1;
  d.parameters[0].updated = next;
  d.outputs.push_back({{}, read});
  return d;
}
static_assert(with_update().order() == std::array{1, 4, 2, 9, 9});

// Steps stay on their side of a loop's nodes.
constexpr draft with_loop() {
  draft d;
  const int late = d.add(op::map, {0}, 5);
  d.add(op::loop_begin, {}, 1);
  const int inside = d.add(op::map, {late}, 2);
  d.add(op::loop_end, {}, 3);
  d.outputs.push_back({{}, d.add(op::map, {inside}, 0)});
  return d;
}
static_assert(with_loop().order(true) == std::array{5, 1, 2, 3, 0});

}  // namespace
