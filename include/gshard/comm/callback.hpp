// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Function objects whose type is erased, for headers that every program includes: <functional> is a twelfth of gshard.hpp.

#include <gshard/base/compiler.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 {

template <class Signature>
class callback;

/// As std::function, but copies share one function object. It must not be empty when it is called.
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
