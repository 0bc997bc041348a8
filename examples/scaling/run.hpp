// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Trains one configuration, and writes what the page shows: a line of JSON at every validation.

#include "configuration.hpp"
#include "task_data.hpp"

#include <cstdint>
#include <filesystem>

namespace scaling {

struct run_length {
  std::int64_t steps = 1500;
  std::int64_t validate_every = 100;
};

/// True if the file of results is complete.
bool is_finished(const std::filesystem::path& results);

/// Trains on one device. Writes `results` anew; its last line says that it is complete. `tell`: prints a line at every validation.
void run(const configuration& c, const task_data& data, const sizes& s, const run_length& length, const std::filesystem::path& results);

}  // namespace scaling
