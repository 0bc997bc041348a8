// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Trains one configuration. Writes a line of JSON for the page at every validation. Measures the time of a step.

#include "configuration.hpp"
#include "results.hpp"
#include "task_data.hpp"

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <span>

namespace scaling {

/// Trains on one device. Overwrites `results`; its last line marks it as complete. Prints a line at every validation.
void run(const configuration& c, const task_data& data, const sizes& s, const run_length& length, const std::filesystem::path& results);

/// Trains the models in turn, 10 steps each in a round. Prints the median time of a step of each, as CPU time and as wall-clock time. The
/// first round does not count.
void print_step_times(std::span<const configuration> models, const task_data& data, const sizes& s, int rounds, std::ostream& out);

}  // namespace scaling
