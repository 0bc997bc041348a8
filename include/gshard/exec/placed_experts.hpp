// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Moves experts between devices during a run: weights and optimizer state, from one placement to another.

#include <gshard/comm/agreement.hpp>
#include <gshard/comm/backend.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/executor.hpp>
#include <gshard/exec/expert_placement.hpp>
#include <gshard/exec/parameters.hpp>
#include <gshard/tensor/buffer.hpp>
#include <gshard/tensor/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

/// The rows that devices exchange when the experts of a tensor move. Each device receives a row of each expert that it lacks, once: from a
/// device of its own node, if one has it. Else one device of the node receives it from another node, and passes it on to the others. All
/// processes compute the same.
class row_moves {
 public:
  row_moves(const any_cluster& on, const bound_value& tensor, const std::vector<int>& before, const std::vector<int>& after)
      : on_(on), tensor_(tensor), before_(before), after_(after), rows_(std::size_t(on.size())), arrived_(on.devices().size()) {
    for (int device = 0; device < on.size(); ++device) place_.push_back(place(tensor, on.on().extents(), device));
    for (int device = 0; device < on.size(); ++device)
      for (const int e : missing(device)) rows_[std::size_t(device)].push_back(source(e, device));
  }

  /// Moves the rows. Returns the bytes that the devices of this process received. Collective.
  std::int64_t run() {
    std::int64_t bytes = 0;
    bool passes_on = false;
    for (const std::vector<row>& of_device : rows_)
      for (const row& r : of_device) passes_on = passes_on || r.passed_on;
    for (const bool passed_on : {false, true})
      if (!passed_on || passes_on) bytes += exchange(passed_on);
    for (std::size_t i = 0; i < on_.devices().size(); ++i) write(i);
    return bytes;
  }

 private:
  /// A row that a device receives.
  struct row {
    int expert = 0, from = 0;
    bool passed_on = false;  // `from` itself receives it in this move
  };
  const any_cluster& on_;
  const bound_value& tensor_;
  const std::vector<int>&before_, &after_;  // the expert of each row
  std::vector<kernel::placement> place_;    // by device
  std::vector<std::vector<row>> rows_;      // by receiving device
  std::vector<std::vector<std::pair<int, buffer>>> arrived_;  // by held device: experts and their rows

