// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Binds a plan to a cluster, memory and kernels.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/schedule/async_schedule.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/bind/action.hpp>
#include <gshard/exec/bind/kernel_table.hpp>
#include <gshard/exec/bind/lent_value.hpp>
#include <gshard/exec/bind/step_errors.hpp>
#include <gshard/exec/collective/collective_room.hpp>
#include <gshard/exec/collective/make_collective.hpp>
#include <gshard/exec/collective/step_moves.hpp>
#include <gshard/exec/memory/arena.hpp>
#include <gshard/exec/memory/buffer_reuse.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/program/bound_program.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#if !GSHARD_HAS_BODIES
#error "gshard: with gshard::kernels, only its own source includes this header"
#endif

namespace gshard { inline namespace v0 { namespace detail {

/// Binds a program: extents, then memory, then parameters and steps. Collective over the cluster, so it goes on after an error of this
/// process until the processes agree. @see executor
class binder {
 public:
  /// `problem`: an error of the caller on this process, or empty. `operands`: @see executor. Throws on every process if one has a problem,
  /// or if they differ. The store is then unchanged.
  binder(bound_program& into, const dims& given, process_error problem, const collective_call& operands)
      : p_(into), problem_(std::move(problem)) {
    const thread_rule::use in_use = on().enter();
    note([&] { bind_extents(given); });
    if (on().processes() > 1) note([&] { p_.hash = hash_of(facts_of(p_)); });
    if (on().shares_memory()) bind_shared(operands);
    else bind_own(operands);
    p_.store.set_number(p_.number);
  }

 private:
  bound_program& p_;
  list<async_interval> schedule_;
  std::vector<std::int32_t> lent_roots_;  // values in memory of the caller
  std::optional<buffer_reuse> sharing_;
  memory_map memory_;              // offsets in the arena
  std::vector<std::string> made_;  // parameters that the store did not have
  process_error problem_;          // the first error on this process

  backend& on() const { return p_.on.backend(); }
  std::vector<bound_value>& values() { return p_.bound.values; }
  bound_value& value(std::int32_t v) { return values()[std::size_t(v)]; }
  /// Calls f(), unless this process has an error.
  template <class F>
  void note(const F& f) {
    if (problem_.empty()) problem_ = problem_of(f);
  }
  /// agree(problem) throws if a process has a problem. The parameters that were made are then forgotten.
  template <class F>
  void end_with(const F& agree) {
    note([&] { bind_memory(); });
    try {
      agree();
    } catch (...) {
      for (const std::string& name : made_) p_.store.forget(name);
      throw;
    }
  }
  void bind_own(const collective_call& operands) {
    for (std::size_t i = 0; i < p_.on.devices().size(); ++i) note([&] { p_.arena.emplace_back(memory_.size); });
    end_with([&] { agree_on_program(p_, operands, problem_); });
  }
  /// Allocations of shared memory are collective: the processes must agree on the plan first.
  void bind_shared(const collective_call& operands) {
    agree_on_program(p_, operands, problem_);
    note([&] { p_.arena.emplace_back(on().share(memory_.size), memory_.size); });
    if (problem_.empty()) place_values();
    find_everywhere();
    end_with([&] { on().agree({}, problem_); });
  }

