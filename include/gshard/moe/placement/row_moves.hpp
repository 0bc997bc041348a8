// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The rows of a tensor that devices exchange when the experts move from one placement to another.

#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/tensor/buffer.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The rows that devices exchange when the experts of a tensor move. Each device receives the row of each expert that it lacks, once: from
/// a device of its own node, if one has it. Otherwise one device of the node receives it from another node, and passes it on to the others.
/// All processes compute the same moves.
class row_moves {
 public:
  row_moves(const any_cluster& on, const bound_value& tensor, const std::vector<int>& before, const std::vector<int>& after)
      : on_(on), tensor_(tensor), before_(before), after_(after), rows_(std::size_t(on.size())), arrived_(on.devices().size()) {
    for (int device = 0; device < on.size(); ++device) shard_of_device_.push_back(place(tensor, on.backend().extents(), device));
    for (int device = 0; device < on.size(); ++device)
      for (const int e : missing(device)) rows_[std::size_t(device)].push_back(source(e, device));
  }

  /// The traffic of each device if the rows move. Every process returns all devices. Communicates: nothing.
  std::vector<traffic> planned_traffic() const {
    std::vector<traffic> received(rows_.size());
    const int exchanges = rows_.size() == 1 ? 0 : passes_on() ? 2 : 1;
    for (std::size_t to = 0; to < rows_.size(); ++to) {
      received[to].exchanges = exchanges;
      for (const row& r : rows_[to]) {
        received[to].exchange_bytes += row_bytes(int(to));
        if (!same_node(r.from, int(to))) received[to].between_nodes += row_bytes(int(to));
      }
    }
    return received;
  }

  /// Moves the rows. Returns the bytes that the devices of this process received. Collective.
  std::int64_t run() {
    std::int64_t bytes = exchange(false);
    if (passes_on()) bytes += exchange(true);
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
  std::vector<kernel::placement> shard_of_device_;
  std::vector<std::vector<row>> rows_;      // by receiving device
  std::vector<std::vector<std::pair<int, buffer>>> arrived_;  // by held device: experts and their rows

  bool passes_on() const {
    return std::ranges::any_of(rows_, [](const std::vector<row>& of_device) { return std::ranges::any_of(of_device, &row::passed_on); });
  }
  const kernel::placement& shard_on(int device) const { return shard_of_device_[std::size_t(device)]; }
  std::int64_t row_bytes(int device) const {
    const kernel::placement& p = shard_on(device);
    return p.extent[0] > 0 ? kernel::element_count(p.rank, p.extent) / p.extent[0] * size_of(tensor_.type) : 0;
  }
  std::span<const int> experts_of(int device, const std::vector<int>& all) const {
    return std::span(all).subspan(std::size_t(shard_on(device).offset[0]), std::size_t(shard_on(device).extent[0]));
  }
  static bool contains(std::span<const int> list, int e) { return std::ranges::find(list, e) != list.end(); }
  bool same_other_dims(int a, int b) const {
    for (std::size_t d = 1; d < std::size_t(shard_on(a).rank); ++d)
      if (shard_on(a).offset[d] != shard_on(b).offset[d] || shard_on(a).extent[d] != shard_on(b).extent[d]) return false;
    return true;
  }
  bool same_node(int a, int b) const {
    const std::vector<int>& node = on_.backend().nodes().node;
    return node.empty() || node[std::size_t(a)] == node[std::size_t(b)];
  }
  /// The experts of the new placement that a device lacks in the old one, each once.
  std::vector<int> missing(int device) const {
    const std::span<const int> had = experts_of(device, before_);
    std::vector<int> lacks;
    for (const int e : experts_of(device, after_))
      if (!contains(had, e) && !contains(lacks, e)) lacks.push_back(e);
    return lacks;
  }
  row source(int e, int to) const {
    std::vector<int> near, far;
    int first_of_node = to;  // the first device of this node that lacks the expert
    for (int other = int(shard_of_device_.size()) - 1; other >= 0; --other) {
      if (!same_other_dims(other, to)) continue;
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
    const std::size_t devices = shard_of_device_.size(), held = on_.devices().size();
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
      if (devices > 1) on_.backend().count(i, {1, of_device, 0, 0});
      bytes += of_device;
    }
    for (std::size_t i = 0; i < held; ++i) parts.push_back({send[i], recv[i]});
    if (devices > 1) on_.backend().start((1u << on_.mesh().rank()) - 1, parts).finish();
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
  /// The row of an expert on a held device: its own or a received one.
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

}}}  // namespace gshard::v0::detail