  const kernel::placement& at(int device) const { return place_[std::size_t(device)]; }
  std::int64_t row_bytes(int device) const {
    const kernel::placement& p = at(device);
    return p.extent[0] > 0 ? kernel::element_count(p.rank, p.extent) / p.extent[0] * size_of(tensor_.type) : 0;
  }
  std::span<const int> experts_of(int device, const std::vector<int>& all) const {
    return std::span(all).subspan(std::size_t(at(device).offset[0]), std::size_t(at(device).extent[0]));
  }
  static bool contains(std::span<const int> list, int e) { return std::ranges::find(list, e) != list.end(); }
  bool same_columns(int a, int b) const {
    for (std::size_t d = 1; d < std::size_t(at(a).rank); ++d)
      if (at(a).offset[d] != at(b).offset[d] || at(a).extent[d] != at(b).extent[d]) return false;
    return true;
  }
  bool same_node(int a, int b) const {
    const std::vector<int>& node = on_.on().nodes().node;
    return node.empty() || node[std::size_t(a)] == node[std::size_t(b)];
  }
  /// The experts that a device has now and lacked before, each once.
  std::vector<int> missing(int device) const {
    const std::span<const int> had = experts_of(device, before_);
    std::vector<int> lacks;
    for (const int e : experts_of(device, after_))
      if (!contains(had, e) && !contains(lacks, e)) lacks.push_back(e);
    return lacks;
  }
  row source(int e, int to) const {
    std::vector<int> near, far;
    int first_of_node = to;  // of the devices that lack the expert
    for (int other = int(place_.size()) - 1; other >= 0; --other) {
      if (!same_columns(other, to)) continue;
      if (contains(experts_of(other, before_), e)) (same_node(other, to) ? near : far).push_back(other);
      else if (same_node(other, to) && contains(experts_of(other, after_), e)) first_of_node = other;
    }
    if (near.empty() && first_of_node != to) return {e, first_of_node, true};
    const std::vector<int>& any_of = near.empty() ? far : near;
    return {e, any_of[std::size_t(to) % any_of.size()]};
  }
  /// The experts of which `from` sends a row to `to`.
  std::vector<int> rows_from(int from, int to, bool passed_on) const {
    std::vector<int> experts;
    for (const row& r : rows_[std::size_t(to)])
      if (r.from == from && r.passed_on == passed_on) experts.push_back(r.expert);
    return experts;
  }
  std::int64_t exchange(bool passed_on) {
    const std::size_t devices = place_.size(), held = on_.devices().size();
    std::vector<std::vector<buffer>> sent(held), received(held);  // by held device, by device
    std::vector<std::vector<std::span<const std::byte>>> send(held);
    std::vector<std::vector<std::span<std::byte>>> recv(held);
    std::vector<exchange_part> parts;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < held; ++i) {
      const int own = on_.devices()[i];
      const auto width = std::size_t(row_bytes(own));
      std::int64_t of_device = 0;
      for (std::size_t other = 0; other < devices; ++other) {
        const std::vector<int> out = rows_from(own, int(other), passed_on), in = rows_from(int(other), own, passed_on);
        buffer& packed = sent[i].emplace_back(std::int64_t(out.size() * width));
        for (std::size_t k = 0; k < out.size(); ++k) std::memcpy(packed.data() + k * width, row_of(i, out[k]), width);
        buffer& room = received[i].emplace_back(std::int64_t(in.size() * width));
        send[i].emplace_back(packed.data(), out.size() * width);
        recv[i].emplace_back(room.data(), in.size() * width);
        of_device += std::int64_t(recv[i].back().size());
      }
      if (devices > 1) on_.on().count(i, {1, of_device, 0, 0});
      bytes += of_device;
    }
    for (std::size_t i = 0; i < held; ++i) parts.push_back({send[i], recv[i]});
    if (devices > 1) on_.on().start((1u << on_.mesh().rank()) - 1, parts).finish();
    for (std::size_t i = 0; i < held; ++i)
      for (std::size_t other = 0; other < devices; ++other) {
        const std::vector<int> in = rows_from(int(other), on_.devices()[i], passed_on);
        const auto width = std::size_t(row_bytes(on_.devices()[i]));
        for (std::size_t k = 0; k < in.size(); ++k) {
          buffer one{std::int64_t(width)};
          if (width > 0) std::memcpy(one.data(), received[i][other].data() + k * width, width);
          arrived_[i].emplace_back(in[k], std::move(one));
        }
      }
    return bytes;
  }
  /// The row of an expert on a held device: its own one, or one that has arrived.
  const std::byte* row_of(std::size_t held, int e) const {
    const int own = on_.devices()[held];
    const std::span<const int> had = experts_of(own, before_);
    if (contains(had, e)) return tensor_.data[held] + (std::ranges::find(had, e) - had.begin()) * row_bytes(own);
    return std::ranges::find(arrived_[held], e, &std::pair<int, buffer>::first)->second.data();
  }
  void write(std::size_t held) const {
    const int own = on_.devices()[held];
    const auto width = std::size_t(row_bytes(own));
    const std::span<const int> has = experts_of(own, after_);
    buffer shard(tensor_.bytes(held));
    for (std::size_t r = 0; width > 0 && r < has.size(); ++r) std::memcpy(shard.data() + r * width, row_of(held, has[r]), width);
    if (tensor_.bytes(held) > 0) std::memcpy(tensor_.data[held], shard.data(), std::size_t(tensor_.bytes(held)));
  }
};

