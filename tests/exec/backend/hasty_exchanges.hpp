// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/backend/simulated.hpp>

#include <cstddef>
#include <random>

/// Simulated devices whose exchanges arrive after any number of tests, in any order.
class hasty_exchanges final : public gshard::simulated {
 public:
  using simulated::simulated;
  std::mt19937 draw{1};
  bool advances_in_calls() const override { return true; }

 private:
  bool is_done(std::size_t) override { return draw() % 3 != 0; }
};
