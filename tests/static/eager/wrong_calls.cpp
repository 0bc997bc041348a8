// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/wrong_calls.hpp>

#include <gshard/core/trace/refused_operators.hpp>
#include <gshard/eager/einsum.hpp>
#include <gshard/eager/verbs.hpp>

// Right calls are not refused as wrong ones. Wrong ones: mustfail/wrong_eager_calls.cpp.
namespace gs = gshard;
using gs::none, gs::P;

namespace {

using tensor = gs::tensor<float, P<"x", none>>;
template <class T>
constexpr bool is_made = gs::distributed_tensor<T>;

[[maybe_unused]] void check(const tensor& t) {
  static_assert(is_made<decltype(gs::reshard<P<none, none>>(t))> && is_made<decltype(t + t)> && is_made<decltype(gs::softmax(t))>);
  static_assert(is_made<decltype(gs::einsum<"AB,CB->AC">(t, t))> && is_made<decltype(t < 1)> && is_made<decltype(gs::equal(t, t))>);
}

}  // namespace
