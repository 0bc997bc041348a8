// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Long runs: checkpoints that survive failures, and monitoring. The target gshard::survive; needs OpenSSL. The page of a run,
// <gshard/survive/monitor/run_page.hpp>, is included by name.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

// Checkpoints, and signals that ask a run to save and end.
#include <gshard/survive/checkpoint/checkpoint_check.hpp>
#include <gshard/survive/checkpoint/checkpointer.hpp>
#include <gshard/survive/checkpoint/signature.hpp>
#include <gshard/survive/checkpoint/stop_request.hpp>

// Monitoring.
#include <gshard/survive/log/event_log.hpp>
#include <gshard/survive/log/event_log_check.hpp>
#include <gshard/survive/monitor/telemetry.hpp>
