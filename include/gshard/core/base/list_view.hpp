// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A read-only view of consecutive elements, cheaper to compile than std::span.

#include <gshard/core/base/compiler.hpp>

#include <cstddef>

namespace gshard { inline namespace v0 {

/// A read-only view of consecutive elements. It is std::span without its concept checks, which take a third of the time to compile the
/// planner.
template <class T>
class list_view {
 public:
  constexpr list_view() = default;
  constexpr list_view(const T* first, std::size_t count) : first_(first), count_(count) {}
  /// A view of a container with data() and size().
  template <class Container>
  constexpr list_view(const Container& c) : first_(c.data()), count_(c.size()) {}

  constexpr const T* data() const { return first_; }
  constexpr std::size_t size() const { return count_; }
  constexpr bool empty() const { return count_ == 0; }
  constexpr const T& operator[](std::size_t i) const { return first_[i]; }
  constexpr const T* begin() const { return first_; }
  constexpr const T* end() const { return first_ + count_; }

 private:
  const T* first_ = nullptr;
  std::size_t count_ = 0;
};

template <class T>
list_view(const T*, std::size_t) -> list_view<T>;

}}  // namespace gshard::v0
