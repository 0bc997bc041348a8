// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reads and writes tensors as NumPy .npy files, each process its shards.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/exec/tensor/tensor.hpp>
#include <gshard/io/file.hpp>
#include <gshard/io/file_shards.hpp>
#include <gshard/io/npy_header.hpp>
#include <gshard/io/shared_file.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

static_assert(std::endian::native == std::endian::little, "gshard: files are written as memory holds them, little-endian");

inline void save_npy(const any_cluster& on, const std::string& path, const file_shards& shards) {
  const thread_rule::use in_use = on.backend().enter();
  on.backend().begin(shards.facts("save_npy of " + path));
  const std::string header = npy_header_text(shards.type, shards.extents);
  shared_file file(on.backend(), path, std::int64_t(header.size()) + shards.bytes());
  const process_error problem = problem_of([&] {
    for (const file_shard& s : shards.mine)
      if (s.first)
        kernel::for_each_run(s.at, [&](std::int64_t local, std::int64_t global, std::int64_t n) {
          const std::int64_t width = shards.width();
          file.write(std::int64_t(header.size()) + global * width, {s.data + local * width, std::size_t(n * width)});
        });
  });
  file.commit(problem, [&] { file.write(0, std::as_bytes(std::span(header))); });
}

}  // namespace detail

/// save_npy(path, t): writes a tensor as a NumPy file, complete and in row-major order. The file does not depend on the mesh, bit for bit.
/// Each process writes its own shards. The first device with an equal shard writes it. The file gets its name when it is complete and on
/// the disk. Until then, or if anything fails, an existing file of that name is unchanged.
///
/// The path must name the same file on all processes, on a file system that they share. Each contiguous run of a shard is one write.
/// Collective. Communicates: no elements.
/// Compile time: that the tensor is not a partial sum, and that NumPy has its element type.
/// Throws: `gshard::error`, on every process: if they pass different paths, extents or shardings; if the path is another file on one of
/// them; if the file cannot be written (the text has its name and the reason).
/// @see load_npy, save_hdf5
template <class T, class Spec>
void save_npy(const std::string& path, const tensor<T, Spec>& t) {
  static_assert(!tensor<T, Spec>::is_partial, "gshard: save_npy of a partial sum; reshard it first");
  static_assert(!detail::npy_descr(dtype_of<T>).empty(), "gshard: NumPy has no bfloat16: cast the tensor to float");
  detail::save_npy(t.cluster(), path, detail::file_shards_of(t));
}

/// load_npy<float, P<"x">>(cluster, path): the tensor of a NumPy file, on any mesh. The file is in row-major or column-major (Fortran)
/// order, little-endian, of element type T, and of version 1.0 to 3.0. Each process reads its own shards.
///
/// All processes must find the same content at the path: one shared file, or copies of it. Its size and samples of it are compared.
/// Collective. Communicates: no elements.
/// Compile time: that the sharding is not a partial sum, and that NumPy has the element type.
/// Throws: `gshard::error`, on every process: if they pass different paths or shardings, or find different files; if one cannot read the
/// file; if the file is not valid, or has elements of another type or another number of dims.
/// @see save_npy
template <class T, class Spec>
tensor<T, Spec> load_npy(const any_cluster& on, const std::string& path) {
  static_assert(!tensor<T, Spec>::is_partial, "gshard: load_npy of a partial sum; a file has complete tensors");
  static_assert(!detail::npy_descr(dtype_of<T>).empty(), "gshard: NumPy has no bfloat16: load the tensor as float");
  const std::string call = "load_npy of " + path;
  const detail::thread_rule::use in_use = on.backend().enter();
  on.backend().begin(std::vector<fact>{{"the call", call}});
  npy_header header;
  const input_file file = detail::open_for_all(on.backend(), call, path, [&](const input_file& opened) {
    header = read_npy_header(path, opened.size(), [&](std::int64_t at, std::span<std::byte> to) { opened.read(at, to); });
    if (header.type != dtype_of<T> || header.shape.size() != std::size_t(Spec::rank))
      throw error(path + ": has " + std::to_string(header.shape.size()) + " dims of " + std::string(cpp_name(header.type)) +
                  ", not the tensor's " + std::to_string(Spec::rank) + " of " + std::string(cpp_name(dtype_of<T>)));
  });
  return detail::tensor_of_file<T, Spec>(on, call, header.shape, [&](const detail::file_shards& shards) {
    const auto read = [&](std::int64_t at, std::span<std::byte> to) { file.read(header.data_at + at, to); };
    for (const detail::file_shard& s : shards.mine)
      if (header.column_major) detail::read_column_major(s.at, shards.width(), s.data, read);
      else detail::read_runs(s.at, shards.width(), s.data, read);
  });
}

}}  // namespace gshard::v0
