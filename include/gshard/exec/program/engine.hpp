// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The implementation of `executor`: binds a plan to memory and kernels, and runs its steps.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/hash.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/schedule/async_schedule.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/bind/action.hpp>
#include <gshard/exec/bind/bound_plan.hpp>
#include <gshard/exec/bind/finite_checks.hpp>
#include <gshard/exec/bind/kernel_table.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/bind/step_errors.hpp>
#include <gshard/exec/collective/async_collectives.hpp>
#include <gshard/exec/collective/collective.hpp>
#include <gshard/exec/collective/make_collective.hpp>
#include <gshard/exec/collective/overlap_choice.hpp>
#include <gshard/exec/collective/received.hpp>
#include <gshard/exec/collective/run_traffic.hpp>
#include <gshard/exec/collective/step_moves.hpp>
#include <gshard/exec/kernel/gemm/bf16_unit.hpp>
#include <gshard/exec/kernel/interludes.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/memory/arena.hpp>
#include <gshard/exec/memory/buffer_reuse.hpp>
#include <gshard/exec/program/agreement_points.hpp>
#include <gshard/exec/program/check_replicas.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/exec/program/plan_facts.hpp>
#include <gshard/exec/program/running_loops.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if !GSHARD_HAS_BODIES
#error "gshard: with gshard::kernels, only its own source includes this header"
#endif

namespace gshard { inline namespace v0 {

namespace detail {

/// The implementation of an executor. Its public functions are documented in `executor`.
class engine {
 public:
  engine(executor& owner, const plan_view& plan, const kernel_table& kernels, const any_cluster& on, const dims& given,
         parameter_store store, std::string problem, std::string_view operation, std::vector<lent_value> lent,
         const collective_call& operands)
      : owner_(owner),
        plan_(plan),
        on_(on),
        kernels_(kernels.at(on.backend().level())),
        store_(std::move(store)),
        bound_(plan_, on_),
        lent_(std::move(lent)),
        problem_(std::move(problem)),
        operation_(operation),
        store_number_(store_.number()) {
    const thread_rule::use in_use = on_.backend().enter();
    std::vector<std::string> made;
    if (problem_.empty()) note([&] { bind(given); });
    if (problem_.empty() && on_.backend().processes() > 1) note([&] { hash_ = hash_of(facts()); });
    const bool shares = on_.backend().shares_memory();
    if (shares) {  // share() is collective: the processes must agree on the plan first
      begin_making(operands);
      note([&] { arena_.emplace_back(on_.backend().share(memory_.size), memory_.size); });
    } else {
      for (std::size_t i = 0; i < on_.devices().size() && problem_.empty(); ++i) note([&] { arena_.emplace_back(memory_.size); });
    }
    if (problem_.empty()) place_values();
    if (shares) find_everywhere();
    if (problem_.empty()) note([&] { bind_memory(made); });
    try {
      if (shares) agree();
      else begin_making(operands);
    } catch (...) {
      for (const std::string& name : made) store_.forget(name);
      throw;
    }
    store_.set_number(number_);
  }
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  const plan_view& plan() const { return plan_; }
  const any_cluster& cluster() const { return on_; }
  parameter_store& store() { return store_; }
  const extents& sizes() const { return bound_.sizes; }
  std::int64_t arena_bytes() const { return arena_.empty() ? 0 : arena_.front().size(); }

  const bound_value& value(std::int32_t v) const { return bound_.value(v); }

