// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "trainer.hpp"

#include "model.hpp"

#include <gshard/gshard.hpp>

#include <memory>
#include <span>
#include <vector>

namespace translate {

struct trainer::programs {
  std::vector<std::unique_ptr<gs::executable<training_program>>> by_bucket;
};

trainer::trainer(const gs::any_cluster& on, const settings& s, const std::vector<bucket>& buckets, std::int64_t vocabulary,
                 gs::parameter_store store)
    : programs_(std::make_unique<programs>()), store_(store), rate_{s.peak_rate, s.warmup}, seed_(s.seed) {
  for (const bucket& b : buckets)
    programs_->by_bucket.push_back(std::make_unique<gs::executable<training_program>>(on, s.dims(b, vocabulary), store));
}
trainer::~trainer() = default;

step_report trainer::step(const batch& b) {
  gs::executable<training_program>& program = *programs_->by_bucket[b.bucket];
  program.seed = seed_;
  const auto rate = float(rate_(store_.steps()));
  const auto [loss, tokens, balance, load, refused] = program(b.source, b.target_in, b.target_out, std::span(&rate, 1));
  return {loss.item(), balance.item(), tokens.item(), gs::to_global(load), refused.item()};
}

trainer::traffic trainer::communication(gs::op_ref kind) const {
  traffic t;
  for (const auto& p : programs_->by_bucket) {
    const gs::executor& e = p->executor();
    const std::int64_t per_step = e.plan().count(kind);
    t.calls += e.received(kind).calls;
    t.received += e.received(kind).bytes;
    if (per_step > 0) t.planned += e.plan().bytes_received(kind, e.sizes()) * (e.received(kind).calls / per_step);
  }
  return t;
}

const gs::executor& trainer::executor(std::size_t bucket) const { return programs_->by_bucket[bucket]->executor(); }

}  // namespace translate
