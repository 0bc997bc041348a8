// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Long runs: what survives failures, and what tells how a run goes. The target gshard::run; needs OpenSSL.

#include <gshard/run/event_log.hpp>
#include <gshard/run/event_log_check.hpp>
// Checkpoints of runs
#include <gshard/run/checkpointer.hpp>
#include <gshard/run/signature.hpp>
#include <gshard/run/stop_request.hpp>

// Their files
#include <gshard/run/manifest.hpp>
#include <gshard/run/part_file.hpp>
#include <gshard/run/sha256.hpp>
#include <gshard/run/straggler.hpp>
#include <gshard/run/telemetry.hpp>