  void run(const run_context& context, std::string problem, const collective_call& inputs) {
    const kernel::use_threads sharing(owner_.threads);
    problem_ = std::move(problem);
    ++runs_;
    traffic_.begin(on_.backend());
    loops_.begin_run();
    run_context here = context;
    here.checks = &finite_;
    finite_.begin(context.step);
    skipped_ = false;
    bool hooks = false;  // true if any process has a hook
    const async_collectives::guard under_way(early_);
    const bool compares = !copied_inputs_.empty(), moves = overlaps();
    overlap_.begin();
    if (compares) {  // before steps overwrite inputs
      hooks = begin_run(context, inputs);
      compare_copies(on_, copied_inputs_);
      copied_inputs_.clear();
    }
    const auto again = [&](const node& test) { return continues(test); };
    for (std::size_t i = 0; i < actions_.size(); i = loops_.after(i, plan_.steps[i], here.seed, again)) {
      if (wait_watch* const waits = on_.backend().waits()) {
        const node& step = plan_.steps[i];
        waits->at_step(std::int64_t(i), name(step.kind).data(), step.place.file, step.place.line);
      }
      if (i == agreements_.begin) {
        if (compares) agree();
        else hooks = begin_run(context, inputs);
        overlap_.begin();
      }
      if (moves) move_on(i);
      if (i == agreements_.first_write && i != agreements_.begin) agree();
      finite_.place = i;
      skipped_ = skipped_ || (problem_.empty() && skips_updates(plan_.steps[i], bound_));
      if (early_.has(i)) {
        if (overlap_.overlaps()) continue;
        start(early_[i]);
        finish(early_[i]);
        continue;
      }
      hooked(i, [&] {
        if (traits(plan_.steps[i].kind).collective) {
          received_.call(plan_.steps[i]);
          step_bytes_.assign(on_.devices().size(), 0);
          note([&] { counted(i, step_bytes_, [&] { advancing(i, [&] { act(i, here); }); }); });
        } else if (problem_.empty()) {
          note([&] { compute(i, here); });
        }
      });
    }
    if (moves) move_on(actions_.size());
    traffic_.end(on_.backend());
    if (wait_watch* const waits = on_.backend().waits()) waits->at_step(-1, nullptr, nullptr, 0);
    if (problem_.empty()) check_losses(bound_, finite_);
    if (agreements_.begin == actions_.size() && compares) agree();
    else if (agreements_.begin == actions_.size()) begin_run(context, inputs);
    else if (overlap_.measures()) choose_overlap();
    else if (agreements_.at_end(hooks || !copies_.empty())) agree();
    else if (!problem_.empty()) fail_alone();
    for (const auto& [from, to] : copies_) value(from).copy_to(value(to).data);
    for (const lent_value* const l : lent_copies_) value(l->value).copy_to(l->shards);
  }

  void use_again(const collective_call& operands) {
    problem_.clear();
    begin_making(operands);
  }

  void agreed_by_caller() { agreements_.without_first(plan_); }
  void compare_inputs(std::uint64_t which) { if (agreements_.has_first()) copied_inputs_ = inputs_with_copies(bound_, which); }

  const received_count& received(op_ref kind) const { return received_[kind]; }
  bool skipped() const { return skipped_; }
  bool overlaps() const { return overlap_.overlaps() && !early_.empty(); }
  bool measures_overlap() const { return overlap_.measures(); }

  std::int64_t runs() const { return runs_; }
  std::span<const std::int64_t> received_in_run() const { return traffic_.bytes(); }
  std::span<const std::int64_t> between_nodes_in_run() const { return traffic_.between_nodes(); }

 private:
  executor& owner_;  // has the number of threads and the hook
  plan_view plan_;
  any_cluster on_;
  const kernel_table& kernels_;
  parameter_store store_;
  bound_plan bound_;
  std::vector<lent_value> lent_;
  list<async_interval> schedule_;                             // this and `sharing_` are used only until steps are bound
  std::optional<buffer_reuse> sharing_;
  memory_map memory_;                        // offsets in the arena
  std::vector<buffer> arena_;                        // per held device
  std::vector<std::vector<action>> actions_;  // per step: one per held device, or one for all
  async_collectives early_;
  overlap_choice overlap_;
  std::vector<std::pair<std::int32_t, std::int32_t>> copies_;  // updated parameters that were not written in place
  std::vector<std::int32_t> lent_roots_;                       // values in memory of the caller
  std::vector<const lent_value*> lent_copies_;                 // outputs that are copied to memory of the caller
  std::vector<named_value> copied_inputs_;                 // the inputs with copies that the next run compares
  received_by_kind received_;
  run_traffic traffic_;                     // of the current run
  std::vector<std::int64_t> step_bytes_;  // received in a step, per held device
  std::int64_t runs_ = 0;
  running_loops loops_;
  agreement_points agreements_;
  bool skipped_ = false;  // an optimizer skipped its updates in the last run
  finite_checks finite_;
  std::string problem_;          // the first error on this process
  std::string operation_;
  std::uint64_t hash_ = 0;          // of the facts
  std::uint64_t number_ = 0;        // of the cluster's call that made this executor
  std::uint64_t store_number_ = 0;  // the store's number before construction