  void bind_extents(const dims& given) {
    if (!p_.store.cluster().same_as(p_.on)) throw error("program: its parameter store belongs to another cluster");
    p_.bound.bind(given);
    schedule_ = on().overlaps() ? async_schedule(p_.plan, p_.bound.sizes) : in_turn(p_.plan);
    lend();
    sharing_.emplace(p_.bound, schedule_, lent_roots_);
    std::vector<std::int64_t> bytes;
    for (const bound_value& v : values()) bytes.push_back(v.most_bytes());
    memory_ = lay_out(sharing_->lifetimes(), p_.plan.steps.size(), bytes);
  }
  /// Puts values into the caller's memory. An output in the storage of a parameter, an input or another output is copied there instead.
  void lend() {
    for (const lent_value& l : p_.lent) {
      if (l.shards.empty()) continue;
      const std::int32_t root = p_.plan.lifetimes[std::size_t(l.value)].root;
      const bool is_input = std::any_of(p_.plan.inputs.begin(), p_.plan.inputs.end(), [root](const port& p) { return p.value == root; });
      if (p_.plan.lifetimes[std::size_t(root)].persistent || (l.is_output && is_input) ||
          std::find(lent_roots_.begin(), lent_roots_.end(), root) != lent_roots_.end()) {
        p_.lent_copies.push_back(&l);
      } else {
        lent_roots_.push_back(root);
        value(root).data = l.shards;
      }
    }
  }
  void place_values() {
    const std::span<const lifetime> life = sharing_->lifetimes();
    for (std::size_t v = 0; v < values().size(); ++v)
      if (const std::int64_t offset = memory_.offset[std::size_t(life[v].root)]; offset >= 0)
        for (std::size_t i = 0; i < p_.arena.size(); ++i) values()[v].data[i] = p_.arena[i].data() + offset;
  }
  /// Finds the addresses of all devices' shards. Collective; a process with a problem passes null addresses.
  void find_everywhere() {
    std::vector<const std::byte*> mine;
    for (const bound_value& v : values()) mine.push_back(v.data[0]);
    const std::vector<const std::byte*> all = on().find_shared(mine);
    for (std::size_t v = 0; v < values().size(); ++v) {
      std::vector<const std::byte*>& everywhere = values()[v].everywhere;
      for (std::size_t k = v; k < all.size(); k += values().size()) everywhere.push_back(all[k]);
      if (std::count(everywhere.begin(), everywhere.end(), nullptr) > 0) everywhere.clear();
    }
  }
  void bind_memory() {
    if (!on().shares_memory()) place_values();
    p_.loops = running_loops(p_.plan);
    bind_parameters();
    bind_steps();
    p_.agreements = agreement_points(p_.plan, [&](std::size_t i) { return !p_.early.starting(i).empty(); });
  }
  void bind_parameters() {
    for (const parameter& p : p_.plan.parameters) {
      if (p_.store.find(p.name.view()) == nullptr) made_.emplace_back(p.name.view());
      value(p.value).data = p_.store.demand(p, value(p.value), p_.bound.sizes).value.data;
    }
    const std::span<const lifetime> life = sharing_->lifetimes();
    for (std::size_t v = 0; v < values().size(); ++v)
      if (life[v].root != std::int32_t(v)) values()[v].data = value(life[v].root).data;
    for (const parameter& p : p_.plan.parameters)
      if (p.updated >= 0 && value(p.updated).data != value(p.value).data) p_.copies.emplace_back(p.updated, p.value);
  }

  void bind_steps() {
    const auto room = std::make_shared<collective_room>();
    std::function<bool()> advance_early;
    if (on().advances_in_calls()) advance_early = [&p = p_] { return p.early.advance(p.on.backend()); };
    room->advance_others = advance_early;
    p_.early.resize(p_.plan.steps.size());
    p_.received.resize(p_.plan.steps.size());
    p_.steps.resize(p_.plan.steps.size());
    for (std::size_t i = 0; i < p_.steps.size(); ++i) {
      const node& step = p_.plan.steps[i];
      if (traits(step.kind).control || stays_where_it_is(step)) continue;
      if (traits(step.kind).reshards) bind_moves(i, room);
      else bind_kernel(i);
    }
    p_.early.while_waiting(advance_early);
    for (std::size_t d = 0; d < p_.on.devices().size(); ++d)
      for (std::size_t i = 0; i < p_.steps.size(); i = sharing_->group_end(i, d))
        if (sharing_->group_end(i, d) > i + 1) join(i, d);
  }
  bool stays_where_it_is(const node& step) {
    if (!sharing_->stays(step)) return false;
    for (int o = 0; o < step.outputs; ++o)
      if (value(step.input(o)).data != value(step.output(o)).data) return false;
    return true;
  }
  const collective_table& collectives() const {
#if GSHARD_HEADER_ONLY
    static constexpr collective_table none{};
    return p_.kernels.collectives ? *p_.kernels.collectives : none;
#else
    return collectives_for<all_move_kinds>;
#endif
  }
  void bind_moves(std::size_t i, const std::shared_ptr<collective_room>& room) {
    const step_moves moves(p_.plan.steps[i], p_.bound);
    p_.received.bind(i, p_.plan.steps[i], moves);
    if (sharing_->is_early(i)) p_.early.add(i, schedule_[i], collectives(), moves);
    else p_.steps[i].moves = make_collective(collectives(), moves, room);
  }
  void bind_kernel(std::size_t i) {
    const node& step = p_.plan.steps[i];
    const bool loops = is_looped_product(step.kind);
    node here = step;
    if (loops) here.attr.axes = p_.bound.axes.mask(step.attr.axes);
    for (std::size_t d = 0; d < (loops ? 1 : p_.on.devices().size()); ++d)
      with_step(p_.bound, step, [&] {
        if (action a = binder_of(p_.kernels, p_.plan, step)(here, p_.bound, d)) p_.steps[i].actions.push_back(std::move(a));
      });
  }
  /// Fuses the actions of a device's group into the action of its first step.
  void join(std::size_t begin, std::size_t device) {
    std::vector<action> all;
    for (std::size_t i = begin; i < sharing_->group_end(begin, device); ++i)
      if (std::vector<action>& actions = p_.steps[i].actions; !actions.empty()) all.push_back(std::exchange(actions[device], {}));
    p_.steps[begin].actions[device] = together(std::move(all), sharing_->pieces(begin, device));
  }
};

}}}  // namespace gshard::v0::detail
