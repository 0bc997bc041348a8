// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/base/hash.hpp>
#include <gshard/exec/collective_step.hpp>
#include <gshard/exec/parameters.hpp>
#include <gshard/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// Whole parameters in and out of a store: for initial values from elsewhere, comparison and inspection. Files: gshard/io.hpp.
namespace gshard { inline namespace v0 {

namespace detail {
template <class T>
bound_value& parameter_of(const parameter_store& store, std::string_view name) {
  parameter_store::entry* const e = store.find(name);
  if (e == nullptr) throw error("parameter \"" + std::string(name) + "\": no program on this store has made it yet");
  if (e->value.type != dtype_of<T>) throw error("parameter \"" + std::string(name) + "\": its elements have another type");
  return e->value;
}
}  // namespace detail

/// The whole parameter called `name`, row-major, on every process. Collective. Communicates: one all_gather over the axes that cut it.
/// Throws `gshard::error`, on every process, if the store has none of this name and element type.
template <class T>
std::vector<T> to_global(const parameter_store& store, std::string_view name) {
  const any_cluster& on = store.on();
  on.on().agree(fnv1a<std::uint64_t>().add(name).value(), "which parameter is read",
                detail::problem_of([&] { detail::parameter_of<T>(store, name); }));
  const detail::bound_value& from = detail::parameter_of<T>(store, name);
  detail::bound_value to = from;
  to.layout = sharding::replicated(to.rank());
  to.positions.clear();
  std::vector<buffer> room;
  for (std::size_t i = 0; i < to.places.size(); ++i) {
    to.places[i] = place(to.extents, to.layout, on.on().extents(), on.devices()[i]);
    to.data[i] = room.emplace_back(to.bytes(i)).data();
  }
  // In an order of their own, any devices may hold copies of each other's shards.
  const op how = from.positions.empty() ? op::all_gather : op::all_to_all;
  const std::uint32_t axes = from.positions.empty() ? from.layout.used() : (1u << on.on().extents().size()) - 1u;
  detail::collective_step(detail::step_moves(how, on, axes, {{from, to}}), std::make_shared<detail::collective_room>())();
  return {to.as<const T>(0), to.as<const T>(0) + to.elements(0)};
}

/// Overwrites the parameter called `name` with a whole array (row-major), the same on every process. Collective. Communicates one
/// small message. Throws `gshard::error`, on every process and with nothing written, if on one of them the store has none of this
/// name and element type, or the array has another size.
template <class T>
void set_global(const parameter_store& store, std::string_view name, std::span<const std::type_identity_t<T>> whole) {
  const std::string problem = detail::problem_of([&] {
    const detail::bound_value& to = detail::parameter_of<T>(store, name);
    std::int64_t n = 1;
    for (const std::int64_t e : to.extents) n *= e;
    if (std::int64_t(whole.size()) != n)
      throw error("parameter \"" + std::string(name) + "\": " + std::to_string(whole.size()) +
                  " elements for a tensor of " + std::to_string(n));
  });
  store.on().on().agree(fnv1a<std::uint64_t>().add(name).value(), "which parameter is written", problem);
  detail::bound_value& to = detail::parameter_of<T>(store, name);
  for (std::size_t i = 0; i < to.places.size(); ++i) detail::copy_shard_of(whole.data(), to.as<T>(i), to.places[i]);
}

}}  // namespace gshard::v0
