// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compares the copies of replicated shards, to find memory that was corrupted on one device: check_replicas.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <cstdint>
#include <span>

#if GSHARD_HAS_BODIES
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/bind/bound_plan.hpp>
#include <gshard/exec/bind/finite_checks.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/kernel/element_text.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/tensor/placement.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>
#endif

namespace gshard { inline namespace v0 {

namespace detail {

struct named_value;

/// True if several devices of the cluster hold the same block of a tensor.
bool has_copies(const bound_value& v, std::span<const int> mesh);

/// Throws `gshard::error`, with the same text on every process, if copies of a shard differ in a bit. Collective: all processes pass
/// tensors of the same layouts, and have agreed on the layouts.
void compare_copies(const any_cluster& cluster, std::span<const named_value> tensors);

/// The number of steps between two comparisons of the copies of a program's parameters. 0: never.
#if defined(NDEBUG)
constexpr std::uint32_t steps_between_replica_checks = 0;
#else
constexpr std::uint32_t steps_between_replica_checks = 100;
#endif

}  // namespace detail

/// Compares all copies of the tensors of a store, also of optimizer state and caches: devices with the same shard must hold the same bits.
/// NaN equals NaN of the same bits. Devices with other bits have been corrupted, or a function of the user computes different numbers on
/// them. A training step compares by itself, see `executable::check_replicas_every`. `save` with checkpoint_scope::everything also
/// compares.
///
/// Collective over the store's cluster. Communicates: one hash per tensor and device to the leader, and its answer. If copies differ, also
/// some hashes of their parts.
///
/// Throws `gshard::error`, the same on every process: if copies differ; if the processes make different calls, or have different tensors.
/// The text names the tensor, the first element that differs, and its values on two devices. It also names the devices that differ from
/// the most frequent value, or in a tie from the first one.
/// @see not_finite
void check_replicas(const parameter_store& store);

#if GSHARD_HAS_BODIES

namespace detail {

GSHARD_INLINE bool has_copies(const bound_value& v, std::span<const int> mesh) {
  const std::uint32_t used = v.layout.used() | v.layout.partial;
  for (std::size_t a = 0; a < mesh.size(); ++a)
    if (!((used >> a) & 1u) && mesh[a] > 1) return true;
  return false;
}

/// The inputs of a plan that are in the bit mask `which` and have copies on several devices.
inline std::vector<named_value> inputs_with_copies(const bound_plan& bound, std::uint64_t which) {
  std::vector<named_value> all;
  for (std::size_t i = 0; i < bound.plan.inputs.size(); ++i)
    if (const bound_value& v = bound.value(bound.plan.inputs[i].value); ((which >> i) & 1u) && has_copies(v, bound.on.backend().extents()))
      all.push_back({"input " + std::to_string(i), &v});
  return all;
}

/// One comparison. Every process sends numbers about its devices to the leader, which decides and broadcasts an answer.
class copy_comparison {
 public:
  copy_comparison(const any_cluster& cluster, std::span<const named_value> tensors)
      : on_(cluster.backend()), mesh_(cluster.mesh()), tensors_(tensors) {}

  void run() {
    const answer found = decide([&](std::size_t d, numbers& all) {
      for (const named_value& t : tensors_) all.push_back(hash_of(*t.value, d, 0, t.value->elements(d)));
    }, [&](const table& hashes) { return find_tensor(hashes); });
    if (found[0] < 0) return;
    const bound_value& v = *tensors_[std::size_t(found[0])].value;
    const int reference = int(found[1]), other = int(found[2]);
    const kernel::placement at = place(v, on_.extents(), reference);
    std::int64_t begin = 0, end = kernel::element_count(at.rank, at.extent);
    while (end - begin > 1) {
      const std::int64_t parts = std::min<std::int64_t>(64, end - begin), first = begin, count = end - begin;
      const auto bound = [=](std::int64_t k) { return first + count / parts * k + std::min(k, count % parts); };
      const std::int64_t part = decide([&](std::size_t d, numbers& all) {
        for (std::int64_t k = 0; k < parts && concerns(d, reference, other); ++k) all.push_back(hash_of(v, d, bound(k), bound(k + 1)));
      }, [&](const table& hashes) {
        const numbers &a = hashes.at(reference), &b = hashes.at(other);
        return answer{std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin()};
      })[0];
      if (part >= parts) break;  // the copies have become equal
      begin = bound(part);
      end = bound(part + 1);
    }
    std::string text;  // on the leader
    const answer size = decide([&](std::size_t d, numbers& all) {
      element bits{};
      const auto bytes = std::size_t(size_of(v.type));
      if (concerns(d, reference, other)) std::memcpy(bits.data(), v.data[d] + std::size_t(begin) * bytes, bytes);
      all.assign(bits.begin(), bits.end());
    }, [&](const table& elements) {
      const std::string a = text_of(v.type, elements.at(reference)), b = text_of(v.type, elements.at(other));
      text = "the copies of " + tensors_[std::size_t(found[0])].name + " " + layout_text(v, mesh_) + " differ: element " +
             global_index_text(at, begin) + " is " + a + " on device " + std::to_string(reference) + " and " + b + " on device " +
             std::to_string(other) + ". " + devices_;
      return answer{std::int64_t(text.size())};
    });
    text.resize(std::size_t(size[0]));
    on_.broadcast(std::as_writable_bytes(std::span(text)));
    throw error(text);
  }

