// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Calls functions of the user with the shards of a device.

#include <gshard/exec/bind/local_step.hpp>
#include <gshard/ops/user/call_on_shards.hpp>

#include <array>
#include <cstddef>
#include <type_traits>

namespace gshard { inline namespace v0 { namespace detail {

inline shard_place place_of(const kernel::placement& p) { return {p.rank, p.extent, p.offset, p.global}; }

/// T: the element type of f's pointers. Element: the element type of the tensors.
template <class T, class Element>
action bind_user_code(const local_step<Element>& step, shard_function<T> f) {
  std::array<const T*, sharding_rule::most_in> x{};
  std::array<shard_place, sharding_rule::most_in> at{};
  for (std::size_t i = 0; i < step.n.inputs; ++i) {
    x[i] = reinterpret_cast<const T*>(step.in(int(i)));
    at[i] = place_of(step.in_place(int(i)));
  }
  return [=, y = reinterpret_cast<T*>(step.out()), y_at = place_of(step.out_place())](const run_context&) {
    f(x.data(), at.data(), y, y_at);
  };
}

template <class T>
action bind(kernel_of<op::call_on_shards>, const local_step<T>& step) {
  if constexpr (std::is_same_v<T, float>) return bind_user_code(step, step.n.attr.function->shards_f32);
  else return bind_user_code(step, step.n.attr.function->shards_f64);
}

}}}  // namespace gshard::v0::detail