  template <class F>
  void note(const F& f) {
    std::string problem = problem_of(f);
    if (!problem.empty() && problem_.empty()) problem_ = std::move(problem);
  }
  /// Throws if any process has a problem.
  void agree() { on_.backend().agree({}, problem()); }
  /// The first error on this process, or the findings of its checks.
  std::string problem() const { return problem_.empty() ? finite_.problem() : problem_; }

  /// Ends a measured run. After the last one, the processes take the choice of the leader.
  void choose_overlap() {
    agree();
    overlap_.end();
    if (overlap_.is_ready()) overlap_.choose(!on_.backend().agree({}, {}, on_.backend().leader() && !overlap_.pays()));
  }

  /// Throws an error of this process after the last agreement of a run. The next call on the cluster reports it to the others.
  void fail_alone() {
    on_.backend().tell_next("the run before this call failed after its last agreement: " + problem_);
    throw error(problem_);
  }

  /// Throws unless all processes bind the same plan.
  void begin_making(const collective_call& operands) {
    const auto these = [&] { return joined(facts(), operands.facts()); };
    on_.backend().begin({hash_ ^ operands.hash(), these}, problem_);
    number_ = on_.backend().calls();
  }
  std::vector<fact> facts() const {
    const plan_facts of_plan(bound_);
    const bool eager = !operation_.empty();
    std::vector<fact> all{{"the call", eager ? operation_ + " on tensors" : "making a program", eager ? "" : of_plan.place()},
                          {"the seed of a program's parameters", std::to_string(store_.seed())},
                          {"the store of a program's parameters", store_text(store_number_)},
                          {"the kernels of a program", std::string(kernels_.options)},
                          {"the inputs and outputs in the caller's memory", names_of(lent_)}};
    if (std::any_of(plan_.steps.begin(), plan_.steps.end(), [](const node& n) { return n.attr.rounds_to_bf16; }))
      all.push_back({"the unit of its bf16 products", std::string(name(bf16_unit_in_use()))});
    of_plan.add_to(all);
    return all;
  }
  fact name_of_run() const {
    return {"the call", "a run of the program made in call " + std::to_string(number_), plan_facts(bound_).place()};
  }
  /// Throws unless all processes run the same program, step and inputs. Returns true if any process has a hook.
  bool begin_run(const run_context& context, const collective_call& inputs) {
    if (on_.backend().processes() == 1) return on_.backend().begin({}, problem(), bool(owner_.hook));
    const auto these = [&] {
      const fact seed{"the seed of a run", std::to_string(context.seed)}, step{"the step of a run", std::to_string(context.step)};
      return joined({name_of_run(), seed, step}, inputs.facts());
    };
    fnv1a<std::uint64_t> h;
    h.add("run").add(number_).add(context.seed).add(std::uint64_t(context.step)).add(inputs.hash());
    return on_.backend().begin({h.value(), these}, problem(), bool(owner_.hook));
  }

  /// True if a loop continues: its condition is not 0. On a process with an error the condition is invalid, and replicas may differ by
  /// rounding. Therefore the processes compare their answers. All throw if one has a problem or a different answer.
  bool continues(const node& test) {
    const bound_value& condition = value(test.input(0));
    const auto is_true = [&](auto i) { return with_element(condition.type, [&]<class T>(T*) { return *condition.as<T>(i) != T(0); }); };
    const bool answer = is_true(0u);
    note([&] {
      with_element(condition.type, [&]<class T>(T*) {
        if (const T number = *condition.as<T>(0); number != number) throw error("while_loop: the condition is not a number");
      });
      for (std::size_t d = 1; d < condition.data.size(); ++d)
        if (is_true(d) != answer) throw error("while_loop: devices hold different copies of the condition");
    });
    const auto these = [&] {
      const std::string what = "whether a loop continues after " + std::to_string(loops_.iterations()) + " iterations";
      return std::vector<fact>{name_of_run(), {what, answer ? "yes" : "no", line_text(test.place)}};
    };
    on_.backend().agree({std::uint64_t(answer ? 1 : 2), these}, problem());
    return answer;
  }

