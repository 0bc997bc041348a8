// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reads and writes complete parameters of a store: to_global and set_global.

#include <gshard/base/compiled.hpp>
#include <gshard/base/hash.hpp>
#include <gshard/comm/agreement.hpp>
#include <gshard/exec/parameters.hpp>
#include <gshard/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// For initial values from other sources, comparison and inspection. For files see gshard/io.hpp.
namespace gshard { inline namespace v0 {

namespace detail {
/// The facts that must be equal on all processes for a call `verb` on a parameter.
template <class T>
std::vector<fact> facts_of(const char* verb, const parameter_store& store, std::string_view name) {
  std::vector<fact> facts{{"the call", verb + (" of parameter \"" + std::string(name) + "\"")},
                          {"the store", store_text(store.number())},
                          {"the element type", std::string(cpp_name(dtype_of<T>))}};
  if (const parameter_store::entry* const e = store.find(name)) facts.push_back({"its layout", layout_text(e->value, store.on().mesh())});
  return facts;
}

/// A replicated copy of a value, in buffers that `room` receives. Collective.
bound_value replicate(const any_cluster& on, const bound_value& from, std::vector<buffer>& room);

template <class T>
bound_value& parameter_of(const parameter_store& store, std::string_view name) {
  parameter_store::entry* const e = store.find(name);
  if (e == nullptr) throw error("parameter \"" + std::string(name) + "\": no program on this store has made it yet");
  if (e->value.type != dtype_of<T>)
    throw error("parameter \"" + std::string(name) + "\": its elements are " + std::string(cpp_name(e->value.type)) + ", not " +
                std::string(cpp_name(dtype_of<T>)));
  return e->value;
}
}  // namespace detail

/// The complete parameter `name` in row-major order, on every process. Collective.
/// Communicates: one all_gather over the axes that shard it; an all_to_all if it has a device order.
/// Throws `gshard::error`, on every process, if the store has no parameter of this name and element type, or the processes' calls differ.
template <class T>
std::vector<T> to_global(const parameter_store& store, std::string_view name) {
  const any_cluster& on = store.on();
  const detail::thread_rule::use in_use = on.on().enter();
  on.on().begin(detail::facts_of<T>("to_global", store, name), detail::problem_of([&] { detail::parameter_of<T>(store, name); }));
  const detail::bound_value& from = detail::parameter_of<T>(store, name);
  std::vector<buffer> room;
  const detail::bound_value to = detail::replicate(on, from, room);
  return {to.as<const T>(0), to.as<const T>(0) + to.elements(0)};
}

/// Overwrites the parameter `name` with a complete array, as `from_global` takes it. The array must be the same on every process.
/// Collective. Communicates: one small message per process. Compile time: element type.
/// Throws `gshard::error`, on every process: if the store has no parameter of this name and element type; if the array has another size or
/// other extents; if the processes' calls or data differ. Then nothing is written.
template <class T, class Whole = std::span<const T>>
void set_global(const parameter_store& store, std::string_view name, const Whole& whole) {
  detail::check_whole_array<T, Whole>();
  if constexpr (detail::is_whole_array<Whole, T>) {
    const detail::thread_rule::use in_use = store.on().on().enter();
    buffer room;
    std::span<const T> elements;  // in row-major order
    const std::string problem = detail::problem_of([&] {
      const std::vector<std::int64_t>& extents = detail::parameter_of<T>(store, name).extents;
      detail::read_whole<T>(whole, [&](const detail::whole_array<T>& given) {
        const auto stride = given.layout.strides_in(extents);
        if (!stride)
          throw error(detail::text_of_misfit(given.layout, extents, "parameter \"" + std::string(name) + "\": ", " for a tensor of "));
        elements = detail::row_major_elements(given, *stride, extents, room);
      });
    });
    const auto facts = [&] {
      std::vector<fact> all = detail::facts_of<T>("set_global", store, name);
      detail::add_elements(all, "the array", elements);
      return all;
    };
    fnv1a<std::uint64_t> h;
    h.add(hash_of(detail::facts_of<T>("set_global", store, name))).add(detail::hash_of_bytes(std::as_bytes(elements)));
    store.on().on().begin({h.value(), facts}, problem);
    detail::bound_value& to = detail::parameter_of<T>(store, name);
    kernel::index_array extent{};
    std::copy(to.extents.begin(), to.extents.end(), extent.begin());
    const kernel::index_array stride = kernel::row_major_strides(int(to.extents.size()), extent);
    for (std::size_t i = 0; i < to.places.size(); ++i) detail::copy_shard_of(elements.data(), stride, to.as<T>(i), to.places[i]);
  }
}

}}  // namespace gshard::v0

#if GSHARD_HEADER_ONLY
#include <gshard/exec/collective/replicate.hpp>
#endif
