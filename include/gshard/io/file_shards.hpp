// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The shards of a tensor for files, reads of a shard from a file, and tensors that are filled from a file.

#include <gshard/core/ir/graph.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/kernel/move/copy.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/exec/tensor/shard_table.hpp>
#include <gshard/exec/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
  bool first = false;  // true for the first device with an equal shard, which writes it

  std::int64_t elements() const { return kernel::element_count(at.rank, at.extent); }
};

/// The shards of a tensor on this process, and the facts that must be equal on all processes.
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
  const shard_table table(t.cluster(), t.extents(), Spec::named, sizeof(T));
  file_shards all{dtype_of<T>, {t.extents().begin(), t.extents().end()}, table.places(), {}};
  for (std::size_t i = 0; i < t.local_shards(); ++i) {
    const auto shard = t.local_shard(i);
    all.mine.push_back({reinterpret_cast<std::byte*>(const_cast<T*>(shard.data)), shard.at, table.is_first(t.cluster().devices()[i])});
  }
  return all;
}

/// A tensor whose elements come from a file. `call`: text of the collective call. read(shards) reads the shards of this process.
/// Collective. Throws `gshard::error` on every process if one of them throws, or if they differ in the tensor.
template <class T, class Spec, class Read>
tensor<T, Spec> tensor_of_file(const any_cluster& on, const std::string& call, const std::vector<std::int64_t>& extents, Read read) {
  std::optional<tensor<T, Spec>> t;
  file_shards shards;
  const process_error problem = problem_of([&] {
    t.emplace(on, extents);
    shards = file_shards_of(*t);
  });
  on.backend().agree(shards.facts(call), problem);
  on.backend().agree({}, problem_of([&] { read(shards); }));
  return std::move(*t);
}

/// Reads the elements of a placement, of `width` bytes, from a row-major array. read(at, to) reads bytes of the array. Runs that are less
/// than a page apart are read together.
template <class Read>
void read_runs(const kernel::placement& p, std::int64_t width, std::byte* to, const Read& read) {
  constexpr std::int64_t page = 4096, most = std::int64_t(1) << 20;
  struct run {
    std::int64_t local, at, bytes;
    std::int64_t end() const { return at + bytes; }
  };
  std::vector<run> near;
  std::vector<std::byte> buffer;
  const auto read_near = [&] {
    if (near.size() == 1) read(near[0].at, std::span(to + near[0].local, std::size_t(near[0].bytes)));
    if (near.size() > 1) {
      buffer.resize(std::size_t(near.back().end() - near[0].at));
      read(near[0].at, std::span(buffer));
      for (const run& r : near) std::memcpy(to + r.local, buffer.data() + (r.at - near[0].at), std::size_t(r.bytes));
    }
    near.clear();
  };
  kernel::for_each_run(p, [&](std::int64_t local, std::int64_t global, std::int64_t n) {
    const run next{local * width, global * width, n * width};
    if (!near.empty() && (next.at - near.back().end() >= page || next.end() - near[0].at > most)) read_near();
    near.push_back(next);
  });
  read_near();
}

/// Reads from a column-major array, which is the row-major array of the dims in reverse.
template <class Read>
void read_column_major(const kernel::placement& p, std::int64_t width, std::byte* to, const Read& read) {
  constexpr std::int64_t most = std::int64_t(1) << 26;
  const auto rank = std::size_t(p.rank);
  if (rank < 2) return read_runs(p, width, to, read);
  kernel::placement turned = p;
  for (auto* of : {&turned.extent, &turned.offset, &turned.global}) std::reverse(of->begin(), of->begin() + p.rank);
  const std::int64_t columns = turned.extent[0], elements = kernel::element_count(p.rank, p.extent);
  if (elements == 0) return;
  const std::int64_t at_once = std::max<std::int64_t>(1, most / (elements / columns * width));
  std::vector<std::byte> piece;
  for (std::int64_t first = 0; first < columns; first += at_once) {
    turned.extent[0] = std::min(at_once, columns - first);
    turned.offset[0] = p.offset[rank - 1] + first;
    piece.resize(std::size_t(elements / columns * turned.extent[0] * width));
    read_runs(turned, width, piece.data(), read);
    kernel::index_array extent = p.extent, stride = kernel::row_major_strides(p.rank, turned.extent);
    extent[rank - 1] = turned.extent[0];
    std::reverse(stride.begin(), stride.begin() + p.rank);
    kernel::copy_block(piece.data(), stride, to + first * width, kernel::row_major_strides(p.rank, p.extent), extent, p.rank, width);
  }
}

}}}  // namespace gshard::v0::detail