  void bind(const dims& given) {
    if (!store_.cluster().same_as(on_)) throw error("program: its parameter store belongs to another cluster");
    bound_.bind(given);
    schedule_ = on_.backend().overlaps() ? async_schedule(plan_, sizes()) : in_turn(plan_);
    lend();
    sharing_.emplace(bound_, schedule_, lent_roots_);
    memory_ = map_memory();
  }
  void bind_memory(std::vector<std::string>& made) {
    loops_ = running_loops(plan_);
    bind_parameters(made);
    bind_steps(*sharing_);
    sharing_.reset();
    schedule_ = {};
    if (on_.backend().measures_overlap() && !early_.empty()) overlap_.measure();
    agreements_ = agreement_points(plan_, [&](std::size_t i) { return !early_.starting(i).empty(); });
  }
  memory_map map_memory() const {
    std::vector<std::int64_t> bytes;
    for (const bound_value& v : bound_.values) bytes.push_back(v.most_bytes());
    return lay_out(sharing_->lifetimes(), plan_.steps.size(), bytes);
  }
  /// Puts values into the caller's memory. An output in the storage of a parameter, an input or another output is copied there instead.
  void lend() {
    for (const lent_value& l : lent_) {
      if (l.shards.empty()) continue;
      const std::int32_t root = plan_.lifetimes[std::size_t(l.value)].root;
      const bool is_input = std::any_of(plan_.inputs.begin(), plan_.inputs.end(), [root](const port& p) { return p.value == root; });
      if (plan_.lifetimes[std::size_t(root)].persistent || (l.is_output && is_input) ||
          std::find(lent_roots_.begin(), lent_roots_.end(), root) != lent_roots_.end()) {
        lent_copies_.push_back(&l);
      } else {
        lent_roots_.push_back(root);
        bound_.values[std::size_t(root)].data = l.shards;
      }
    }
  }
  void place_values() {
    const std::span<const lifetime> life = sharing_->lifetimes();
    for (std::size_t v = 0; v < bound_.values.size(); ++v)
      if (const std::int64_t offset = memory_.offset[std::size_t(life[v].root)]; offset >= 0)
        for (std::size_t i = 0; i < arena_.size(); ++i) bound_.values[v].data[i] = arena_[i].data() + offset;
  }
  /// Finds the addresses of all devices' shards. Collective; a process with a problem passes null addresses.
  void find_everywhere() {
    std::vector<const std::byte*> mine;
    for (const bound_value& v : bound_.values) mine.push_back(v.data[0]);
    const std::vector<const std::byte*> all = on_.backend().find_shared(mine);
    for (std::size_t v = 0; v < bound_.values.size(); ++v) {
      std::vector<const std::byte*>& everywhere = bound_.values[v].everywhere;
      for (std::size_t k = v; k < all.size(); k += bound_.values.size()) everywhere.push_back(all[k]);
      if (std::count(everywhere.begin(), everywhere.end(), nullptr) > 0) everywhere.clear();
    }
  }
  void bind_parameters(std::vector<std::string>& made) {
    for (const parameter& p : plan_.parameters) {
      if (store_.find(p.name.view()) == nullptr) made.emplace_back(p.name.view());
      bound_.values[std::size_t(p.value)].data = store_.demand(p, bound_.values[std::size_t(p.value)], sizes()).value.data;
    }
    const std::span<const lifetime> life = sharing_->lifetimes();
    for (std::size_t v = 0; v < bound_.values.size(); ++v)
      if (life[v].root != std::int32_t(v)) bound_.values[v].data = value(life[v].root).data;
    for (const parameter& p : plan_.parameters)
      if (p.updated >= 0 && value(p.updated).data != value(p.value).data) copies_.emplace_back(p.updated, p.value);
  }

