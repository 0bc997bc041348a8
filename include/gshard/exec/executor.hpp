// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/reduce.hpp>
#include <gshard/exec/arena.hpp>
#include <gshard/exec/collective_step.hpp>
#include <gshard/exec/local_step.hpp>
#include <gshard/exec/parameters.hpp>
#include <gshard/exec/shards.hpp>
#include <gshard/pass/plan.hpp>
#include <gshard/tensor/cluster.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// What one kind of communication did on this process's first device.
struct sent_count {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
};

/// Runs a plan, step by step, on every device that this process holds. Extents are bound, memory is laid out and every step is
/// bound to its kernel when it is made; a run allocates nothing but what backends need. Not copyable; the plan must outlive it.
///
/// Throws `gshard::error` when it is made: a letter without an extent, a mesh axis that the cluster lacks, a store on another cluster, a
/// parameter that another program has otherwise, processes whose plans or extents differ (all of them throw).
class executor {
 public:
  executor(const plan_view& plan, const any_cluster& on, const dims& bound, parameter_store store)
      : plan_(plan), on_(on), store_(std::move(store)), axes_(plan.mesh, on), sums_(std::make_shared<reducer>(small_sum_bytes)) {
    if (!store_.on().same_as(on_)) throw error("program: its parameter store lies on another cluster");
    std::array<int, max_axes> counts{};
    for (int a = 0; a < plan.mesh.rank(); ++a) {
      const int there = on.mesh().find(plan.mesh.name(a));
      counts[std::size_t(a)] = on.extent(there);
    }
    sizes_ = plan.bind(bound, std::span(counts.data(), std::size_t(plan.mesh.rank())));
    on_.on().agree(fingerprint(), "the plan, the extents or the seed of a program");
    check_extents();
    bind_values();
    bind_steps();
  }
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  const plan_view& plan() const { return plan_; }
  const any_cluster& on() const { return on_; }
  const parameter_store& store() const { return store_; }
  /// Extents of the plan's dims and mesh axes.
  const extents& sizes() const { return sizes_; }
  /// Bytes of memory per device besides parameters.
  std::int64_t arena_bytes() const { return arena_.empty() ? 0 : arena_.front().size(); }

  const detail::bound_value& value(std::int32_t v) const { return values_[std::size_t(v)]; }
  const detail::bound_value& input(std::size_t i) const { return value(plan_.inputs[i].value); }
  const detail::bound_value& output(std::size_t i) const { return value(plan_.outputs[i].value); }

