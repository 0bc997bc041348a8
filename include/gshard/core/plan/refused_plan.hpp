// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The plan of a program that does not compile: every further assertion about it holds, so that its error stays the only one.

#include <gshard/core/plan/plan.hpp>

#include <type_traits>

namespace gshard { inline namespace v0 { namespace detail {

/// A number for which every comparison holds.
struct any_number {
  template <class T>
    requires(std::is_arithmetic_v<T>)
  constexpr operator T() const {
    return T(1);
  }
  template <class A, class B>
  static constexpr bool has_any = std::is_same_v<A, any_number> || std::is_same_v<B, any_number>;

  template <class A, class B>
    requires(has_any<A, B>)
  friend constexpr any_number operator+(A, B) {
    return {};
  }
  template <class A, class B>
    requires(has_any<A, B>)
  friend constexpr any_number operator-(A, B) {
    return {};
  }
  template <class A, class B>
    requires(has_any<A, B>)
  friend constexpr any_number operator*(A, B) {
    return {};
  }
  template <class A, class B>
    requires(has_any<A, B>)
  friend constexpr any_number operator/(A, B) {
    return {};
  }
  template <class A, class B>
    requires(has_any<A, B>)
  friend constexpr any_number operator%(A, B) {
    return {};
  }
  template <class A, class B>
    requires(has_any<A, B>)
  friend constexpr bool operator==(A, B) {
    return true;
  }
  template <class A, class B>
    requires(has_any<A, B>)
  friend constexpr bool operator!=(A, B) {
    return true;
  }
  template <class A, class B>
    requires(has_any<A, B>)
  friend constexpr bool operator<(A, B) {
    return true;
  }
  template <class A, class B>
    requires(has_any<A, B>)
  friend constexpr bool operator>(A, B) {
    return true;
  }
  template <class A, class B>
    requires(has_any<A, B>)
  friend constexpr bool operator<=(A, B) {
    return true;
  }
  template <class A, class B>
    requires(has_any<A, B>)
  friend constexpr bool operator>=(A, B) {
    return true;
  }
  friend constexpr any_number operator-(any_number) { return {}; }
  template <class Stream>
  friend Stream& operator<<(Stream& out, any_number) {
    return out;
  }
};

struct refused_plan : plan_view {
  constexpr any_number count(const auto&...) const { return {}; }
  constexpr any_number collectives() const { return {}; }
  constexpr any_number bytes_received(const auto&...) const { return {}; }
};

/// True if a program does not compile.
template <class Program>
inline constexpr bool is_refused_program = std::is_same_v<decltype(Program::plan), const refused_plan>;

}}}  // namespace gshard::v0::detail