/// How many nodes the devices of a tensor's rows are on; `slots` rows are on each device. 1 if successive devices are not on one node each,
/// or if the nodes have different numbers of them.
inline int nodes_of_rows(const any_cluster& on, const bound_value& tensor, std::int64_t slots) {
  const std::vector<int>& node = on.on().nodes().node;
  if (node.empty()) return 1;
  std::vector<std::vector<int>> nodes(std::size_t(tensor.extents[0] / slots));  // by block of rows, of each device that holds it
  for (int device = 0; device < on.size(); ++device)
    nodes[std::size_t(place(tensor, on.on().extents(), device).offset[0] / slots)].push_back(node[std::size_t(device)]);
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

/// The experts of a layer with replicas, in a store: where they are, and how they move. Between two steps, `balance` places them by the
/// choices of tokens. Results do not depend on the placement, except for the order of sums. Norms of whole parameters count each replica:
/// with `clip_norm` or adafactor, results depend on the numbers of replicas.
///
///   gs::placed_experts experts(train.engine(), "moe");
///   for (int step = 1; ; ++step) {
///     const auto [loss, demand] = train(...);
///     // add the demand of the step to `sums`
///     if (step % 100 == 0) experts.balance(sums);
///   }
///
/// @see nn::moe, expert_placement
class placed_experts {
 public:
  /// `scope`: that of the layer, such as "moe" or "encoder.1.moe"; empty: none. `nodes`: how many nodes successive devices of the experts
  /// are on; 0: as many as the cluster knows, 1 if nodes have different numbers of devices.
  /// Throws `gshard::error` if the program has no replicas of experts in this scope; if the devices do not have equally many; if `nodes`
  /// does not divide the devices.
  placed_experts(const executor& run, std::string_view scope = {}, int nodes = 0) : store_(run.store()), variable_(scope) {
    if (!variable_.empty()) variable_ += '.';
    variable_ += "expert_of";
    const plan_view& plan = run.plan();
    std::int32_t row = -1;
    for (std::size_t i = 0; i < plan.parameters.size(); ++i)
      if (plan.parameters[i].name.view() == variable_) row = std::int32_t(i);
    if (row < 0 || plan.parameters[std::size_t(row)].copies_of < 0)
      throw error("placed_experts: the program has no variable \"" + variable_ + "\"; nn::moe makes one with .replicas = true");
    experts_ = int(run.sizes().dim(plan.parameters[std::size_t(row)].copies_of));
    for (const parameter& p : plan.parameters)
      if (p.placed_by == row) tensors_.emplace_back(p.name.view());
    if (tensors_.empty()) throw error("placed_experts: \"" + variable_ + "\" places no tensor");
    const any_cluster& on = store_.on();
    const detail::bound_value& first = entry(tensors_[0]).value;
    std::int64_t slots = 0;
    for (int device = 0; device < on.size(); ++device) {
      const std::int64_t here = detail::place(first, on.on().extents(), device).extent[0];
      if (device > 0 && here != slots)
        throw error("placed_experts: the devices have different numbers of replicas of \"" + variable_ + "\"");
      slots = here;
    }
    on_ = {int(first.extents[0] / slots), int(slots), nodes == 0 ? detail::nodes_of_rows(on, first, slots) : nodes};
    (void)placement();
  }

  const expert_devices& on() const { return on_; }
  int experts() const { return experts_; }
  /// The weights and the optimizer state that move.
  const std::vector<std::string>& tensors() const { return tensors_; }
  /// Where the experts are now.
  expert_placement placement() const {
    const std::int32_t* const e = entry(variable_).value.as<std::int32_t>(0);
    return expert_placement::of({e, e + on_.replicas()}, experts_, on_);
  }

  /// Moves weights and optimizer state to another placement. Returns the bytes that the devices of this process received: those of the
  /// replicas that they lacked. Collective.
  /// Throws `gshard::error`, on every process, if the placement has other devices or experts, or the processes' calls differ.
  std::int64_t move(const expert_placement& to) const {
    const any_cluster& on = store_.on();
    const auto problem = [&] {
      return to.on().devices != on_.devices || to.on().slots != on_.slots || to.experts() != experts_
                 ? "placed_experts: the placement has other devices or experts than \"" + variable_ + "\""
                 : std::string();
    };
    std::string text;
    for (const int e : to.expert()) text += std::to_string(e) + " ";
    on.on().begin(std::vector<fact>{{"the call", "a move of the experts of \"" + variable_ + "\""},
                                    {"the store", detail::store_text(store_.number())},
                                    {"the placement of \"" + variable_ + "\"", text}},
                  problem());
    const std::vector<int> before = placement().expert();
    std::int64_t bytes = 0;
    for (const std::string& name : tensors_) bytes += detail::row_moves(on, entry(name).value, before, to.expert()).run();
    const detail::bound_value& variable = entry(variable_).value;
    for (std::size_t i = 0; i < variable.data.size(); ++i) std::ranges::copy(to.expert(), variable.as<std::int32_t>(i));
    return bytes;
  }

  /// Places the experts by their demand, if that lowers the one of the busiest device by the factor `least_gain`. Returns true if experts
  /// moved. All processes give the same demand: `nn::moe_result::demand`, or its sum over steps. Collective.
  /// Throws `gshard::error` as `move` and expert_placement do.
  bool balance(std::span<const double> demand, double least_gain = 1.05) const {
    const expert_placement before = placement();
    const expert_placement now = expert_placement(demand, on_).closest_to(before);
    const bool moves = before.imbalance(demand) > least_gain * now.imbalance(demand);
    if (moves) move(now);
    return moves;
  }

 private:
  parameter_store store_;
  std::string variable_;
  std::vector<std::string> tensors_;
  int experts_ = 0;
  expert_devices on_;

  const parameter_store::entry& entry(const std::string& name) const { return *store_.find(name); }
};

}}  // namespace gshard::v0
