// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The backend of one device: nothing is sent.

#include <gshard/exec/backend/backend.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gshard { inline namespace v0 {

/// One device in this process: a mesh of `n_axes` axes of extent 1. Communicates nothing.
class loopback final : public backend {
 public:
  explicit loopback(int n_axes = 1) : backend(std::vector<int>(std::size_t(n_axes), 1), {0}) {}

 private:
  // Never called: every group has one member, and the base class copies its block.
  std::size_t do_start(std::uint32_t, std::span<const exchange_part>, const exchange_bounds&, bool) override { return 0; }
  void do_finish(std::size_t) override {}
  void do_all_gather(std::uint32_t, std::span<const gather_part>) override {}
};

}}  // namespace gshard::v0
