// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reads and writes complete parameters of a store: to_global and set_global.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/exec/tensor/buffer.hpp>
#include <gshard/exec/tensor/whole_array.hpp>

#include <span>
#include <string_view>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/core/base/hash.hpp>
#include <gshard/exec/backend/agreement.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#endif

// For initial values from other sources, for comparison and for inspection. For files see gshard/io.hpp.
namespace gshard { inline namespace v0 {

namespace detail {
/// A replicated copy of a value. Its buffers are added to `room`. Collective.
bound_value replicate(const any_cluster& on, const bound_value& from, std::vector<buffer>& room);

/// Begins a call of `to_global`. Returns the parameter. Collective.
const bound_value& parameter_for_all(const parameter_store& store, std::string_view name, dtype type);
/// `set_global` for any element type.
void set_parameter(parameter_store store, std::string_view name, const untyped_array& given);
}  // namespace detail

/// The complete parameter `name` in row-major order, on every process. Collective.
/// Communicates: one all_gather over the axes that shard it; an all_to_all if it has a device order.
/// Throws `gshard::error`, on every process, if the store has no parameter of this name and element type, or the processes' calls differ.
template <class T>
std::vector<T> to_global(const parameter_store& store, std::string_view name) {
  const detail::thread_rule::use in_use = store.cluster().backend().enter();
  const detail::bound_value& from = detail::parameter_for_all(store, name, dtype_of<T>);
  std::vector<buffer> room;
  const detail::bound_value to = detail::replicate(store.cluster(), from, room);
  return std::vector<T>(to.as<const T>(0), to.as<const T>(0) + to.elements(0));  // not {}: bool would be a list of two
}

/// Overwrites the parameter `name` with a complete array, as `from_global` takes it. The array must be the same on every process.
/// Collective. Communicates: one small message per process. Compile time: element type.
/// Throws `gshard::error`, on every process: if the store has no parameter of this name and element type; if the array has another size or
/// other extents; if the processes' calls or data differ. Nothing is written in these cases.
template <class T, class Whole = std::span<const T>>
void set_global(parameter_store store, std::string_view name, const Whole& whole) {
  detail::check_whole_array<T, Whole>();
  if constexpr (detail::is_whole_array<Whole, T>) {
    detail::read_whole<T>(whole, [&](const detail::whole_array<T>& given) { detail::set_parameter(store, name, given); });
  }
}

#if GSHARD_HAS_BODIES

namespace detail {

/// The facts that must be equal on all processes for a call `verb` on a parameter.
inline std::vector<fact> facts_of(const char* verb, const parameter_store& store, std::string_view name, dtype type) {
  std::vector<fact> facts{{"the call", verb + (" of parameter \"" + std::string(name) + "\"")},
                          {"the store", store_text(store.number())},
                          {"the element type", std::string(cpp_name(type))}};
  if (const parameter_store::entry* const e = store.find(name))
    facts.push_back({"its layout", layout_text(e->value, store.cluster().mesh())});
  return facts;
}

inline const bound_value& parameter_of(const parameter_store& store, std::string_view name, dtype type) {
  const parameter_store::entry* const e = store.find(name);
  if (e == nullptr) throw error("parameter \"" + std::string(name) + "\": no program on this store has made it yet");
  if (e->value.type != type)
    throw error("parameter \"" + std::string(name) + "\": its elements are " + std::string(cpp_name(e->value.type)) + ", not " +
                std::string(cpp_name(type)));
  return e->value;
}

GSHARD_INLINE const bound_value& parameter_for_all(const parameter_store& store, std::string_view name, dtype type) {
  store.cluster().backend().begin(facts_of("to_global", store, name, type), problem_of([&] { parameter_of(store, name, type); }));
  return parameter_of(store, name, type);
}

GSHARD_INLINE void set_parameter(parameter_store store, std::string_view name, const untyped_array& given) {
  const thread_rule::use in_use = store.cluster().backend().enter();
  buffer room;
  std::span<const std::byte> elements;  // in row-major order
  const process_error problem = problem_of([&] {
    const std::vector<std::int64_t>& extents = parameter_of(store, name, given.type).extents;
    const auto stride = given.layout.strides_in(extents);
    if (!stride) throw error(text_of_misfit(given.layout, extents, "parameter \"" + std::string(name) + "\": ", " for a tensor of "));
    elements = row_major_elements(given, *stride, extents, room);
  });
  const auto facts = [&] {
    std::vector<fact> all = facts_of("set_global", store, name, given.type);
    add_elements(all, "the array", given.type, elements);
    return all;
  };
  fnv1a<std::uint64_t> h;
  h.add(hash_of(facts_of("set_global", store, name, given.type))).add(hash_of_bytes(elements));
  store.cluster().backend().begin({h.value(), facts}, problem);
  const bound_value& to = parameter_of(store, name, given.type);
  kernel::index_array extent{};
  std::copy(to.extents.begin(), to.extents.end(), extent.begin());
  const kernel::index_array stride = kernel::row_major_strides(int(to.extents.size()), extent);
  for (std::size_t i = 0; i < to.places.size(); ++i)
    copy_shard_of(elements.data(), stride, to.data[i], to.places[i], size_of(given.type));
}

}  // namespace detail

#endif

}}  // namespace gshard::v0

#if GSHARD_HEADER_ONLY
#include <gshard/exec/program/replicate.hpp>
#endif
