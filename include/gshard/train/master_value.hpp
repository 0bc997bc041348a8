// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Master values, with which optimizers train parameters in half precision.

#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/train/shard_state.hpp>

#include <array>
#include <string_view>

namespace gshard { inline namespace v0 { namespace detail {

/// y if it rounds to x, otherwise x.
inline constexpr auto master_value_choice = [](auto x, auto y, auto rounded_y) { return rounded_y == x ? y : x; };

/// The master value that an optimizer trains in place of a parameter p. If p is in float or double, it is p itself. If p is in half
/// precision, it is a float: p + rest. `rest` is a state of the optimizer, and p is the master value, rounded. Something else may write p,
/// such as `load`. An element of the rest therefore counts only while p + rest rounds to p; otherwise the master value is p.
class master_value {
 public:
  /// `prefix`: begins the name of the rest.
  constexpr master_value(const parameter_scope& m, symbol p, std::string_view prefix)
      : p_(p), rest_(m.owner().nothing()), value_(p), rounds_(m.owner().has(p) && p.get().type != gradient_type(p.get().type)) {
    if (!rounds_) return;
    rest_ = m.state(prefix, p);
    value_ = of(p, rest_);
  }
  constexpr symbol value() const { return value_; }

  /// Sets the parameter to `next`, rounded. The axis, if any, shards the master value and the rest. @see shard_as
  constexpr void update(symbol next, std::string_view axis = {}) const {
    builder& b = *p_.owner;
    if (!b.has(next)) return;
    if (!rounds_) return b.set_updated(p_, next);
    const symbol rounded = emit_cast(next, p_.get().type), next_rest = here(next) - emit_cast(rounded, next.get().type);
    if (b.failed()) return;
    b.set_updated(p_, rounded);
    b.set_updated(rest_, next_rest);
    for (const symbol& state : {rest_, value_, next, next_rest}) shard_as(b, axis, p_, state);
  }

 private:
  symbol p_, rest_, value_;
  bool rounds_;

  /// p + rest if that rounds to p, otherwise p. An infinite p is returned unchanged.
  static constexpr symbol of(symbol p, symbol rest) {
    if (p.owner->failed()) return rest;
    const dtype type = rest.get().type;
    const symbol whole = emit_cast(p, type), sum = here(whole) + rest;
    const symbol rounded = emit_cast(emit_cast(sum, p.get().type), type);
    return emit_map(*p.owner, undifferentiated<master_value_choice, 3>, std::array{whole, sum, rounded});
  }
};

}}}  // namespace gshard::v0::detail
