// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Moves experts between devices during a run: weights and optimizer state, from one placement to another.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/moe/placement/expert_placement.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/moe/placement/row_moves.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#endif

namespace gshard { inline namespace v0 {

/// The replicated experts of a layer in a store: reads their placement, and moves them. Between two steps, `balance` places them by the
/// choices of tokens. Results do not depend on the placement, except for the order of sums. Norms of whole parameters count each replica,
/// so with `clip_norm` or adafactor results depend on the numbers of replicas.
///
///   gs::placed_experts experts(train.executor(), "moe");
///   for (int step = 1; ; ++step) {
///     const auto [loss, demand] = train(...);
///     // add the demand of the step to `sums`
///     if (step % 100 == 0) experts.balance(sums);
///   }
///
/// @see nn::moe, expert_placement
class placed_experts {
 public:
  /// `scope`: that of the layer, such as "moe" or "encoder.1.moe"; empty: none. `nodes`: the number of nodes of the experts' devices, which
  /// are successive within a node; 0: from the cluster, or 1 if nodes have different numbers of devices.
  /// Throws `gshard::error` if the program has no replicas of experts in this scope; if the devices have different numbers of replicas; if
  /// `nodes` does not divide the devices.
  placed_experts(executor& run, std::string_view scope = {}, int nodes = 0);

  const expert_devices& on() const { return on_; }
  int experts() const { return experts_; }
  /// The weights and the optimizer state that move.
  const std::vector<std::string>& tensors() const { return tensors_; }
  /// The current placement of the experts.
  expert_placement placement() const;

  /// The traffic of each device in a move to another placement. Every process returns all devices. Bytes are those that `move` sends.
  /// Communicates: nothing.
  /// Throws `gshard::error` if the placement has other devices or experts.
  std::vector<traffic> planned_traffic(const expert_placement& to) const;

  /// Moves weights and optimizer state to another placement. Returns the bytes that the devices of this process received: those of the
  /// replicas that they lacked. Collective.
  /// Throws `gshard::error`, on every process, if the placement has other devices or experts, or the processes' calls differ.
  std::int64_t move(const expert_placement& to);

  /// Places the experts by their demand, if that lowers the load of the busiest device by the factor `least_gain`. Returns true if experts
  /// moved. All processes give the same demand: `nn::moe_result::demand`, or its sum over steps. Collective.
  /// Throws `gshard::error` as `move` and expert_placement do.
  bool balance(std::span<const double> demand, double least_gain = 1.05);

 private:
  parameter_store store_;
  std::string variable_;
  std::vector<std::string> tensors_;
  int experts_ = 0;
  expert_devices on_;

