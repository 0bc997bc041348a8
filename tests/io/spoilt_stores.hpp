// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/program/check_replicas.hpp>
#include <gshard/io/checkpoint.hpp>

#include "../complaint.hpp"
#include "stores.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

/// Checkpoints of stores with non-finite numbers, or with copies that differ.
namespace spoilt_stores {

namespace gs = gshard;

/// Writes a number over element i of a shard, if this process holds it.
inline void write(const gs::parameter_store& store, const gs::detail::bound_value& v, int device, std::int64_t i, double number) {
  for (std::size_t d = 0; d < store.cluster().devices().size(); ++d) {
    if (store.cluster().devices()[d] != device) continue;
    if (v.type == gs::dtype::f64) v.as<double>(d)[i] = number;
    else v.as<float>(d)[i] = float(number);
  }
}

/// Each element of each tensor in turn, on all its copies. `path`: the path of the file. `exists(path)`: true on all processes if it
/// exists.
template <class Exists>
void check_not_finite(const gs::any_cluster& on, const std::string& path, Exists exists) {
  const gs::checkpoint_options everything{.scope = gs::checkpoint_scope::everything};
  gs::parameter_store store = stores::make(on, stores::usual(), 4);
  stores::fill(store);
  store.set_steps(17);
  std::uint32_t turn = 0;
  for (const auto& [name, entry] : store.entries()) {
    if (entry.value.type == gs::dtype::i32) continue;
    CAPTURE(name);
    const gs::detail::bound_value& v = entry.value;
    for (int device = 0; device < on.size(); ++device) {
      const gs::kernel::placement at = gs::detail::place(v, on.backend().extents(), device);
      const std::int64_t n = gs::kernel::element_count(at.rank, at.extent);
      if (n == 0) continue;
      const std::int64_t i = ++turn % n;
      const double number = turn % 3 == 0 ? std::nan("") : turn % 3 == 1 ? std::numeric_limits<double>::infinity() : -INFINITY;
      write(store, v, device, i, number);
      std::string said;
      try {
        gs::save(store, path, everything);
      } catch (const gs::not_finite_error& e) {
        said = e.what();
        CHECK(e.step == 17);
      }
      const std::string index = at.rank == 0 ? " is " : ": element " + gs::detail::global_index_text(at, i) + " is ";
      const char* const text = turn % 3 == 0 ? "nan" : turn % 3 == 1 ? "inf" : "-inf";
      CHECK(said == "tensor \"" + (entry.trainable ? name : "state:" + name) + "\"" + index + text + ", in step 17 on device " +
                        std::to_string(device));
      CHECK(!exists(path));
      if (!entry.trainable) gs::save(store, path + ".parameters");  // neither saved nor checked
      stores::fill(store);
    }
  }
  gs::save(store, path, everything);
  CHECK(exists(path));
}

/// NaN is saved if requested, and loaded.
inline void check_allowed(const gs::any_cluster& on, const std::string& path) {
  gs::parameter_store store = stores::make(on, stores::usual(), 4), other = stores::make(on, stores::usual(), 4);
  stores::fill(store);
  const gs::detail::bound_value &v = store.find("double")->value, &copy = other.find("double")->value;
  for (std::size_t d = 0; d < v.data.size(); ++d)
    for (std::int64_t i = 0; i < v.elements(d); ++i) v.as<double>(d)[i] = std::nan("");
  gs::save(store, path, {}, {.scope = gs::checkpoint_scope::everything, .allow_not_finite = true});
  gs::load(other, path, {.scope = gs::checkpoint_scope::everything});
  for (std::size_t d = 0; d < v.data.size(); ++d)
    for (std::int64_t i = 0; i < v.elements(d); ++i) CHECK(std::isnan(copy.as<double>(d)[i]));
}

/// A checkpoint of everything compares copies. A checkpoint of the parameters does not.
inline void check_copies(const gs::any_cluster& on, const std::string& path) {
  gs::parameter_store store = stores::make(on, stores::usual(), 4);
  stores::fill(store);
  const gs::detail::bound_value& v = store.find("one")->value;  // a scalar: on all devices
  write(store, v, on.size() - 1, 0, 123);
  const std::string said = complaint([&] { gs::save(store, path, {.scope = gs::checkpoint_scope::everything}); });
  CHECK(said.starts_with("the copies of tensor \"one\"") == (on.size() > 1));
  CHECK(contains(said, " 123 on device ") == (on.size() > 1));
  CHECK(complaint([&] { gs::save(store, path); }) == "");
}

}  // namespace spoilt_stores
