// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/base/list_view.hpp>

#include <array>
#include <vector>

namespace gs = gshard;
using view = gs::list_view<int>;

namespace {

constexpr std::array<int, 3> numbers{3, 1, 4};

static_assert(view().empty() && view().size() == 0 && view().begin() == view().end());
static_assert(view(numbers).size() == 3 && view(numbers).data() == numbers.data() && view(numbers)[2] == 4 &&
              !view(numbers).empty());
static_assert(view(numbers.data(), 2).size() == 2 && gs::list_view(numbers.data(), 1)[0] == 3);
static_assert(view(std::array<int, 0>{}).empty());
static_assert([] {
  const std::vector<int> same(numbers.begin(), numbers.end());
  int sum = 0;
  for (int n : view(same)) sum = 10 * sum + n;
  return sum == 314;
}());

}  // namespace