  void bind_steps(const buffer_reuse& sharing) {
    const auto room = std::make_shared<collective_room>();
    std::function<bool()> advance_early = [this] { return early_.advance(on_.backend()); };
    if (!on_.backend().advances_in_calls()) advance_early = nullptr;
    room->advance_others = advance_early;
    early_.resize(plan_.steps.size());
    received_.resize(plan_.steps.size());
    for (const node& step : plan_.steps) {
      std::vector<action>& actions = actions_.emplace_back();
      if (traits(step.kind).control || stays_where_it_is(step, sharing)) continue;
      const bool loops = is_looped_product(step.kind);
      if (traits(step.kind).reshards) {
        const step_moves moves(step, bound_);
        const std::size_t i = actions_.size() - 1;
        received_.bind(i, step, moves);
        if (sharing.is_early(i)) early_.add(i, schedule_[i], moves);
        else actions.push_back(action_of(make_collective(moves, room)));
        continue;
      }
      node here = step;
      if (loops) here.attr.axes = bound_.axes.mask(step.attr.axes);
      for (std::size_t i = 0; i < (loops ? 1 : on_.devices().size()); ++i)
        with_step(bound_, step, [&] { if (action a = binder_of(kernels_, plan_, step)(here, bound_, i)) actions.push_back(std::move(a)); });
    }
    early_.while_waiting(advance_early);
    for (std::size_t d = 0; d < on_.devices().size(); ++d)
      for (std::size_t i = 0; i < actions_.size(); i = sharing.group_end(i, d))
        if (sharing.group_end(i, d) > i + 1) join(i, d, sharing);
  }
  bool stays_where_it_is(const node& step, const buffer_reuse& sharing) const {
    if (!sharing.stays(step)) return false;
    for (int o = 0; o < step.outputs; ++o)
      if (value(step.input(o)).data != value(step.output(o)).data) return false;
    return true;
  }
  /// Fuses the actions of a device's group into the action of its first step.
  void join(std::size_t begin, std::size_t device, const buffer_reuse& sharing) {
    std::vector<action> all;
    for (std::size_t i = begin; i < sharing.group_end(begin, device); ++i)
      if (!actions_[i].empty()) all.push_back(std::exchange(actions_[i][device], {}));
    actions_[begin][device] = together(std::move(all), sharing.pieces(begin, device));
  }

  static action action_of(std::shared_ptr<collective> step) {
    return [step = std::move(step)](const run_context&) {
      step->start();
      step->finish();
    };
  }

