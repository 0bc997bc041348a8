// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/optional_function.hpp>

namespace gs = gshard;

namespace {

constexpr int twice(int x) { return 2 * x; }
struct verb {
  gs::optional_function<int(int)> function{};
};
constexpr verb none{}, some{.function = twice};
static_assert(!none.function && some.function && some.function(4) == 8);

}  // namespace
