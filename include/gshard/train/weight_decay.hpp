// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Selects the parameters to which an optimizer applies weight decay.

#include <gshard/core/base/math.hpp>
#include <gshard/core/trace/builder.hpp>

#include <concepts>
#include <cstddef>
#include <string_view>

namespace gshard { inline namespace v0 {

/// The parameters that decay: all, or those for which a function of their name and number of dims is true, such as
/// `[](std::string_view, int dims) { return dims > 1; }`.
/// @see adam, adafactor
struct decay_mask {
  using function = bool (*)(std::string_view name, int dims);

  function decides = nullptr;
  bool is_given = false;  // g++ cannot compare `decides` with null in constant expressions under -fsanitize=undefined

  constexpr decay_mask() = default;
  constexpr decay_mask(std::nullptr_t) {}
  template <std::convertible_to<function> F>
  constexpr decay_mask(F f) : decides(f), is_given(true) {}

  constexpr bool operator()(std::string_view name, int dims) const { return !is_given || decides(name, dims); }
};

namespace detail {

/// The program fails if the norm of clipped gradients, or the weight decay, is negative or not finite. A clip_norm of 0 clips nothing.
constexpr void check_settings(builder& b, std::string_view optimizer, double clip_norm, double weight_decay) {
  if (!(clip_norm >= 0 && is_finite(clip_norm))) b.fail_range(optimizer, ".clip_norm");
  if (!(weight_decay >= 0 && is_finite(weight_decay))) b.fail_range(optimizer, ".weight_decay");
}
/// The weight decay of this parameter.
constexpr double weight_decay_of(symbol p, double weight_decay, const decay_mask& decays) {
  const builder& b = *p.owner;
  if (b.failed()) return 0;
  return decays(b.program.parameters[std::size_t(p.get().parameter)].name.view(), p.rank()) ? weight_decay : 0;
}

}  // namespace detail

}}  // namespace gshard::v0
