// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Clusters: a mesh bound to a backend (one device, simulated devices or MPI processes).

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/reason.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/backend/loopback.hpp>
#include <gshard/exec/backend/simulated.hpp>
#include <gshard/exec/tensor/any_mesh.hpp>

#if GSHARD_HAS_BODIES
#include <gshard/exec/backend/balanced_extents.hpp>
#include <gshard/exec/tensor/lru_cache.hpp>
#endif

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {
/// The extents of all axes. `given`: of all axes, or of those without a static extent. The error names the axes without an extent.
std::vector<int> all_extents(const mesh_shape& mesh, const std::vector<int>& given);
/// The extents of a mesh on `devices` devices. The error names the axes whose static extents do not fit.
std::vector<int> extents_on(const mesh_shape& mesh, int devices);
class lru_cache;
struct cluster_access;
}  // namespace detail

/// A mesh with bound extents on a backend. A handle: copies share the backend.
class any_cluster {
 public:
  /// Collective. Throws `gshard::error`, on every process, if the mesh's extents are not the backend's, or if the processes have
  /// different axes (names or order).
  any_cluster(const mesh_shape& mesh, std::shared_ptr<gshard::backend> on);

  const mesh_shape& mesh() const { return mesh_; }
  /// Throws `gshard::error` if this handle, or the tensor that it belongs to, was moved from.
  gshard::backend& backend() const {
    if (!backend_) throw error("cluster: a tensor or cluster is used after it was moved from");
    return *backend_;
  }
  /// The number of devices along an axis.
  int extent(int axis) const { return backend().extents()[std::size_t(axis)]; }
  /// The number of devices.
  int size() const { return device_count(backend().extents()); }
  /// The devices whose shards this process holds: one under MPI, all under simulation.
  std::span<const int> devices() const { return backend().devices(); }

  bool same_as(const any_cluster& other) const { return backend_ == other.backend_; }

 private:
  friend detail::cluster_access;
  struct owned;
  mesh_shape mesh_;
  std::shared_ptr<gshard::backend> backend_;
  detail::lru_cache* kept_ = nullptr;

  void check_extents() const;
};

/// The parts of a cluster that operations on tensors use.
struct detail::cluster_access {
  /// The cache that all handles of a cluster share, until the last of them is destroyed.
  static lru_cache& kept(const any_cluster& on) { return *on.kept_; }
  /// A handle that does not keep the cluster alive, for objects in its cache.
  static any_cluster unowned(const any_cluster& on) {
    any_cluster here = on;
    here.backend_ = std::shared_ptr<gshard::backend>(std::shared_ptr<void>(), on.backend_.get());
    return here;
  }
};

#if GSHARD_HAS_BODIES

struct any_cluster::owned {
  explicit owned(std::shared_ptr<gshard::backend> b) : on(std::move(b)) {}
  std::shared_ptr<gshard::backend> on;
  detail::lru_cache kept;  // destroyed before the backend, which it may use
};

GSHARD_INLINE std::vector<int> detail::all_extents(const mesh_shape& mesh, const std::vector<int>& given) {
  if (given.size() == std::size_t(mesh.rank())) return given;
  std::vector<int> all(mesh.extents.data(), mesh.extents.data() + mesh.rank());
  std::string lacking;
  std::size_t used = 0;
  for (int a = 0; a < mesh.rank(); ++a) {
    if (all[std::size_t(a)] != dynamic) continue;
    if (used < given.size()) all[std::size_t(a)] = given[used];
    else lacking.append(lacking.empty() ? ", and none for \"" : ", \"").append(mesh.name(a)) += '"';
    ++used;
  }
  if (used == given.size()) return all;
  throw error("cluster: the mesh has " + std::to_string(mesh.rank()) + " axes; extents are given for " + std::to_string(given.size()) +
              lacking);
}

GSHARD_INLINE std::vector<int> detail::extents_on(const mesh_shape& mesh, int devices) {
  std::int64_t fixed = 1;
  bool all_fixed = true;
  std::string text;
  for (int a = 0; a < mesh.rank(); ++a) {
    const int extent = mesh.static_extent(a);
    all_fixed = all_fixed && extent != dynamic;
    if (extent == dynamic) continue;
    fixed *= extent;
    text.append(text.empty() ? "\"" : ", \"").append(mesh.name(a)).append("\" has ") += std::to_string(extent);
  }
  if (devices > 0 && (all_fixed ? devices != fixed : devices % fixed != 0))
    throw error("cluster: the mesh does not fit " + std::to_string(devices) + " devices: " +
                (text.empty() ? "it has no axes" : "axis " + text));
  return balanced_extents(devices, std::span(mesh.extents.data(), std::size_t(mesh.count)));
}

