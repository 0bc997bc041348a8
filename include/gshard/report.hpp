// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Plans, simulated runs and mistakes as text. Headers that write JSON are included by name: io/report/run_json.hpp,
// io/report/timeline.hpp and io/report/page.hpp.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/exec/process/diagnostic.hpp>
#include <gshard/sim/report/auto_shard.hpp>
#include <gshard/sim/report/describe.hpp>
#include <gshard/sim/report/link_map.hpp>
#include <gshard/sim/report/reason.hpp>
#include <gshard/sim/report/roofline.hpp>
#include <gshard/sim/report/run_text.hpp>
