// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Simulated runs on thousands of devices, search for shardings, and reports about plans and runs.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/report.hpp>

#include <gshard/sim/search/auto_shard.hpp>
#include <gshard/sim/search/shard_search.hpp>
#include <gshard/sim/record/faults.hpp>
#include <gshard/sim/run/dry_run.hpp>
#include <gshard/sim/run/presets.hpp>
#include <gshard/sim/run/routing_workload.hpp>
#include <gshard/sim/run/run_clock.hpp>
