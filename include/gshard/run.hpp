// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Long runs: checkpoints that survive failures, and monitoring. The target gshard::run; needs OpenSSL. The page of a run,
// <gshard/run/run_page.hpp>, is included by name.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

// Checkpoints, and signals that ask a run to save and end.
#include <gshard/run/checkpoint_check.hpp>
#include <gshard/run/checkpointer.hpp>
#include <gshard/run/signature.hpp>
#include <gshard/run/stop_request.hpp>

// Monitoring.
#include <gshard/run/event_log.hpp>
#include <gshard/run/event_log_check.hpp>
#include <gshard/run/telemetry.hpp>