GSHARD_INLINE any_cluster::any_cluster(const mesh_shape& mesh, std::shared_ptr<gshard::backend> on) : mesh_(mesh) {
  const auto all = std::make_shared<owned>(std::move(on));
  backend_ = std::shared_ptr<gshard::backend>(all, all->on.get());
  kept_ = &all->kept;
  std::string axes;
  for (int a = 0; a < mesh_.rank(); ++a) axes.append(a ? " x " : "").append(mesh_.name(a));
  backend_->begin(std::vector<fact>{{"the call", "making a cluster"}, {"the axes of the mesh", axes}},
                  detail::problem_of([&] { check_extents(); }));
}

GSHARD_INLINE void any_cluster::check_extents() const {
  const std::span<const int> bound = backend_->extents();
  if (bound.size() != std::size_t(mesh_.rank()))
    throw error("cluster: the mesh has " + std::to_string(mesh_.rank()) + " axes, and its backend " + std::to_string(bound.size()));
  for (int a = 0; a < mesh_.rank(); ++a)
    if (mesh_.static_extent(a) != dynamic && mesh_.static_extent(a) != bound[std::size_t(a)])
      throw error("cluster: axis \"" + std::string(mesh_.name(a)) + "\" has extent " + std::to_string(mesh_.static_extent(a)) +
                  " in the program and " + std::to_string(bound[std::size_t(a)]) + " here");
}

#endif

/// A cluster whose mesh is part of its type.
template <class Mesh>
class cluster : public any_cluster {
 public:
  explicit cluster(std::shared_ptr<gshard::backend> on) : any_cluster(Mesh::shape, std::move(on)) {}
};

/// The extents of a mesh on `devices` devices: static extents stay, the others are as equal as possible.
template <class Mesh>
std::vector<int> extents_on(int devices) {
  return detail::extents_on(Mesh::shape, devices);
}

/// One device in this process, without communication.
template <class Mesh>
cluster<Mesh> on_one_device() {
  return cluster<Mesh>(std::make_shared<loopback>(Mesh::shape.count));
}

/// `devices` simulated devices in this process, which compute real results. `nodes`: collectives run as on these nodes. `extents`, instead
/// of `devices`: of all axes, or of those without a static extent. Neither is needed if all extents are static.
/// Throws `gshard::error` if static extents do not fit, and for more than `simulated::most_devices`.
template <detail::mesh_type Mesh>
cluster<Mesh> simulate(int devices, node_map nodes = {}) {
  simulated::check(devices);  // before they are divided among axes, which takes time
  return cluster<Mesh>(std::make_shared<simulated>(extents_on<Mesh>(devices), std::move(nodes)));
}
template <detail::mesh_type Mesh>
cluster<Mesh> simulate(const std::vector<int>& extents, node_map nodes = {}) {
  return cluster<Mesh>(std::make_shared<simulated>(detail::all_extents(Mesh::shape, extents), std::move(nodes)));
}
template <detail::has_static_extents Mesh>
cluster<Mesh> simulate() {
  return simulate<Mesh>(Mesh::shape.static_devices());
}
/// The same with a mesh that is known at run time: `simulate("data=2,expert", 8)`.
any_cluster simulate(const any_mesh& mesh, int devices, node_map nodes = {});
any_cluster simulate(const any_mesh& mesh, const std::vector<int>& extents, node_map nodes = {});
template <class Mesh, class... Given>
  requires(!detail::mesh_type<Mesh> || (!detail::call<1, int, node_map>::fits<Given...> &&
                                        !detail::call<1, std::vector<int>, node_map>::fits<Given...> &&
                                        (sizeof...(Given) > 0 || !detail::has_static_extents<Mesh>)))
auto simulate(const Given&...) {
  static_assert(holds<detail::accepts<Given...>, actual_type<Mesh>>,
                "gshard: simulate<mesh>(4) and simulate<mesh>({2, 2}) take a mesh, the number of devices or the extents of its axes unless "
                "all are static, and maybe a node_map");
  return cluster<std::conditional_t<detail::mesh_type<Mesh>, Mesh, mesh<>>>(nullptr);
}

#if GSHARD_HAS_BODIES
GSHARD_INLINE any_cluster simulate(const any_mesh& mesh, int devices, node_map nodes) {
  simulated::check(devices);  // before they are divided among axes, which takes time
  return any_cluster(mesh, std::make_shared<simulated>(detail::extents_on(mesh, devices), std::move(nodes)));
}
GSHARD_INLINE any_cluster simulate(const any_mesh& mesh, const std::vector<int>& extents, node_map nodes) {
  return any_cluster(mesh, std::make_shared<simulated>(detail::all_extents(mesh, extents), std::move(nodes)));
}
#endif

}}  // namespace gshard::v0
