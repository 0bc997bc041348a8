// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/report/page_timeline.hpp>

#include "inside_page.hpp"

static_assert(is_for_inside(gshard::detail::page_timeline));