 private:
  using numbers = std::vector<std::uint64_t>;
  using table = std::map<int, numbers>;  // by device
  using answer = std::array<std::int64_t, 3>;
  using element = std::array<std::uint64_t, 2>;
  static constexpr std::int64_t none = -1, failed = -2;

  backend& on_;
  const mesh_shape& mesh_;
  std::span<const named_value> tensors_;
  std::string devices_;  // the devices that differ, as text; on the leader

  /// collect(i, numbers) fills in the numbers of held device i. judge(table) gives the leader's answer. Every process returns this answer.
  template <class Collect, class Judge>
  answer decide(Collect collect, Judge judge) {
    numbers mine;
    for (std::size_t d = 0; d < on_.devices().size(); ++d) {
      numbers of_device;
      collect(d, of_device);
      mine.push_back(std::uint64_t(on_.devices()[d]));
      mine.push_back(of_device.size());
      mine.insert(mine.end(), of_device.begin(), of_device.end());
    }
    const std::vector<std::vector<std::byte>> packets = on_.gather_to_leader(std::as_bytes(std::span(mine)));
    answer given{none, none, none};
    process_error problem;
    if (on_.leader()) {
      problem = problem_of([&] {
        table all;
        for (const std::vector<std::byte>& packet : packets) {
          numbers received(packet.size() / sizeof(std::uint64_t));
          std::memcpy(received.data(), packet.data(), packet.size());
          for (auto i = received.begin(); i != received.end();) {
            const auto end = i + 2 + std::ptrdiff_t(i[1]);
            all[int(i[0])].assign(i + 2, end);
            i = end;
          }
        }
        given = judge(all);
      });
      if (!problem.empty()) given[0] = failed;
    }
    on_.broadcast(std::as_writable_bytes(std::span(given)));
    if (given[0] == failed) throw error("check_replicas: the leader failed" + (problem.empty() ? std::string() : ": " + problem.text));
    return given;
  }

  static std::uint64_t hash_of(const bound_value& v, std::size_t d, std::int64_t begin, std::int64_t end) {
    const auto bytes = std::size_t(size_of(v.type));
    return hash_of_bytes({v.data[d] + std::size_t(begin) * bytes, std::size_t(end - begin) * bytes});
  }
  bool concerns(std::size_t d, int reference, int other) const { return on_.devices()[d] == reference || on_.devices()[d] == other; }

  /// The number of the block that a device holds. Devices with equal numbers hold copies of one block.
  int block_of_device(const bound_value& v, int device) const {
    const std::uint32_t used = v.layout.used() | v.layout.partial;
    const auto at = coordinates_of(on_.extents(), v.position(device));
    int block = 0;
    for (std::size_t a = 0; a < on_.extents().size(); ++a)
      if ((used >> a) & 1u) block = block * on_.extents()[a] + at[a];
    return block;
  }
  /// The first tensor with copies that differ, the device to compare with, and the first that differs from it.
  answer find_tensor(const table& hashes) {
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      std::map<int, std::vector<int>> devices;  // by block
      for (const auto& [device, of_device] : hashes) devices[block_of_device(*tensors_[t].value, device)].push_back(device);
      for (const auto& [block, copies] : devices) {
        const auto votes = [&](int device) {
          return std::count_if(copies.begin(), copies.end(), [&](int d) { return hashes.at(d)[t] == hashes.at(device)[t]; });
        };
        const int reference = *std::max_element(copies.begin(), copies.end(), [&](int a, int b) { return votes(a) < votes(b); });
        if (votes(reference) == std::ptrdiff_t(copies.size())) continue;
        std::vector<int> others;
        for (const int d : copies)
          if (hashes.at(d)[t] != hashes.at(reference)[t]) others.push_back(d);
        const std::string ranks = ranks_text(others);
        devices_ = std::to_string(others.size()) + " of " + std::to_string(copies.size()) + " copies " +
                   (2 * others.size() < copies.size() ? "differ from the others: device" : "differ from that of device " +
                    std::to_string(reference) + ": device") + ranks.substr(std::string_view("rank").size());
        return {std::int64_t(t), reference, others.front()};
      }
    }
    return {none, none, none};
  }

  static std::string text_of(dtype type, const numbers& bits) {
    std::string text = element_text(type, bits.data());
    if (text.find("nan") == text.npos) return text;
    std::array<char, 16> digits{};  // NaN has several bit patterns
    return text + " (bits 0x" + std::string(digits.data(), std::to_chars(digits.data(), digits.data() + 16, bits[0], 16).ptr) + ")";
  }
};

GSHARD_INLINE void compare_copies(const any_cluster& cluster, std::span<const named_value> tensors) {
  std::vector<named_value> some;
  for (const named_value& t : tensors)
    if (has_copies(*t.value, cluster.backend().extents())) some.push_back(t);
  if (!some.empty()) copy_comparison(cluster, some).run();
}

}  // namespace detail

GSHARD_INLINE void check_replicas(const parameter_store& store) {
  const detail::thread_rule::use in_use = store.cluster().backend().enter();
  std::vector<fact> facts{{"the call", "check_replicas of a store"}, {"the store", detail::store_text(store.number())}};
  std::vector<detail::named_value> tensors;
  for (const auto& [name, entry] : store.entries()) {
    tensors.push_back({"\"" + name + "\"", &entry.value});
    facts.push_back({"tensor \"" + name + "\"", detail::layout_text(entry.value, store.cluster().mesh())});
  }
  store.cluster().backend().begin(facts);
  detail::compare_copies(store.cluster(), tensors);
}

#endif
}}  // namespace gshard::v0
