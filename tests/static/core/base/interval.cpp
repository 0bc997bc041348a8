// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/interval.hpp>

using gshard::interval;

static_assert(interval{2, 5}.size() == 3 && interval{}.size() == 0);
static_assert(interval{2, 5}.shifted(-3) == interval{-1, 2});
static_assert(interval{2, 5}.common({4, 9}) == interval{4, 5} && interval{2, 5}.common({5, 9}).size() == 0 &&
              interval{2, 5}.common({7, 9}).size() == 0);
