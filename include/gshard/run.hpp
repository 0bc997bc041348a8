// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Long runs: what survives failures, and what tells how a run goes. The target gshard::run; needs OpenSSL.

#include <gshard/run/event_log.hpp>
#include <gshard/run/event_log_check.hpp>
#include <gshard/run/run_history.hpp>
#include <gshard/run/run_page.hpp>
#include <gshard/run/sha256.hpp>
#include <gshard/run/straggler.hpp>
#include <gshard/run/telemetry.hpp>
