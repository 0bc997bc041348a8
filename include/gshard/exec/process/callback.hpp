// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A type-erased function object for headers that every program includes. <functional> would add a twelfth to the compile time of
// gshard.hpp.

#include <gshard/core/base/compiler.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace gshard { inline namespace v0 {

template <class Signature>
class callback;

/// Like std::function, but copies share one function object. It must not be empty when it is called. A null pointer to a function and an
/// empty std::function make an empty callback.
template <class R, class... Args>
class callback<R(Args...)> {
 public:
  callback() = default;
  callback(std::nullptr_t) {}
  template <class F>
    requires(!std::same_as<std::decay_t<F>, callback> && std::is_invocable_r_v<R, std::decay_t<F>&, Args...> &&
             !std::is_member_pointer_v<std::decay_t<F>>)
  callback(F&& f) {
    using object = std::decay_t<F>;
    constexpr bool may_be_empty =
        std::is_pointer_v<object> || (std::is_constructible_v<object, std::nullptr_t> && std::is_constructible_v<bool, const object&>);
    auto made = std::make_shared<object>(std::forward<F>(f));
    if constexpr (may_be_empty)
      if (!static_cast<bool>(*made)) return;
    object_ = std::move(made);
    call_ = &call<object>;
  }

  explicit operator bool() const { return object_ != nullptr; }
  R operator()(Args... args) const {
    const std::shared_ptr<void> called = object_;  // it may assign to this callback
    return call_(called.get(), std::forward<Args>(args)...);
  }

 private:
  template <class F>
  static R call(void* object, Args... args) {
    return static_cast<R>((*static_cast<F*>(object))(std::forward<Args>(args)...));
  }

  std::shared_ptr<void> object_;
  R (*call_)(void*, Args...) = nullptr;
};

}}  // namespace gshard::v0
