// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The shards of a tensor as files read and write them, and tensors that are filled from a file.

#include <gshard/comm/agreement.hpp>
#include <gshard/comm/device_group.hpp>
#include <gshard/comm/error.hpp>
#include <gshard/ir/device_order.hpp>
#include <gshard/ir/graph.hpp>
#include <gshard/kernel/view.hpp>
#include <gshard/tensor/cluster.hpp>
#include <gshard/tensor/placement.hpp>
#include <gshard/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// A shard in the memory of this process.
struct file_shard {
  std::byte* data = nullptr;
  kernel::placement at;
  bool first = false;  // of the devices that hold equal shards; it writes them

  std::int64_t elements() const { return kernel::element_count(at.rank, at.extent); }
};

/// The shards of a tensor on this process, and what must be equal on all processes.
struct file_shards {
  dtype type = dtype::f32;
  std::vector<std::int64_t> extents;
  std::string places;  // the first elements of the shards of all devices
  std::vector<file_shard> mine;

  std::int64_t width() const { return size_of(type); }
  std::int64_t bytes() const {
    std::int64_t n = width();
    for (const std::int64_t e : extents) n *= e;
    return n;
  }
  /// Facts about a collective call that reads or writes them.
  std::vector<fact> facts(const std::string& call) const {
    return {{"the call", call},
            {"the element type of the tensor", std::string(cpp_name(type))},
            {"the extents of the tensor", extents_text(extents)},
            {"the first elements of the shards", places}};
  }
};

template <class T, class Spec>
file_shards file_shards_of(const tensor<T, Spec>& t) {
  const any_cluster& on = t.on();
  const std::span<const int> mesh = on.on().extents();
  const device_orders orders{Spec::named.order, on.size()};
  const auto position = [&](int device) { return orders.position(orders.rows.empty() ? 0 : 1, device); };
  file_shards all{dtype_of<T>, {t.extents().begin(), t.extents().end()}, {}, {}};
  for (int device = 0; device < on.size(); ++device) {
    const kernel::placement p = place(t.extents(), t.layout(), mesh, position(device));
    all.places += extents_text({p.offset.data(), std::size_t(p.rank)});
  }
  for (std::size_t i = 0; i < t.local_shards(); ++i) {
    const auto shard = t.local_shard(i);
    const auto coordinates = coordinates_of(mesh, position(on.devices()[i]));
    file_shard& mine = all.mine.emplace_back(reinterpret_cast<std::byte*>(const_cast<T*>(shard.data)), shard.at, true);
    for (std::size_t a = 0; a < mesh.size(); ++a)
      if ((t.layout().used() >> a & 1u) == 0 && coordinates[a] != 0) mine.first = false;
  }
  return all;
}

/// A tensor whose elements come from a file. `call`: text of the collective call. read(shards) reads the shards of this process.
/// Collective. Throws `gshard::error` on every process if one of them throws, or if they differ in the tensor.
template <class T, class Spec, class Read>
tensor<T, Spec> tensor_of_file(const any_cluster& on, const std::string& call, const std::vector<std::int64_t>& extents, Read read) {
  std::optional<tensor<T, Spec>> t;
  file_shards shards;
  const std::string problem = problem_of([&] {
    t.emplace(on, extents);
    shards = file_shards_of(*t);
  });
  on.on().agree(shards.facts(call), problem);
  on.on().agree({}, problem_of([&] { read(shards); }));
  return std::move(*t);
}

}}}  // namespace gshard::v0::detail
