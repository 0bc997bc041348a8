// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/monitor/run_page_views.hpp>

#include "../../sim/report/inside_page.hpp"

static_assert(is_for_inside(gshard::detail::run_page_views));