  /// The error text if a placement has other devices or experts, otherwise empty.
  std::string unlike(const expert_placement& to) const;
  const parameter_store::entry& entry(const std::string& name) const { return *store_.find(name); }
};

#if GSHARD_HAS_BODIES

namespace detail {

/// The number of nodes of the devices that hold a tensor's rows, `slots` rows each. 1 if the devices of a node are not successive, or if
/// nodes have different numbers of devices.
inline int nodes_of_rows(const any_cluster& on, const bound_value& tensor, std::int64_t slots) {
  const std::vector<int>& node = on.backend().nodes().node;
  if (node.empty()) return 1;
  std::vector<std::vector<int>> nodes(std::size_t(tensor.extents[0] / slots));  // by block of rows: the node of each device that holds it
  for (int device = 0; device < on.size(); ++device)
    nodes[std::size_t(place(tensor, on.backend().extents(), device).offset[0] / slots)].push_back(node[std::size_t(device)]);
  std::size_t count = 1;
  for (std::size_t d = 1; d < nodes.size(); ++d) count += nodes[d] != nodes[d - 1];
  if (nodes.size() % count != 0) return 1;
  const std::size_t of_node = nodes.size() / count;
  for (std::size_t d = 0; d < nodes.size(); ++d)
    for (std::size_t other = 0; other < d; ++other)
      for (std::size_t i = 0; i < nodes[d].size(); ++i)
        if ((nodes[d][i] == nodes[other][i]) != (d / of_node == other / of_node)) return 1;
  return int(count);
}

}  // namespace detail

GSHARD_INLINE placed_experts::placed_experts(executor& run, std::string_view scope, int nodes)
    : store_(run.store()), variable_(scope) {
  if (!variable_.empty()) variable_ += '.';
  variable_ += "expert_of";
  const plan_view& plan = run.plan();
  std::int32_t row = -1;
  for (std::size_t i = 0; i < plan.parameters.size(); ++i)
    if (plan.parameters[i].name.view() == variable_) row = std::int32_t(i);
  if (row < 0 || plan.parameters[std::size_t(row)].copies_of < 0)
    throw error("placed_experts: the program has no variable \"" + variable_ + "\"; nn::moe makes one for experts::with_replicas()");
  experts_ = int(run.sizes().dim(plan.parameters[std::size_t(row)].copies_of));
  for (const parameter& p : plan.parameters)
    if (p.placed_by == row) tensors_.emplace_back(p.name.view());
  if (tensors_.empty()) throw error("placed_experts: \"" + variable_ + "\" places no tensor");
  const any_cluster& on = store_.cluster();
  const detail::bound_value& first = entry(tensors_[0]).value;
  std::int64_t slots = 0;
  for (int device = 0; device < on.size(); ++device) {
    const std::int64_t here = detail::place(first, on.backend().extents(), device).extent[0];
    if (device > 0 && here != slots)
      throw error("placed_experts: the devices have different numbers of replicas of \"" + variable_ + "\"");
    slots = here;
  }
  on_ = {int(first.extents[0] / slots), int(slots), nodes == 0 ? detail::nodes_of_rows(on, first, slots) : nodes};
  (void)placement();
}

GSHARD_INLINE expert_placement placed_experts::placement() const {
  const std::int32_t* const e = entry(variable_).value.as<std::int32_t>(0);
  return expert_placement::of({e, e + on_.replicas()}, experts_, on_);
}

GSHARD_INLINE std::vector<traffic> placed_experts::planned_traffic(const expert_placement& to) const {
  if (const std::string problem = unlike(to); !problem.empty()) throw error(problem);
  const std::vector<int> before = placement().expert();
  std::vector<traffic> all(std::size_t(store_.cluster().size()));
  for (const std::string& name : tensors_) {
    const std::vector<traffic> of_tensor = detail::row_moves(store_.cluster(), entry(name).value, before, to.expert()).planned_traffic();
    for (std::size_t d = 0; d < all.size(); ++d) {
      all[d].exchanges += of_tensor[d].exchanges;
      all[d].exchange_bytes += of_tensor[d].exchange_bytes;
      all[d].between_nodes += of_tensor[d].between_nodes;
    }
  }
  return all;
}

GSHARD_INLINE std::int64_t placed_experts::move(const expert_placement& to) {
  const any_cluster& on = store_.cluster();
  const detail::thread_rule::use in_use = on.backend().enter();
  std::string text;
  for (const int e : to.expert()) text += std::to_string(e) + " ";
  on.backend().begin(std::vector<fact>{{"the call", "a move of the experts of \"" + variable_ + "\""},
                                       {"the store", detail::store_text(store_.number())},
                                       {"the placement of \"" + variable_ + "\"", text}},
                unlike(to));
  const std::vector<int> before = placement().expert();
  std::int64_t bytes = 0;
  for (const std::string& name : tensors_) bytes += detail::row_moves(on, entry(name).value, before, to.expert()).run();
  const detail::bound_value& variable = entry(variable_).value;
  for (std::size_t i = 0; i < variable.data.size(); ++i) std::ranges::copy(to.expert(), variable.as<std::int32_t>(i));
  return bytes;
}

GSHARD_INLINE bool placed_experts::balance(std::span<const double> demand, double least_gain) {
  const expert_placement before = placement();
  const expert_placement now = expert_placement(demand, on_).closest_to(before);
  const bool moves = before.imbalance(demand) > least_gain * now.imbalance(demand);
  if (moves) move(now);
  return moves;
}

GSHARD_INLINE std::string placed_experts::unlike(const expert_placement& to) const {
  if (to.on().devices == on_.devices && to.on().slots == on_.slots && to.experts() == experts_) return "";
  return "placed_experts: the placement has other devices or experts than \"" + variable_ + "\"";
}

#endif

}}  // namespace gshard::v0
