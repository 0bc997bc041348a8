// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Inputs and outputs of a program in memory of the caller.

#include <gshard/comm/agreement.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/executor.hpp>
#include <gshard/kernel/move/copy.hpp>
#include <gshard/kernel/view.hpp>
#include <gshard/pass/plan.hpp>
#include <gshard/tensor/tensor.hpp>
#include <gshard/tensor/whole_array.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The memory of the caller that an input or output is bound to.
struct bound_port {
  bool is_bound = false;
  std::vector<std::byte*> shards;                  // the memory of each device, if it is used directly,
  std::function<void(const bound_value&)> copy{};  // else copies between it and the program's memory
  std::function<bool()> has_moved{};               // in debug builds, of a std::vector
};

template <class T>
std::byte* address_of(const T* p) {
  return reinterpret_cast<std::byte*>(const_cast<T*>(p));
}

/// The shards of a tensor. Throws `gshard::error` if it is on another cluster or has other extents than the program's value.
template <class T, class Tensor>
bound_port bind_tensor(const any_cluster& on, const bound_value& value, const std::string& name, Tensor& memory) {
  if (!memory.on().same_as(on)) throw error("program: the memory of " + name + " belongs to another cluster");
  if (!std::equal(memory.extents().begin(), memory.extents().end(), value.extents.begin(), value.extents.end()))
    throw error("program: the memory of " + name + " has extents " + extents_text(memory.extents()) + ", its dims make " +
                extents_text(value.extents));
  bound_port made{true, {}};
  for (std::size_t d = 0; d < memory.local_shards(); ++d) made.shards.push_back(address_of(memory.local_shard(d).data));
  return made;
}

/// An array that has the shard of this process's device. Throws `gshard::error` if it has other extents than the shard, or if the process
/// has several devices.
template <class T, bool IsInput, bool ColumnMajor, class Array>
bound_port bind_array(const bound_value& value, const std::string& name, Array& memory) {
  if (value.data.size() != 1)
    throw error("program: the memory of " + name + " is one array, and this process has " + std::to_string(value.data.size()) +
                " devices; bind a tensor");
  const kernel::placement& at = value.places[0];
  const std::span<const std::int64_t> extents(at.extent.data(), std::size_t(at.rank));
  bound_port made{true, {}};
  read_whole<T>(memory, [&](const whole_array<T>& given) {
    const auto stride = ColumnMajor ? given.layout.strides_in_reversed(extents) : given.layout.strides_in(extents);
    if (!stride) throw error(text_of_misfit(given.layout, extents, "program: the memory of " + name + " has ", ", its shard has "));
    if (kernel::is_row_major(at.rank, at.extent, *stride)) {
      made.shards.push_back(address_of(given.data));
      return;
    }
    made.copy = [data = address_of(given.data), stride = *stride](const bound_value& v) {
      const kernel::placement& shard = v.places[0];
      const kernel::index_array row_major = kernel::row_major_strides(shard.rank, shard.extent);
      if constexpr (IsInput) kernel::copy_block(data, stride, v.data[0], row_major, shard.extent, shard.rank, sizeof(T));
      else kernel::copy_block(v.data[0], row_major, data, stride, shard.extent, shard.rank, sizeof(T));
    };
  });
#ifndef NDEBUG
  if constexpr (requires { memory.capacity(); })
    made.has_moved = [&memory, data = memory.data(), size = memory.size()] { return memory.data() != data || memory.size() != size; };
#endif
  return made;
}

/// Throws `gshard::error` if a std::vector has moved its elements since it was bound.
inline void check_in_place(std::span<const bound_port> ports, const char* what) {
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (ports[i].has_moved && ports[i].has_moved())
      throw error("program: the std::vector that " + std::string(what) + std::to_string(i) + " is bound to has moved its elements");
}

/// The memory that a program uses directly. Throws `gshard::error` if the memory of an output overlaps that of an input or output.
inline std::vector<lent_value> lent_values(const executor& run, std::span<const bound_port> inputs, std::span<const bound_port> outputs) {
  std::vector<lent_value> lent;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].shards.empty()) lent.push_back({run.plan().inputs[i].value, false, inputs[i].shards});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].shards.empty()) continue;
    const std::int32_t value = run.plan().outputs[i].value;
    for (const lent_value& other : lent)
      for (std::size_t d = 0; d < other.shards.size(); ++d) {
        const std::byte *const mine = outputs[i].shards[d], *const theirs = other.shards[d];
        if (mine < theirs + run.value(other.value).bytes(d) && theirs < mine + run.value(value).bytes(d))
          throw error("program: the memory of output " + std::to_string(i) + " overlaps that of another output or of an input");
      }
    lent.push_back({value, true, outputs[i].shards});
  }
  return lent;
}

}}}  // namespace gshard::v0::detail
