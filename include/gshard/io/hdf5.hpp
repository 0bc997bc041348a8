// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reads and writes tensors as datasets of HDF5 files, each process its shards.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/exec/process/error.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/exec/tensor/tensor.hpp>
#include <gshard/io/collective.hpp>
#include <gshard/io/file.hpp>
#include <gshard/io/file_shards.hpp>
#include <gshard/io/hdf5_file.hpp>
#include <gshard/io/shared_file.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

/// Throws if an existing file cannot grow by `bytes`. HDF5 damages a file if the disk gets full during a change.
inline void check_room(const std::string& path, std::int64_t bytes) {
  const descriptor file(open_file(path, O_RDWR));
  struct stat status;
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) throw_errno(path, "cannot be opened");
  if (!S_ISREG(status.st_mode)) throw error(path + ": is not a regular file");
  resize(file, path, status.st_size, status.st_size + bytes);
  resize(file, path, status.st_size + bytes, status.st_size);
}

inline void save_hdf5(backend& on, const std::string& path, const std::string& dataset, const file_shards& shards) {
  const thread_rule::use in_use = on.enter();
  const hdf5_quiet quiet;
  hdf5_id access;
  const process_error problem = problem_of([&] {
    check_dataset_name(dataset);
    access = hdf5_access(on);
  });
  on.begin(shards.facts("save_hdf5 of dataset " + dataset + " in " + path), problem);
  constexpr std::int64_t headers = 1 << 16;  // more than HDF5 adds to the elements
  bool is_new = false;
  on_leader(on, [&] {
    if (struct stat status; ::stat(path.c_str(), &status) != 0) is_new = true;
    else check_room(path, shards.bytes() + headers);
  });
  on.broadcast(std::as_writable_bytes(std::span(&is_new, 1)));
  std::optional<shared_file> made;  // next to an old file it only checks that all processes see its directory
  if (is_new || on.processes() > 1) made.emplace(on, path, is_new ? shards.bytes() + headers : 0);
  {
    hdf5_file file(on, is_new ? made->temporary() : path, path, is_new ? hdf5_file::mode::make : hdf5_file::mode::change, access);
    file.write(dataset, shards);
    file.close();
  }
  if (is_new) made->commit({}, [] {});
  else on.agree({}, problem_of([&] { flush(descriptor(open_file(path, O_RDONLY)), path); }));
}

}  // namespace detail

/// save_hdf5(path, "u", t): writes a tensor as a dataset of an HDF5 file, in row-major order. "group/u" is in a group, which is made if it
/// is missing. A new file gets its name when it is complete and on the disk. The dataset is added to an existing file. When it is complete,
/// it replaces a dataset of the same name and its attributes. The file does not shrink then; h5repack does that. A process must not be
/// killed while it changes an existing file.
///
/// The processes write through MPI-IO, all in one collective transfer, which combines short runs. On simulated devices, and on one process,
/// HDF5 needs no MPI. The path must name the same file on all processes, on a file system that they share.
/// Collective. Communicates: the messages of MPI-IO to the processes that write.
/// Compile time: that the tensor is not a partial sum.
/// Throws: `gshard::error`, on every process: if they pass different paths, names, extents or shardings; if the path is another file on one
/// of them; if there are several and HDF5 is built without MPI; if the file cannot be written, or is not an HDF5 file; if the name is that
/// of a group.
/// @see load_hdf5, save_npy
template <class T, class Spec>
void save_hdf5(const std::string& path, const std::string& dataset, const tensor<T, Spec>& t) {
  static_assert(!tensor<T, Spec>::is_partial, "gshard: save_hdf5 of a partial sum; reshard it first");
  detail::save_hdf5(t.cluster().backend(), path, dataset, detail::file_shards_of(t));
}

/// load_hdf5<float, P<"x", none>>(cluster, path, "u"): the tensor of a dataset, on any mesh. The dataset may be chunked, compressed or
/// big-endian. Its element type is T. Each process reads its own shards, all in one collective transfer.
///
/// All processes must find the same content at the path: one shared file, or copies of it. Its size and samples of it are compared.
/// Collective. Communicates: the messages of MPI-IO from the processes that read.
/// Compile time: that the sharding is not a partial sum.
/// Throws: `gshard::error`, on every process: if they pass different paths, names or shardings, or find different files; if there are
/// several and HDF5 is built without MPI; if one cannot read the file; if the file has no such dataset, or one with other elements or
/// another number of dims.
/// @see save_hdf5
template <class T, class Spec>
tensor<T, Spec> load_hdf5(const any_cluster& on, const std::string& path, const std::string& dataset) {
  static_assert(!tensor<T, Spec>::is_partial, "gshard: load_hdf5 of a partial sum; a file has complete tensors");
  const detail::thread_rule::use in_use = on.backend().enter();
  const detail::hdf5_quiet quiet;
  const std::string call = "load_hdf5 of dataset " + dataset + " in " + path;
  detail::hdf5_id access;
  const process_error problem = detail::problem_of([&] {
    detail::check_dataset_name(dataset);
    access = detail::hdf5_access(on.backend());
  });
  on.backend().begin(std::vector<fact>{{"the call", call}}, problem);
  detail::open_for_all(on.backend(), call, path, [](const input_file&) {});
  detail::hdf5_file file(on.backend(), path, path, detail::hdf5_file::mode::read, access);
  const std::vector<std::int64_t> extents = file.find(dataset, dtype_of<T>, Spec::rank);
  return detail::tensor_of_file<T, Spec>(on, call, extents, [&](const detail::file_shards& shards) { file.read(shards); });
}

}}  // namespace gshard::v0
