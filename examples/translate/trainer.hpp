// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "data/batches.hpp"
#include "settings.hpp"

#include <gshard/exec/program/executor.hpp>
#include <gshard/train/schedule.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

namespace translate {

/// The results of one training step.
struct step_report {
  double loss = 0, balance_loss = 0;
  double tokens = 0;          // target tokens without padding
  std::vector<float> load;    // tokens per expert
  double refused = 0;         // choices of experts that were full

  /// The busiest expert's load divided by an equal share: 1 is perfect balance.
  double imbalance() const {
    const double total = std::accumulate(load.begin(), load.end(), 0.0);
    return total > 0 ? double(*std::max_element(load.begin(), load.end())) * double(load.size()) / total : 1;
  }
  double refused_share() const {
    const double kept = std::accumulate(load.begin(), load.end(), 0.0);
    return kept + refused > 0 ? refused / (kept + refused) : 0;
  }
};

/// Runs the training program on one set of parameters. The program is bound once for every shape of batch.
class trainer {
 public:
  trainer(const gs::any_cluster& on, const settings& s, const std::vector<bucket>& buckets, std::int64_t vocabulary,
          gs::parameter_store store);
  ~trainer();
  trainer(const trainer&) = delete;
  trainer& operator=(const trainer&) = delete;

  step_report step(const batch& b);
  std::uint32_t steps() const { return store_.steps(); }

  /// One kind of collective in the whole training: its number of calls, and the planned and received bytes per device.
  struct traffic {
    std::int64_t calls = 0, planned = 0, received = 0;
  };
  traffic communication(gs::op_ref kind) const;

  const gs::executor& executor(std::size_t bucket) const;

 private:
  struct programs;
  std::unique_ptr<programs> programs_;
  gs::parameter_store store_;
  gs::inverse_square_root rate_;
  std::uint64_t seed_;
};

}  // namespace translate
