// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A growing list for the planner's tables, cheaper than std::vector to compile and in constexpr evaluation.

#include <gshard/core/base/compiler.hpp>

#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <vector>  // std::allocator, std::construct_at in libstdc++ and libc++, without the rest of <memory>

namespace gshard { inline namespace v0 {

/// A growing list for the planner's tables: the part of std::vector that they need. The instantiations of std::vector would double the
/// time to include the planner.
// Constexpr evaluation pays for every object and every call: g++ 12 needs 6 KB for a constructed `node`. Therefore large elements beyond
// the size are not constructed. Others are stored by assignment: std::allocator would cost 50 declarations for each type.
template <class T>
class list {
  static constexpr bool assigns = sizeof(T) <= 96;

 public:
  constexpr list() = default;
  constexpr explicit list(std::size_t count, const T& each = T()) {
    reserve(count);
    T* const to = data_;
    for (std::size_t i = 0; i < count; ++i)
      if constexpr (assigns) to[i] = each;
      else std::construct_at(to + i, each);
    size_ = count;
  }
  constexpr list(std::initializer_list<T> elements) { append(elements.begin(), elements.size()); }
  constexpr list(const list& other) { append(other.begin(), other.size_); }
  constexpr list(list&& other) noexcept { swap(other); }
  constexpr list& operator=(list other) noexcept {
    swap(other);
    return *this;
  }
  constexpr ~list() {
    clear();
    release(data_);
  }

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
      if constexpr (assigns) data_[size_++] = copy;
      else std::construct_at(data_ + size_++, copy);
    } else if constexpr (assigns) {
      data_[size_++] = x;
    } else {
      std::construct_at(data_ + size_++, x);
    }
  }
  constexpr void pop_back() {
    --size_;
    if constexpr (!assigns) std::destroy_at(data_ + size_);
  }
  constexpr void clear() {
    if constexpr (!assigns) {
      if constexpr (!std::is_trivially_destructible_v<T>)  // only here, because it costs 40 instantiations for each type
        for (std::size_t i = 0; i < size_; ++i) std::destroy_at(data_ + i);
    }
    size_ = 0;
  }
  constexpr void append(const T* first, std::size_t count) {
    reserve(size_ + count);
    T* const to = data_ + size_;
    for (std::size_t i = 0; i < count; ++i)
      if constexpr (assigns) to[i] = first[i];
      else std::construct_at(to + i, first[i]);
    size_ += count;
  }
  constexpr void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    const std::size_t size = size_;
    T *const from = data_, *moved = nullptr;
    if constexpr (assigns) moved = new T[capacity];
    else moved = std::allocator<T>().allocate(capacity);
    for (std::size_t i = 0; i < size; ++i)
      if constexpr (assigns) moved[i] = static_cast<T&&>(from[i]);
      else std::construct_at(moved + i, static_cast<const T&>(from[i]));
    clear();
    release(from);
    data_ = moved;
    size_ = size;
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

  constexpr void release(T* room) {
    if constexpr (assigns) delete[] room;
    else if (capacity_ > 0) std::allocator<T>().deallocate(room, capacity_);
  }
};

}}  // namespace gshard::v0
