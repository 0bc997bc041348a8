// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/backend/simulated.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

/// Simulated devices. Some of their exchanges fail after all data have arrived.
class failing_exchanges final : public gshard::simulated {
 public:
  using simulated::simulated;
  std::string fails;  // 'x' at the number of an exchange that fails; numbered in the order in which they finish
  std::size_t started = 0, finished = 0;
  std::function<void(bool starts)> watch = [](bool) {};  // called when an exchange starts, and when one finishes

 private:
  std::size_t do_start(std::uint32_t axes, std::span<const gshard::exchange_part> parts, const gshard::exchange_bounds& all,
                       bool at_once) override {
    ++started;
    watch(true);
    return simulated::do_start(axes, parts, all, at_once);
  }
  void do_finish(std::size_t number) override {
    watch(false);
    simulated::do_finish(number);
    const std::size_t now = finished++;
    if (now < fails.size() && fails[now] == 'x') throw gshard::error("exchange " + std::to_string(now) + " failed");
  }
};
