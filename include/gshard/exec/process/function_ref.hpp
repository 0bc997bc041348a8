// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A reference to a function object. A function that takes one is compiled once for all callers.

#include <gshard/core/base/compiler.hpp>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

template <class Signature>
class function_ref;

/// Like std::function_ref of C++26. The function object must outlive the reference: an argument lives until the call has returned.
template <class R, class... Args>
class function_ref<R(Args...)> {
 public:
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, function_ref> && std::is_object_v<std::remove_reference_t<F>> &&
             std::is_invocable_r_v<R, F&, Args...>)
  function_ref(F&& f) : object_(std::addressof(f)), call_(&call<std::remove_reference_t<F>>) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  template <class F>
  static R call(const void* object, Args... args) {
    return static_cast<R>((*static_cast<F*>(const_cast<void*>(object)))(std::forward<Args>(args)...));
  }

  const void* object_;
  R (*call_)(const void*, Args...);
};

}}}  // namespace gshard::v0::detail
