// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A type-erased function object for headers that every program includes. <functional> would add a twelfth to the compile time of
// gshard.hpp.

#include <gshard/base/compiler.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 {

template <class Signature>
class callback;

/// Like std::function, but copies share one function object. An empty callback must not be called.
template <class R, class... Args>
class callback<R(Args...)> {
 public:
  callback() = default;
  callback(std::nullptr_t) {}
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, callback> && std::is_invocable_r_v<R, std::remove_cvref_t<F>&, Args...>)
  callback(F&& f)
      : object_(std::make_shared<std::remove_cvref_t<F>>(std::forward<F>(f))), call_(&call<std::remove_cvref_t<F>>) {}

  explicit operator bool() const { return call_ != nullptr; }
  R operator()(Args... args) const { return call_(object_.get(), std::forward<Args>(args)...); }

 private:
  template <class F>
  static R call(void* object, Args... args) {
    return (*static_cast<F*>(object))(std::forward<Args>(args)...);
  }

  std::shared_ptr<void> object_;
  R (*call_)(void*, Args...) = nullptr;
};

}}  // namespace gshard::v0
