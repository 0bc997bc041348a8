// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Plans, simulated runs and mistakes as text. Headers that write JSON are included by name: report/run_json.hpp,
// report/timeline.hpp and report/page.hpp.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/report/auto_shard.hpp>
#include <gshard/report/describe.hpp>
#include <gshard/report/diagnostic.hpp>
#include <gshard/report/link_map.hpp>
#include <gshard/report/reason.hpp>
#include <gshard/report/roofline.hpp>
#include <gshard/report/run_text.hpp>
