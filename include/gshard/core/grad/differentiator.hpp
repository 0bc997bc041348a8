// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The gradients of the tensors of a program while they are computed. The gradient of an operation reads them and adds to them.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/grad/appended_nodes.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace gshard { inline namespace v0 { namespace detail {

/// The gradient of each tensor so far, during a backward walk. It is the sum of what the readers of the tensor add. @see operation_rules
class differentiator {
 public:
  constexpr builder& owner() const { return b_; }
  constexpr symbol in(const node& n, int i) const { return at(n.input(i)); }
  constexpr symbol out(const node& n, int i = 0) const { return at(n.output(i)); }
  /// The gradient of a result; zeros if no gradient has reached it.
  constexpr symbol gradient(const node& n, int i = 0) const {
    const std::int32_t g = gradients_[std::size_t(n.output(i))];
    return g >= 0 ? at(g) : zeros_for(out(n, i));
  }
  /// True if the gradient of an operand is wanted.
  constexpr bool wants(const node& n, int i) const { return needed_[std::size_t(n.input(i))] && !stops_gradient(n); }
  /// Adds to the gradient of a tensor.
  constexpr void add(std::int32_t value, symbol g) {
    if (g.id < 0) return;
    std::int32_t &sum = gradients_[std::size_t(value)], &earliest = earliest_reader_[std::size_t(value)];
    if (current_ < earliest) earliest = current_;
    appended_.set_owner(current_);
    sum = sum < 0 ? g.id : (at(sum) + g).id;
    appended_.set_owner(earliest);
    if (at(value).get().bf16_on_wire && is_real(at(sum).get().type)) send_as_bf16(at(sum));
  }

  /// The gradient of `x`; zeros if the result does not depend on it.
  constexpr symbol of(symbol x) const {
    const std::int32_t g = gradients_[std::size_t(x.id)];
    return g >= 0 ? at(g) : zeros_for(x);
  }
  /// The sum of the gradients that have reached a tensor; an empty symbol if none has.
  constexpr symbol gradient_so_far(std::int32_t value) const { return at(gradients_[std::size_t(value)]); }
  /// True if a tensor depends on one whose gradient is wanted.
  constexpr bool needs(std::int32_t value) const { return needed_[std::size_t(value)] != 0; }

 protected:
  constexpr explicit differentiator(builder& b)
      : b_(b),
        gradients_(b.program.values.size(), -1),
        earliest_reader_(b.program.values.size(), std::int32_t(b.program.nodes.size())),
        appended_(b),
        current_(std::int32_t(b.program.nodes.size())),
        needed_(b.program.values.size(), false) {}

  constexpr symbol at(std::int32_t id) const { return {&b_, id}; }
  constexpr symbol zeros_for(symbol x) const {
    const value like = x.get();
    return emit_constant(b_, pointwise_constant<0>, like.dims, gradient_type(like.type));
  }
  static constexpr bool stops_gradient(const node& n) { return n.kind == op::map && n.attr.function->stops_gradient; }

  builder& b_;
  list<std::int32_t> gradients_;        // by value, -1: none so far
  list<std::int32_t> earliest_reader_;  // by value: the first node of the program that has added to its gradient
  appended_nodes<builder> appended_;
  std::int32_t current_;  // the node that is differentiated
  list<char> needed_;     // by value: depends on a tensor whose gradient is wanted
};

/// The rule of a node for gradients of operands of n: some operands of n, then the gradient of its result 0. Its results have the dims of
/// operands of n.
constexpr sharding_rule rule_of_gradient(const node& n, std::initializer_list<int> operands, std::initializer_list<int> results) {
  sharding_rule r;
  r.blocked = n.rule.blocked;
  std::size_t i = 0, o = 0;
  for (const int k : operands) r.in[i++] = n.rule.in[std::size_t(k)];
  r.in[i] = n.rule.out[0];
  for (const int k : results) r.out[o++] = n.rule.in[std::size_t(k)];
  return r;
}

}}}  // namespace gshard::v0::detail