  /// Threads share the devices if there are enough of these; otherwise the kernels. User functions run on one device at a time.
  void act(std::size_t i, const run_context& context) {
    const std::vector<action>& of_devices = actions_[i];
    const auto run = [&](std::int64_t begin, std::int64_t end) {
      for (auto d = std::size_t(begin); d < std::size_t(end); ++d)
        if (of_devices[d]) of_devices[d](context);
    };
    const auto n = std::int64_t(of_devices.size());
    if (n < kernel::threads() || traits(plan_.steps[i].kind).user_code) run(0, n);
    else kernel::parallel_for(n, 1, run);
  }
  /// Finishes the asynchronous collectives that must be complete before step i, and starts those scheduled before it.
  void move_on(std::size_t i) {
    for (const async_collectives::step& s : early_.ending(i)) finish(s);
    for (const async_collectives::step& s : early_.starting(i)) start(s);
  }
  void start(const async_collectives::step& s) {
    received_.call(plan_.steps[s.index]);
    s.received->assign(on_.devices().size(), 0);
    note([&] { counted(s.index, *s.received, [&] { early_.start(s); }); });
  }
  void finish(const async_collectives::step& s) {
    hooked(s.index, [&] { note([&] { counted(s.index, *s.received, [&] { early_.finish(s); }); }); });
  }
  /// Runs a step that communicates nothing. Its error names the step.
  void compute(std::size_t i, const run_context& c) { with_step(bound_, plan_.steps[i], [&] { advancing(i, [&] { act(i, c); }); }); }
  /// Calls f(), which computes step i. Collectives in flight that advance in calls do so before f() and between its pieces.
  template <class F>
  void advancing(std::size_t i, const F& f) {
    const op_ref kind = plan_.steps[i].kind;
    const bool loops = is_looped_product(kind);
    if (!on_.backend().advances_in_calls() || (!loops && (traits(kind).collective || !early_.in_flight()))) return f();
    auto advance = [this] { early_.advance(on_.backend()); };
    if (!loops) advance();
    const kernel::use_interludes here(advance);
    f();
  }
  template <class F>
  void hooked(std::size_t i, const F& f) {
    if (owner_.hook) note([&] { owner_.hook(plan_.steps[i], true); });
    f();
    if (owner_.hook) note([&] { owner_.hook(plan_.steps[i], false); });
  }
  /// Adds the bytes that devices receive during f() to the counts of step i and of the run.
  template <class F>
  void counted(std::size_t i, std::vector<std::int64_t>& in_step, const F& f) {
    const auto [busiest, bytes] = traffic_.count(on_.backend(), in_step, f);
    received_.add(i, plan_.steps[i], busiest, bytes);
  }
};

}  // namespace detail

GSHARD_INLINE executor::executor(const plan_view& plan, const kernel_table& kernels, const any_cluster& on, const dims& given,
                                 parameter_store store, std::string problem, std::string_view operation,
                                 std::vector<detail::lent_value> lent, const collective_call& operands)
    : threads(kernel::default_threads(on.backend().processes_here())),
      engine_(std::make_unique<detail::engine>(*this, plan, kernels, on, given, std::move(store), std::move(problem), operation,
                                               std::move(lent), operands)) {}
GSHARD_INLINE executor::~executor() = default;

GSHARD_INLINE const plan_view& executor::plan() const { return engine_->plan(); }
GSHARD_INLINE const any_cluster& executor::cluster() const { return engine_->cluster(); }
GSHARD_INLINE const parameter_store& executor::store() const { return engine_->store(); }
GSHARD_INLINE parameter_store& executor::store() { return engine_->store(); }
GSHARD_INLINE const extents& executor::sizes() const { return engine_->sizes(); }
GSHARD_INLINE std::int64_t executor::arena_bytes() const { return engine_->arena_bytes(); }
GSHARD_INLINE const detail::bound_value& executor::value(std::int32_t v) const { return engine_->value(v); }
GSHARD_INLINE void executor::run(const run_context& context, std::string problem, const collective_call& inputs) {
  const detail::thread_rule::use in_use = enter();
  engine_->run(context, std::move(problem), inputs);
}
GSHARD_INLINE void executor::use_again(const collective_call& operands) {
  const detail::thread_rule::use in_use = enter();
  threads = kernel::default_threads(cluster().backend().processes_here());
  engine_->use_again(operands);
}
GSHARD_INLINE void executor::agreed_by_caller() { engine_->agreed_by_caller(); }
GSHARD_INLINE const received_count& executor::received(op_ref kind) const { return engine_->received(kind); }
GSHARD_INLINE void executor::compare_inputs(std::uint64_t which) { engine_->compare_inputs(which); }
GSHARD_INLINE bool executor::skipped() const { return engine_->skipped(); }
GSHARD_INLINE bool executor::overlaps() const { return engine_->overlaps(); }
GSHARD_INLINE bool executor::measures_overlap() const { return engine_->measures_overlap(); }
GSHARD_INLINE std::int64_t executor::runs() const { return engine_->runs(); }
GSHARD_INLINE std::span<const std::int64_t> executor::received_in_run() const { return engine_->received_in_run(); }
GSHARD_INLINE std::span<const std::int64_t> executor::between_nodes_in_run() const { return engine_->between_nodes_in_run(); }

}}  // namespace gshard::v0
