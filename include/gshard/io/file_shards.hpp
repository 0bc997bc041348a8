// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The shards of a tensor as files read and write them, and tensors that are filled from a file.

#include <gshard/comm/agreement.hpp>
#include <gshard/comm/error.hpp>
#include <gshard/ir/graph.hpp>
#include <gshard/kernel/view.hpp>
#include <gshard/tensor/cluster.hpp>
#include <gshard/tensor/shard_table.hpp>
#include <gshard/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
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
  fact places;  // the sharding
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
            places};
  }
};

template <class T, class Spec>
file_shards file_shards_of(const tensor<T, Spec>& t) {
  const shard_table table(t.on(), t.extents(), Spec::named, sizeof(T));
  file_shards all{dtype_of<T>, {t.extents().begin(), t.extents().end()}, table.places(), {}};
  for (std::size_t i = 0; i < t.local_shards(); ++i) {
    const auto shard = t.local_shard(i);
    all.mine.push_back({reinterpret_cast<std::byte*>(const_cast<T*>(shard.data)), shard.at, table.is_first(t.on().devices()[i])});
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