  /// Runs all steps. Inputs must have been written to `input(i)` since the last run.
  void run(const run_context& context) {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      if (hook) hook(plan_.steps[i], true);
      if (traits(plan_.steps[i].kind).collective) run_collective(i, context);
      else
        for (const detail::action& a : actions_[i]) a(context);
      if (hook) hook(plan_.steps[i], false);
    }
    for (const auto& [from, to] : copies_) {
      const detail::bound_value &source = value(from), &target = value(to);
      for (std::size_t d = 0; d < source.data.size(); ++d)
        if (source.bytes(d) > 0) std::memcpy(target.data[d], source.data[d], std::size_t(source.bytes(d)));
    }
  }

  /// What was sent since this executor was made, by kind of operation.
  const sent_count& sent(op kind) const { return sent_[std::size_t(kind)]; }

  /// Called before (true) and after (false) every step: for timelines and checks.
  std::function<void(const node&, bool)> hook;

 private:
  plan_view plan_;
  any_cluster on_;
  parameter_store store_;
  detail::axis_map axes_;
  std::shared_ptr<reducer> sums_;
  extents sizes_;
  std::vector<detail::bound_value> values_;
  std::vector<buffer> arena_;                        // per held device
  std::vector<std::vector<detail::action>> actions_;  // per step: one per held device, or one for all
  std::vector<std::pair<std::int32_t, std::int32_t>> copies_;  // updated parameters that were not written in place
  std::array<sent_count, std::size_t(op::count_)> sent_{};

  void check_extents() const {
    for (std::size_t d = 0; d < plan_.dims.size(); ++d)
      if (sizes_.dim(int(d)) < 0)
        throw error(std::string("program: no extent is given for dim '") + plan_.dims[d].letter + "'");
  }
  // FNV-1a over what must be equal on all processes: steps, layouts, extents and the seed of the parameters.
  std::uint64_t fingerprint() const {
    std::uint64_t h = 14695981039346656037ull;
    const auto mix = [&](std::uint64_t x) { h = (h ^ x) * 1099511628211ull; };
    for (const node& n : plan_.steps) {
      mix(std::uint64_t(n.kind));
      for (int k = 0; k < n.inputs; ++k) mix(std::uint64_t(n.input(k)));
      for (int k = 0; k < n.outputs; ++k) mix(std::uint64_t(n.output(k)));
      for (std::int32_t k : n.attr.integer) mix(std::uint64_t(std::uint32_t(k)));
      for (double x : n.attr.number) mix(std::bit_cast<std::uint64_t>(x));
    }
    for (const gshard::value& v : plan_.values)
      for (int d = 0; d < v.rank(); ++d) mix(v.layout[d].bits);
    for (std::int64_t e : sizes_.dims) mix(std::uint64_t(e));
    for (int a : sizes_.axes) mix(std::uint64_t(a));
    mix(store_.seed());
    return h;
  }

  void bind_values() {
    const std::size_t devices = on_.devices().size();
    std::vector<std::int64_t> bytes;
    for (const gshard::value& v : plan_.values) {
      detail::bound_value b;
      b.type = v.type;
      b.layout = axes_(v.layout);
      for (int d = 0; d < v.rank(); ++d) b.extents.push_back(sizes_.dim(v.dims[d]));
      for (int device : on_.devices()) b.places.push_back(place(b.extents, b.layout, on_.on().extents(), device));
      b.data.assign(devices, nullptr);
      std::int64_t largest = 0;
      for (std::size_t i = 0; i < devices; ++i) largest = std::max(largest, b.bytes(i));
      bytes.push_back(largest);
      values_.push_back(std::move(b));
    }
    const detail::memory_map memory = detail::lay_out(plan_, bytes);
    for (std::size_t i = 0; i < devices; ++i) arena_.emplace_back(memory.size);
    for (const parameter& p : plan_.parameters)
      values_[std::size_t(p.value)].data = store_.demand(p, values_[std::size_t(p.value)], sizes_).value.data;
    for (std::size_t v = 0; v < values_.size(); ++v)
      if (memory.offset[v] >= 0)
        for (std::size_t i = 0; i < devices; ++i) values_[v].data[i] = arena_[i].data() + memory.offset[v];
    for (std::size_t v = 0; v < values_.size(); ++v)
      if (plan_.lifetimes[v].root != std::int32_t(v)) values_[v].data = value(plan_.lifetimes[v].root).data;
    for (const parameter& p : plan_.parameters)
      if (p.updated >= 0 && value(p.updated).data != value(p.value).data) copies_.emplace_back(p.updated, p.value);
  }

  void bind_steps() {
    for (const node& step : plan_.steps) {
      std::vector<detail::action>& actions = actions_.emplace_back();
      if (traits(step.kind).collective || step.kind == op::slice) {
        auto c = std::make_shared<detail::collective_step>(step.kind, on_, axes_.mask(std::uint32_t(step.attr.integer[0])), value(step.input(0)),
                                                           value(step.output(0)), sums_);
        actions.push_back([c](const run_context&) { (*c)(); });
        continue;
      }
      const bool wide = element_type(step) == dtype::f64;
      for (std::size_t i = 0; i < on_.devices().size(); ++i) {
        detail::action a = wide ? detail::local_step<double>(step, values_, sizes_, i).bind()
                                : detail::local_step<float>(step, values_, sizes_, i).bind();
        if (a) actions.push_back(std::move(a));
      }
    }
  }
  /// The floating-point type of a step: that of its first operand or result that is not an integer.
  dtype element_type(const node& step) const {
    for (int i = 0; i < step.inputs; ++i)
      if (plan_.at(step.input(i)).type != dtype::i32) return plan_.at(step.input(i)).type;
    for (int o = 0; o < step.outputs; ++o)
      if (plan_.at(step.output(o)).type != dtype::i32) return plan_.at(step.output(o)).type;
    return dtype::f32;
  }

  void run_collective(std::size_t i, const run_context& context) {
    const auto total = [&] {
      const traffic& t = on_.on().sent().front();
      return t.exchange_bytes + t.gather_bytes;
    };
    const std::int64_t before = total();
    for (const detail::action& a : actions_[i]) a(context);
    sent_count& count = sent_[std::size_t(plan_.steps[i].kind)];
    ++count.calls;
    count.bytes += total() - before;
  }
};

}}  // namespace gshard::v0
