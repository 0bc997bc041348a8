// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A plan bound to a cluster, memory and kernels: all that a runner needs, and the facts by which processes compare it.

#include <gshard/core/base/hash.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/bind/action.hpp>
#include <gshard/exec/bind/bound_plan.hpp>
#include <gshard/exec/bind/kernel_table.hpp>
#include <gshard/exec/bind/lent_value.hpp>
#include <gshard/exec/bind/run_context.hpp>
#include <gshard/exec/collective/async_collectives.hpp>
#include <gshard/exec/collective/collective.hpp>
#include <gshard/exec/collective/received.hpp>
#include <gshard/exec/kernel/gemm/bf16_unit.hpp>
#include <gshard/exec/program/agreement_points.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/exec/program/plan_facts.hpp>
#include <gshard/exec/program/running_loops.hpp>
#include <gshard/exec/tensor/buffer.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The work of a step: a collective, or actions. Neither if there is nothing to do, or if the step is an asynchronous collective.
struct bound_step {
  std::unique_ptr<collective> moves;
  std::vector<action> actions;  // one per held device, or one for all
};

/// A plan bound to a cluster, memory and kernels. @see binder, runner
struct bound_program {
  std::shared_ptr<const void> owner;  // of the plan, or null
  plan_view plan;
  any_cluster on;
  const kernel_table& kernels;
  parameter_store store;
  std::vector<lent_value> lent;
  std::string operation;  // the name of an eager operation, empty for a program of the user

  bound_plan bound{plan, on};
  std::vector<buffer> arena{};  // per held device
  std::vector<bound_step> steps{};
  async_collectives early{};
  received_by_kind received{};
  running_loops loops{};
  agreement_points agreements{};
  std::vector<std::pair<std::int32_t, std::int32_t>> copies{};  // updated parameters that were not written in place
  std::vector<const lent_value*> lent_copies{};                 // outputs that are copied to memory of the caller
  std::uint64_t hash = 0;          // of the facts, if there are several processes
  std::uint64_t number = 0;        // of the cluster's call that bound this program
  std::uint64_t store_number = 0;  // the store's number before that

  bound_program(const plan_view& p, const any_cluster& c, const kernel_table& k, parameter_store s, std::vector<lent_value> l,
                std::string o, std::shared_ptr<const void> plan_owner = nullptr)
      : owner(std::move(plan_owner)),
        plan(p),
        on(c),
        kernels(k),
        store(std::move(s)),
        lent(std::move(l)),
        operation(std::move(o)),
        store_number(store.number()) {}
  bound_program(const bound_program&) = delete;  // `bound` and actions refer to this object
  bound_program& operator=(const bound_program&) = delete;

  const bound_value& value(std::int32_t v) const { return bound.value(v); }
};

/// The facts that must be the same on all processes when they bind a program.
inline std::vector<fact> facts_of(const bound_program& p) {
  const plan_facts of_plan(p.bound);
  const bool eager = !p.operation.empty();
  std::vector<fact> all{{"the call", eager ? p.operation + " on tensors" : "making a program", eager ? "" : of_plan.place()},
                        {"the seed of a program's parameters", std::to_string(p.store.seed())},
                        {"the store of a program's parameters", store_text(p.store_number)},
                        {"the kernels of a program", std::string(p.kernels.options)},
                        {"the inputs and outputs in the caller's memory", names_of(p.lent)}};
  if (std::any_of(p.plan.steps.begin(), p.plan.steps.end(), [](const node& n) { return n.attr.rounds_to_bf16; }))
    all.push_back({"the unit of its bf16 products", std::string(name(bf16_unit_in_use()))});
  of_plan.add_to(all);
  return all;
}

/// The fact that names a run.
inline fact name_of_run(const bound_program& p) {
  return {"the call", "a run of the program made in call " + std::to_string(p.number), plan_facts(p.bound).place()};
}

/// Throws unless all processes bind the same program, or use it again where others bind it. `problem`: an error of this process, or empty.
inline void agree_on_program(bound_program& p, const collective_call& operands, const process_error& problem) {
  const auto these = [&] { return joined(facts_of(p), operands.facts()); };
  p.on.backend().begin({p.hash ^ operands.hash(), these}, problem);
  p.number = p.on.backend().calls();
}

/// Throws unless all processes run the same program, step and inputs. Returns true if any process passes `flag`.
inline bool agree_on_run(const bound_program& p, const run_context& context, const collective_call& inputs, const process_error& problem,
                         bool flag) {
  if (p.on.backend().processes() == 1) return p.on.backend().begin({}, problem, flag);
  const auto these = [&] {
    const fact seed{"the seed of a run", std::to_string(context.seed)}, step{"the step of a run", std::to_string(context.step)};
    return joined({name_of_run(p), seed, step}, inputs.facts());
  };
  fnv1a<std::uint64_t> h;
  h.add("run").add(p.number).add(context.seed).add(std::uint64_t(context.step)).add(inputs.hash());
  return p.on.backend().begin({h.value(), these}, problem, flag);
}

}}}  // namespace gshard::v0::detail
