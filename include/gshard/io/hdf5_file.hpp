// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// HDF5 files and datasets that all processes of a cluster open, read and write together.

#include <gshard/core/ir/graph.hpp>
#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/io/file.hpp>
#include <gshard/io/file_shards.hpp>

#include <H5pubconf.h>
#ifdef H5_HAVE_PARALLEL
#if GSHARD_HAS_MPI
#include <gshard/cluster/mpi.hpp>
#else
#include <gshard/cluster/mpi_communicator.hpp>  // before hdf5.h: excludes the C++ bindings of mpi.h
#endif
#endif
#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// Owns an object of HDF5.
class hdf5_id {
 public:
  hdf5_id() = default;
  hdf5_id(hid_t id, herr_t (*how)(hid_t)) : id_(id), close_(how) {}
  hdf5_id(hdf5_id&& other) noexcept : id_(std::exchange(other.id_, hid_t(-1))), close_(other.close_) {}
  hdf5_id& operator=(hdf5_id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~hdf5_id() { close(); }

  hid_t get() const { return id_; }
  herr_t close() {
    const hid_t id = std::exchange(id_, hid_t(-1));
    return id < 0 ? 0 : close_(id);
  }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

/// HDF5 prints no errors during its lifetime.
class hdf5_quiet {
 public:
  hdf5_quiet() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  hdf5_quiet(const hdf5_quiet&) = delete;
  hdf5_quiet& operator=(const hdf5_quiet&) = delete;
  ~hdf5_quiet() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

/// The reason why the last call failed: ": unable to open file ...", or nothing.
inline std::string hdf5_reason() {
  std::string text;
  const auto first = [](unsigned, const H5E_error2_t* e, void* to) -> herr_t {
    auto& found = *static_cast<std::string*>(to);
    if (found.empty() && e->desc != nullptr) found = e->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first, &text);
  return text.empty() ? text : ": " + text;
}

/// The HDF5 types of elements in files and in memory, equal to those of h5py: complex numbers are compounds of r and i, booleans an
/// enumeration of FALSE and TRUE.
struct hdf5_type {
  hdf5_id in_file, in_memory;
};
/// A float of 16 bits with this many bits of mantissa.
inline hid_t hdf5_half(std::size_t mantissa) {
  const hid_t t = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(t, 15, mantissa, 15 - mantissa, 0, mantissa);
  H5Tset_size(t, 2);
  H5Tset_ebias(t, (std::size_t(1) << (14 - mantissa)) - 1);
  return t;
}
inline hid_t hdf5_complex(hid_t part) {
  const std::size_t size = H5Tget_size(part);
  const hid_t t = H5Tcreate(H5T_COMPOUND, 2 * size);
  H5Tinsert(t, "r", 0, part);
  H5Tinsert(t, "i", size, part);
  return t;
}
inline hid_t hdf5_boolean() {
  const hid_t t = H5Tenum_create(H5T_STD_I8LE);
  constexpr signed char no = 0, yes = 1;
  H5Tenum_insert(t, "FALSE", &no);
  H5Tenum_insert(t, "TRUE", &yes);
  return t;
}
inline hdf5_type hdf5_type_of(dtype t) {
  const auto both = [](auto make) { return hdf5_type{{make(), H5Tclose}, {make(), H5Tclose}}; };
  const auto known = [](hid_t file, hid_t memory) { return hdf5_type{{H5Tcopy(file), H5Tclose}, {H5Tcopy(memory), H5Tclose}}; };
  switch (t) {
    case dtype::f32: return known(H5T_IEEE_F32LE, H5T_NATIVE_FLOAT);
    case dtype::f64: return known(H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE);
    case dtype::i32: return known(H5T_STD_I32LE, H5T_NATIVE_INT32);
    case dtype::i64: return known(H5T_STD_I64LE, H5T_NATIVE_INT64);
    case dtype::c64: return {{hdf5_complex(H5T_IEEE_F32LE), H5Tclose}, {hdf5_complex(H5T_NATIVE_FLOAT), H5Tclose}};
    case dtype::c128: return {{hdf5_complex(H5T_IEEE_F64LE), H5Tclose}, {hdf5_complex(H5T_NATIVE_DOUBLE), H5Tclose}};
    case dtype::boolean: return both(hdf5_boolean);
    case dtype::f16: return both([] { return hdf5_half(10); });
    case dtype::bf16: return both([] { return hdf5_half(7); });
    case dtype::count_: break;
  }
  throw error("hdf5: this element type is unknown there");
}
/// "32-bit floats"
inline std::string text_of_hdf5_type(hid_t type) {
  const std::string bits = std::to_string(8 * H5Tget_size(type)) + "-bit ";
  switch (H5Tget_class(type)) {
    case H5T_FLOAT: {
      std::size_t sign = 0, exponent = 0, bits_of_exponent = 0, mantissa = 0, bits_of_mantissa = 0;
      H5Tget_fields(type, &sign, &exponent, &bits_of_exponent, &mantissa, &bits_of_mantissa);
      return bits + "floats" + (H5Tget_size(type) == 2 ? " with " + std::to_string(bits_of_mantissa) + " bits of mantissa" : "");
    }
    case H5T_INTEGER: return bits + (H5Tget_sign(type) == H5T_SGN_NONE ? "unsigned integers" : "integers");
    case H5T_COMPOUND:
      if (H5Tget_nmembers(type) == 2 && H5Tget_member_index(type, "r") == 0 && H5Tget_member_index(type, "i") == 1)
        return "complex numbers of " + text_of_hdf5_type(hdf5_id(H5Tget_member_type(type, 0), H5Tclose).get());
      return "elements that are not numbers";
    case H5T_ENUM:
      if (signed char value = 0; H5Tget_nmembers(type) == 2 && H5Tget_size(type) == 1 && H5Tenum_valueof(type, "TRUE", &value) >= 0)
        return "booleans";
      return "elements that are not numbers";
    default: return "elements that are not numbers";
  }
}

inline void check_dataset_name(const std::string& name) {
  const std::string path = "/" + name + "/";
  for (const std::string_view never : {std::string_view("//"), std::string_view("/./"), std::string_view("\0", 1)})
    if (path.find(never) != path.npos) throw error("hdf5: a dataset has a name such as u or group/u, without empty parts");
}

/// The driver of a backend's processes. Throws if HDF5 has none.
inline hdf5_id hdf5_access(const backend& on) {
  hdf5_id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  bool set = H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG) >= 0;
  if (on.processes() > 1) {
#if defined(H5_HAVE_PARALLEL) && GSHARD_HAS_MPI
    if (const auto* const mpi = dynamic_cast<const mpi_backend*>(&on))
      set = set && H5Pset_fapl_mpio(access.get(), mpi->communicator(), MPI_INFO_NULL) >= 0 &&
            H5Pset_all_coll_metadata_ops(access.get(), true) >= 0 && H5Pset_coll_metadata_write(access.get(), true) >= 0;
    else
#endif
      throw error("hdf5: files of several processes need an HDF5 with MPI (Debian: libhdf5-openmpi-dev)");
  }
  if (!set) throw error("hdf5: its driver cannot be set" + hdf5_reason());
  return access;
}

/// A file that all processes have opened. Each member function is collective. Except read(), all throw `gshard::error` on every process,
/// because HDF5 may wait for processes that do not make the same calls.
class hdf5_file {
 public:
  enum class mode : std::uint8_t { make, change, read };

  /// `name`: the file to open; `path`: its name in errors.
  hdf5_file(backend& on, const std::string& name, std::string path, mode m, const hdf5_id& access)
      : on_(&on), path_(std::move(path)), transfer_(H5Pcreate(H5P_DATASET_XFER), H5Pclose) {
    together([&] {
#if defined(H5_HAVE_PARALLEL) && GSHARD_HAS_MPI
      if (on.processes() > 1) checked(H5Pset_dxpl_mpio(transfer_.get(), H5FD_MPIO_COLLECTIVE), "its transfers cannot be set");
#endif
      const char* const c = checked_path(name).c_str();
      const hid_t id = m == mode::make ? H5Fcreate(c, H5F_ACC_TRUNC, H5P_DEFAULT, access.get())
                                       : H5Fopen(c, m == mode::read ? H5F_ACC_RDONLY : H5F_ACC_RDWR, access.get());
      file_ = hdf5_id(checked(id, m == mode::make ? "cannot be made as an HDF5 file" : "cannot be opened as an HDF5 file"), H5Fclose);
    });
  }

  /// Writes a dataset, which gets its name when it is complete. It then replaces a dataset of that name.
  void write(const std::string& name, const file_shards& shards) {
    const hdf5_type type = hdf5_type_of(shards.type);
    const std::string what = "dataset " + name;
    bool replaces = false;
    hdf5_id made, space;
    together([&] {
      replaces = has(name);
      if (replaces) open(name);  // throws for a group
      space = space_of(shards.extents);
      const hdf5_id options(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
      checked(H5Pset_fill_time(options.get(), H5D_FILL_TIME_NEVER), what + " cannot be made");
      const hid_t id = H5Dcreate_anon(file_.get(), type.in_file.get(), space.get(), options.get(), H5P_DEFAULT);
      made = hdf5_id(checked(id, what + " cannot be made"), H5Dclose);
    });
    together([&] {
      each_part(shards, space, true, [&](hid_t memory, const file_shard& s) {
        checked(H5Dwrite(made.get(), type.in_memory.get(), memory, space.get(), transfer_.get(), s.data), what + " cannot be written");
      });
    });
    together([&] {
      const hdf5_id links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
      checked(H5Pset_create_intermediate_group(links.get(), 1), what + " cannot get its name");
      if (replaces) checked(H5Ldelete(file_.get(), name.c_str(), H5P_DEFAULT), what + " cannot be replaced");
      checked(H5Olink(made.get(), file_.get(), name.c_str(), links.get(), H5P_DEFAULT), what + " cannot get its name");
      checked(made.close(), what + " cannot be written");
    });
  }

  /// Opens a dataset of `rank` dims to be read, and returns its extents.
  std::vector<std::int64_t> find(const std::string& name, dtype type, int rank) {
    std::vector<hsize_t> extents;
    together([&] {
      const hdf5_type known = hdf5_type_of(type);
      const hid_t wanted = known.in_memory.get();
      if (!has(name)) throw error(path_ + ": has no dataset " + name);
      read_ = open(name);
      const hdf5_id found(H5Dget_type(read_.get()), H5Tclose), space(H5Dget_space(read_.get()), H5Sclose);
      if (text_of_hdf5_type(found.get()) != text_of_hdf5_type(wanted))
        throw error(path_ + ": dataset " + name + " has " + text_of_hdf5_type(found.get()) + ", the tensor " + text_of_hdf5_type(wanted));
      const int dims = H5Sget_simple_extent_type(space.get()) == H5S_NULL ? -1 : H5Sget_simple_extent_ndims(space.get());
      if (dims != rank)
        throw error(path_ + ": dataset " + name + " has " + (dims < 0 ? "no elements" : std::to_string(dims) + " dims") + ", the tensor " +
                    std::to_string(rank) + " dims");
      extents.resize(std::size_t(rank));
      checked(H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr), "dataset " + name + " cannot be opened");
    });
    return {extents.begin(), extents.end()};
  }
  /// Reads the shards of this process from the dataset that find() opened. Throws on this process alone.
  void read(const file_shards& shards) {
    const hdf5_id space(checked(H5Dget_space(read_.get()), "the dataset cannot be read"), H5Sclose);
    const hdf5_type type = hdf5_type_of(shards.type);
    each_part(shards, space, false, [&](hid_t memory, const file_shard& s) {
      checked(H5Dread(read_.get(), type.in_memory.get(), memory, space.get(), transfer_.get(), s.data),
              "the dataset cannot be read");
    });
  }

  /// Closes the file after writing.
  void close() {
    together([&] { checked(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), "cannot be written"); });
    together([&] { checked(file_.close(), "cannot be written"); });
  }

 private:
  backend* on_;
  std::string path_;
  hdf5_id transfer_, file_, read_;  // destroyed in reverse order

  template <class F>
  void together(F f) {
    on_->agree({}, problem_of(f));
  }
  template <class Result>
  Result checked(Result result, const std::string& what) const {
    if (result < 0) throw error(path_ + ": " + what + hdf5_reason());
    return result;
  }
  /// True if there is a link of this name. HDF5 must be asked for each part of a name.
  bool has(const std::string& name) const {
    for (std::size_t end = name.find('/');; end = name.find('/', end + 1)) {
      if (checked(H5Lexists(file_.get(), name.substr(0, end).c_str(), H5P_DEFAULT), name + " cannot be looked for") == 0) return false;
      if (end == name.npos) return true;
    }
  }
  hdf5_id open(const std::string& name) const {
    const hdf5_id object(checked(H5Oopen(file_.get(), name.c_str(), H5P_DEFAULT), name + " cannot be opened"), H5Oclose);
    if (H5Iget_type(object.get()) != H5I_DATASET) throw error(path_ + ": " + name + " is a group, not a dataset");
    return {checked(H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), name + " cannot be opened"), H5Dclose};
  }
  hdf5_id space_of(const std::vector<std::int64_t>& extents) const {
    const std::vector<hsize_t> sizes(extents.begin(), extents.end());
    const hid_t id = sizes.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(int(sizes.size()), sizes.data(), nullptr);
    return {checked(id, "its extents are refused"), H5Sclose};
  }
  /// Calls f(memory, shard) with the shard's elements selected in `space`, and a space of its memory. With several processes, f is also
  /// called for a shard with nothing to transfer, because all of them take part in a transfer.
  template <class F>
  void each_part(const file_shards& shards, const hdf5_id& space, bool writes, F f) const {
    if (shards.bytes() == 0) return;  // some versions refuse an empty collective transfer
    for (const file_shard& s : shards.mine) {
      const bool any = s.elements() > 0 && (s.first || !writes);
      if (!any && on_->processes() == 1) continue;
      const auto rank = std::size_t(s.at.rank);
      const hdf5_id memory = space_of({s.at.extent.begin(), s.at.extent.begin() + s.at.rank});
      std::vector<hsize_t> offset(s.at.offset.begin(), s.at.offset.begin() + s.at.rank);
      std::vector<hsize_t> extent(s.at.extent.begin(), s.at.extent.begin() + s.at.rank);
      herr_t code = 0;
      if (!any) code = H5Sselect_none(space.get()) < 0 || H5Sselect_none(memory.get()) < 0 ? -1 : 0;
      else if (rank > 0) code = H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, offset.data(), nullptr, extent.data(), nullptr);
      checked(code, "a shard cannot be selected");
      f(memory.get(), s);
    }
  }
};

}}}  // namespace gshard::v0::detail
