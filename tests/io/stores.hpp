// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Stores with random shardings and known contents, which depend only on name and global index.

#include <gshard/core/base/hash.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace stores {

namespace gs = gshard;

struct tensor_case {
  std::string name;
  gs::dtype type;
  std::vector<std::int64_t> extents;
  bool trainable = true;
  bool is_cache = false;
};

/// Scalars, empty tensors, and extents that no mesh divides.
inline std::vector<tensor_case> usual() {
  return {{"bias", gs::dtype::f32, {7}},
          {"decoder.wi", gs::dtype::f32, {5, 3, 4}},
          {"double", gs::dtype::f64, {3, 5}},
          {"empty", gs::dtype::f32, {4, 0, 2}},
          {"one", gs::dtype::f64, {}},
          {"tokens", gs::dtype::i32, {1, 2, 3, 2}},
          {"adam.m.bias", gs::dtype::f32, {7}, false},
          {"adam.m.decoder.wi", gs::dtype::f32, {5, 3, 4}, false}};
}

/// These tensors, and caches between them.
inline std::vector<tensor_case> with_caches(std::vector<tensor_case> tensors) {
  tensors.insert(tensors.begin(), {"a.cache", gs::dtype::f32, {6, 2}, false, true});
  tensors.push_back({"decoder.cache", gs::dtype::c64, {3}, false, true});  // files do not contain its elements
  tensors.push_back({"state:cache", gs::dtype::i32, {}, false, true});     // files reserve its name
  return tensors;
}

inline gs::mesh_shape shape_of(const std::vector<int>& extents) {
  gs::mesh_shape mesh;
  for (std::size_t a = 0; a < extents.size(); ++a) mesh.push_back(std::string(1, char('a' + a)), gs::dynamic);
  return mesh;
}
inline gs::any_cluster simulated(const std::vector<int>& extents) {
  return {shape_of(extents), std::make_shared<gs::simulated>(extents)};
}

/// Every axis of the mesh shards a random dim or none, in any order of axes.
inline gs::sharding random_layout(std::mt19937_64& random, int rank, int axes) {
  gs::sharding layout = gs::sharding::replicated(rank);
  const int first = axes > 0 ? int(random() % std::uint64_t(axes)) : 0;
  for (int a = 0; a < axes; ++a)
    if (const int d = int(random() % std::uint64_t(rank + 1)); d < rank)
      layout[d].push_back((first + a) % axes);
  return layout;
}

inline gs::parameter_store::entry& add(gs::parameter_store& store, const tensor_case& t,
                                       const gs::sharding& layout, const std::vector<int>& positions = {}) {
  gs::detail::bound_value value;
  value.type = t.type;
  value.extents = t.extents;
  value.layout = layout;
  value.positions = positions;
  for (const int device : store.cluster().devices())
    value.places.push_back(gs::detail::place(value, store.cluster().backend().extents(), device));
  value.data.resize(value.places.size());
  gs::parameter p;
  p.name = gs::tensor_name(t.name);
  p.trainable = t.trainable;
  p.of_optimizer = !t.trainable && !t.is_cache;
  p.is_cache = t.is_cache;
  return store.demand(p, value, {});
}

inline gs::parameter_store make(const gs::any_cluster& on, const std::vector<tensor_case>& tensors,
                                std::uint64_t seed) {
  std::mt19937_64 random(seed);
  gs::parameter_store store(on);
  for (const tensor_case& t : tensors) {
    // Every other one has its own device order.
    std::vector<int> positions;
    if (random() % 2) {
      positions.resize(std::size_t(gs::device_count(on.backend().extents())));
      std::iota(positions.begin(), positions.end(), 0);
      std::shuffle(positions.begin(), positions.end(), random);
    }
    add(store, t, random_layout(random, int(t.extents.size()), on.mesh().rank()), positions);
  }
  return store;
}

/// Calls f(bytes of the element, expected bytes, number) for every element that this process holds.
template <class F>
void for_each_element(const gs::parameter_store& store, F f) {
  for (const auto& [name, entry] : store.entries()) {
    const auto size = std::size_t(gs::size_of(entry.value.type));
    const std::uint64_t of_name = gs::fnv1a<std::uint64_t>().add(name).value();
    for (std::size_t i = 0; i < entry.value.places.size(); ++i)
      gs::kernel::for_each_run(
          entry.value.places[i],
          [&, &entry = entry](std::int64_t local, std::int64_t global, std::int64_t n) {
            for (std::int64_t k = 0; k < n; ++k) {
              std::uint64_t bits = of_name + std::uint64_t(global + k) * 0x9e3779b97f4a7c15;
              bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9;
              bits ^= bits >> 32;
              f(entry.value.data[i] + std::size_t(local + k) * size,
                reinterpret_cast<const std::byte*>(&bits), size);
            }
          });
  }
}
inline void fill(gs::parameter_store& store) {
  for_each_element(
      store, [](std::byte* at, const std::byte* truth, std::size_t size) { std::memcpy(at, truth, size); });
}
inline void clear(gs::parameter_store& store) {
  for_each_element(store,
                   [](std::byte* at, const std::byte*, std::size_t size) { std::memset(at, 0, size); });
}
/// The number of elements that differ from `fill`.
inline int wrong(const gs::parameter_store& store) {
  int n = 0;
  for_each_element(store, [&](std::byte* at, const std::byte* truth, std::size_t size) {
    n += std::memcmp(at, truth, size) != 0;
  });
  return n;
}
/// The number of elements that are not zero.
inline int written(const gs::parameter_store& store) {
  int n = 0;
  for_each_element(store, [&](std::byte* at, const std::byte*, std::size_t size) {
    bool zero = true;
    for (std::size_t i = 0; i < size; ++i) zero = zero && at[i] == std::byte{};
    n += !zero;
  });
  return n;
}

}  // namespace stores
