// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/list_view.hpp>

#include <array>
#include <cstddef>
#include <type_traits>

namespace gs = gshard;
using view = gs::list_view<int>;

namespace {

// As cheap to pass as a pointer and a number. Elements cannot be written through it.
static_assert(std::is_trivially_copyable_v<view>);
static_assert(sizeof(view) == sizeof(const int*) + sizeof(std::size_t));
static_assert(std::is_same_v<decltype(view{}[0]), const int&>);

static_assert(view{}.empty() && view{}.size() == 0 && view{}.begin() == view{}.end());

constexpr int total(view v) {
  int sum = 0;
  for (const int x : v) sum += x;
  return sum;
}
constexpr std::array<int, 4> four{1, 20, 300, 4000};

// A container converts to a view without a copy.
static_assert(total(four) == 4321 && total(std::array<int, 0>{}) == 0);
static_assert(view(four).data() == four.data() && &view(four)[3] == &four[3]);

// Every part of a list, also an empty one, has the elements of the list at these positions.
static_assert([] {
  const view all = four;
  for (std::size_t first = 0; first <= all.size(); ++first)
    for (std::size_t count = 0; first + count <= all.size(); ++count) {
      const gs::list_view part(all.data() + first, count);
      if (part.size() != count || part.empty() != (count == 0)) return false;
      if (part.end() - part.begin() != std::ptrdiff_t(count)) return false;
      for (std::size_t i = 0; i < count; ++i)
        if (part[i] != four[first + i]) return false;
    }
  return true;
}());

// It owns nothing: a copy of a view has the same elements, and sees changes to them.
static_assert([] {
  std::array<int, 2> numbers{1, 2};
  view v = numbers;
  const view copy = v;  // a view that is not const is not taken for a container
  numbers[1] = 7;
  v = {};
  return copy.data() == numbers.data() && total(copy) == 8 && v.empty();
}());

}  // namespace
