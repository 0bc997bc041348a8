// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A growing list for the planner's tables, cheaper than std::vector to compile and in constexpr evaluation.

#include <gshard/base/compiler.hpp>

#include <cstddef>
#include <initializer_list>

namespace gshard { inline namespace v0 {

/// A growing list for the planner's tables: the part of std::vector that they need. The instantiations of std::vector would double the time
/// to include the planner. Each of its allocator calls costs time in constexpr evaluation.
template <class T>
class list {
 public:
  constexpr list() = default;
  constexpr explicit list(std::size_t count, const T& each = T()) {
    reserve(count);
    T* const to = data_;
    for (std::size_t i = 0; i < count; ++i) to[i] = each;
    size_ = count;
  }
  constexpr list(std::initializer_list<T> elements) { append(elements.begin(), elements.size()); }
  constexpr list(const list& other) { append(other.begin(), other.size_); }
  constexpr list(list&& other) noexcept { swap(other); }
  constexpr list& operator=(list other) noexcept {
    swap(other);
    return *this;
  }
  constexpr ~list() { delete[] data_; }

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* data() { return data_; }
  constexpr const T* data() const { return data_; }
  constexpr T& operator[](std::size_t i) { return data_[i]; }
  constexpr const T& operator[](std::size_t i) const { return data_[i]; }
  constexpr T& back() { return data_[size_ - 1]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr T* begin() { return data_; }
  constexpr const T* begin() const { return data_; }
  constexpr T* end() { return data_ + size_; }
  constexpr const T* end() const { return data_ + size_; }

  constexpr void push_back(const T& x) {
    if (size_ == capacity_) {
      const T copy = x;  // x may be an element, which reserve moves
      reserve(capacity_ < 4 ? 4 : 4 * capacity_);  // few steps: constexpr evaluation pays for moved elements, not for capacity
      data_[size_++] = copy;
    } else {
      data_[size_++] = x;
    }
  }
  constexpr void pop_back() { --size_; }
  constexpr void clear() { size_ = 0; }
  constexpr void append(const T* first, std::size_t count) {
    if (size_ + count > capacity_) reserve(size_ + count);
    T* const to = data_ + size_;
    for (std::size_t i = 0; i < count; ++i) to[i] = first[i];
    size_ += count;
  }
  constexpr void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    T* const from = data_;
    T* const moved = new T[capacity]{};
    for (std::size_t i = 0; i < size_; ++i) moved[i] = static_cast<T&&>(from[i]);
    delete[] from;
    data_ = moved;
    capacity_ = capacity;
  }
  constexpr void swap(list& other) noexcept {
    T* const data = data_;
    const std::size_t size = size_, capacity = capacity_;
    data_ = other.data_, size_ = other.size_, capacity_ = other.capacity_;
    other.data_ = data, other.size_ = size, other.capacity_ = capacity;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}}  // namespace gshard::v0
