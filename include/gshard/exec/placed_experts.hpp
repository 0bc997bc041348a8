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
/// device of its own node, if one has it. All processes compute the same.
class row_moves {
 public:
  row_moves(const any_cluster& on, const bound_value& tensor, const std::vector<int>& before, const std::vector<int>& after)
      : on_(on), tensor_(tensor), before_(before), after_(after) {
    for (int device = 0; device < on.size(); ++device) place_.push_back(place(tensor, on.on().extents(), device));
  }

  /// Moves the rows. Returns the bytes that the devices of this process received. Collective.
  std::int64_t run() const {
    const std::size_t devices = place_.size();
    std::vector<std::vector<buffer>> sent, received;  // by held device, by device
    std::vector<std::vector<std::span<const std::byte>>> send;
    std::vector<std::vector<std::span<std::byte>>> recv;
    std::vector<exchange_part> parts;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < on_.devices().size(); ++i) {
      const int own = on_.devices()[i];
      sent.emplace_back();
      received.emplace_back();
      send.emplace_back();
      recv.emplace_back();
      std::int64_t of_device = 0;
      for (std::size_t other = 0; other < devices; ++other) {
        const std::vector<int> out = rows_from(own, int(other)), in = rows_from(int(other), own);
        buffer packed(std::int64_t(out.size()) * row_bytes(own));
        for (std::size_t k = 0; k < out.size(); ++k)
          std::memcpy(packed.data() + std::int64_t(k) * row_bytes(own), old_row(i, own, out[k]), std::size_t(row_bytes(own)));
        sent.back().push_back(std::move(packed));
        received.back().emplace_back(std::int64_t(in.size()) * row_bytes(own));
        send.back().emplace_back(sent.back().back().data(), out.size() * std::size_t(row_bytes(own)));
        recv.back().emplace_back(received.back().back().data(), in.size() * std::size_t(row_bytes(own)));
        of_device += std::int64_t(recv.back().back().size());
      }
      if (devices > 1) on_.on().count(i, {1, of_device, 0, 0});
      bytes += of_device;
    }
    for (std::size_t i = 0; i < send.size(); ++i) parts.push_back({send[i], recv[i]});
    if (devices > 1) on_.on().start((1u << on_.mesh().rank()) - 1, parts).finish();
    for (std::size_t i = 0; i < send.size(); ++i) write(i, received[i]);
    return bytes;
  }

 private:
  const any_cluster& on_;
  const bound_value& tensor_;
  const std::vector<int>&before_, &after_;  // the expert of each row
  std::vector<kernel::placement> place_;    // by device

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
  /// The device that sends an expert to another one.
  int source(int e, int to) const {
    std::vector<int> near, far;
    for (int from = 0; from < int(place_.size()); ++from)
      if (same_columns(from, to) && contains(experts_of(from, before_), e)) (same_node(from, to) ? near : far).push_back(from);
    const std::vector<int>& any_of = near.empty() ? far : near;
    return any_of[std::size_t(to) % any_of.size()];
  }
  /// The experts of which `from` sends a row to `to`.
  std::vector<int> rows_from(int from, int to) const {
    std::vector<int> rows;
    for (const int e : missing(to))
      if (source(e, to) == from) rows.push_back(e);
    return rows;
  }
  const std::byte* old_row(std::size_t held, int device, int e) const {
    const std::span<const int> had = experts_of(device, before_);
    return tensor_.data[held] + (std::ranges::find(had, e) - had.begin()) * row_bytes(device);
  }
  void write(std::size_t held, const std::vector<buffer>& received) const {
    const int own = on_.devices()[held];
    const std::int64_t width = row_bytes(own);
    const std::span<const int> had = experts_of(own, before_), has = experts_of(own, after_);
    buffer shard(tensor_.bytes(held));
    for (std::size_t r = 0; r < has.size(); ++r) {
      const std::byte* from = nullptr;
      if (contains(had, has[r])) {
        from = old_row(held, own, has[r]);
      } else {
        const int device = source(has[r], own);
        const std::vector<int> rows = rows_from(device, own);
        from = received[std::size_t(device)].data() + (std::ranges::find(rows, has[r]) - rows.begin()) * width;
      }
      if (width > 0) std::memcpy(shard.data() + std::int64_t(r) * width, from, std::size_t(width));
    }
    if (tensor_.bytes(held) > 0) std::memcpy(tensor_.data[held], shard.data(), std::size_t(tensor_.bytes(held)));
  }
};

}  // namespace detail

/// The experts of a layer with replicas, in a store: where they are, and how they move. Between two steps, `balance` places them by the
/// choices of tokens. Results do not depend on the placement, except for the order of sums.
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
  /// are on.
  /// Throws `gshard::error` if the program has no replicas of experts in this scope; if the devices do not have equally many; if `nodes`
  /// does not divide the devices.
  placed_experts(const executor& run, std::string_view scope = {}, int nodes = 1) : store_(run.store()), variable_(scope) {
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
    on_ = {int(first.extents[0] / slots), int(slots), nodes};
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
