// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/op/eager.hpp>
#include <gshard/op/reshard.hpp>
#include <gshard/trace/rows.hpp>

namespace gshard { inline namespace v0 {

namespace detail {
inline constexpr auto softmax_model = [](auto&, auto x) { return softmax(x); };
}

/// softmax over the last dim of a tensor, which is made whole on a device if it is not.
template <class T, class Spec>
auto softmax(const tensor<T, Spec>& x) {
  static_assert(holds<!tensor<T, Spec>::is_partial, actual_type<Spec>>,
                "gshard: a pending sum (partial) is used as a complete tensor; reshard it first");
  return detail::run_eager<detail::softmax_model, spec<>, detail::first_letters<Spec::rank>>("softmax", x);
}

}}  // namespace gshard::v0
