// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Inputs and outputs of a program in memory of the caller.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/process/callback.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/exec/tensor/tensor_origin.hpp>
#include <gshard/exec/tensor/untyped_tensor.hpp>
#include <gshard/exec/tensor/whole_array.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/exec/kernel/move/copy.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/tensor/buffer.hpp>

#include <algorithm>
#include <cstdint>
#endif

namespace gshard { inline namespace v0 { namespace detail {

/// The memory of the caller that an input or output is bound to.
struct bound_port {
  bool is_bound = false;
  std::vector<std::byte*> shards;                     // the memory of each device, if it is used directly
  callback<void(const bound_value&)> copy{};          // otherwise: copies between it and the program's memory
  callback<void(std::vector<fact>&)> add_elements{};  // for an input array: adds facts about its elements
  tensor_origin origin{};                             // for a tensor
  callback<bool()> has_moved{};                       // in debug builds, for a std::vector
};

/// Binds to the shards of a tensor. Throws `gshard::error` if it is on another cluster or has other extents than the program's value.
bound_port bind_tensor(const any_cluster& on, const bound_value& value, const std::string& name, const untyped_tensor& memory);

/// Binds to an array that has the shard of this process's device. Throws `gshard::error` if it has other extents than the shard, or if the
/// process has several devices.
bound_port bind_array(const bound_value& value, const std::string& name, const untyped_array& memory, bool is_input, bool column_major);

/// Throws `gshard::error` if a std::vector has moved its elements since it was bound.
void check_in_place(std::span<const bound_port> ports, const char* what);

/// The memory of all bound inputs and outputs. Throws `gshard::error` if the memory of an output overlaps other memory that the program
/// uses directly.
std::vector<lent_value> lent_values(const executor& run, std::span<const bound_port> inputs, std::span<const bound_port> outputs);

#if GSHARD_HAS_BODIES

inline std::byte* writable(const std::byte* p) { return const_cast<std::byte*>(p); }

GSHARD_INLINE bound_port bind_tensor(const any_cluster& on, const bound_value& value, const std::string& name,
                                     const untyped_tensor& memory) {
  if (!memory.cluster().same_as(on)) throw error("program: the memory of " + name + " belongs to another cluster");
  if (!std::equal(memory.extents().begin(), memory.extents().end(), value.extents.begin(), value.extents.end()))
    throw error("program: the memory of " + name + " has extents " + extents_text(memory.extents()) + ", its dims make " +
                extents_text(value.extents));
  bound_port made{true, {}};
  for (std::size_t d = 0; d < memory.local_shards(); ++d) made.shards.push_back(writable(memory.shard(d)));
  made.origin = tensor_access::origin(memory);
  return made;
}

GSHARD_INLINE bound_port bind_array(const bound_value& value, const std::string& name, const untyped_array& memory, bool is_input,
                                    bool column_major) {
  if (value.data.size() != 1)
    throw error("program: the memory of " + name + " is one array, and this process has " + std::to_string(value.data.size()) +
                " devices; bind a tensor");
  const kernel::placement& at = value.places[0];
  const std::vector<std::int64_t> extents(at.extent.begin(), at.extent.begin() + at.rank);
  const auto stride = memory.layout.strides_in(extents, column_major);
  if (!stride) throw error(text_of_misfit(memory.layout, extents, "program: the memory of " + name + " has ", ", its shard has "));
  bound_port made{true, {}};
  if (is_input)
    made.add_elements = [memory, name, stride = *stride, extents](std::vector<fact>& facts) {
      buffer room;
      detail::add_elements(facts, name, memory.type, row_major_elements(memory, stride, extents, room));
    };
  if (kernel::is_row_major(at.rank, at.extent, *stride)) {
    made.shards.push_back(writable(memory.data));
    return made;
  }
  made.copy = [data = writable(memory.data), stride = *stride, is_input, width = size_of(memory.type)](const bound_value& v) {
    const kernel::placement& shard = v.places[0];
    const kernel::index_array row_major = kernel::row_major_strides(shard.rank, shard.extent);
    if (is_input) kernel::copy_block(data, stride, v.data[0], row_major, shard.extent, shard.rank, width);
    else kernel::copy_block(v.data[0], row_major, data, stride, shard.extent, shard.rank, width);
  };
  return made;
}

GSHARD_INLINE void check_in_place(std::span<const bound_port> ports, const char* what) {
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (ports[i].has_moved && ports[i].has_moved())
      throw error("program: the std::vector that " + std::string(what) + std::to_string(i) + " is bound to has moved its elements");
}

GSHARD_INLINE std::vector<lent_value> lent_values(const executor& run, std::span<const bound_port> inputs,
                                                  std::span<const bound_port> outputs) {
  struct range {
    const std::byte *begin, *end;
    const lent_value* of;
  };
  std::vector<lent_value> lent;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].is_bound) lent.push_back({"input " + std::to_string(i), run.plan().inputs[i].value, false, inputs[i].shards});
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].is_bound) lent.push_back({"output " + std::to_string(i), run.plan().outputs[i].value, true, outputs[i].shards});
  std::vector<range> used;
  for (const lent_value& l : lent)
    for (std::size_t d = 0; d < l.shards.size(); ++d)
      if (const std::int64_t bytes = run.value(l.value).bytes(d); bytes > 0) used.push_back({l.shards[d], l.shards[d] + bytes, &l});
  std::ranges::sort(used, std::less<>(), &range::begin);
  range last{}, last_output{};  // the ranges so far with the largest end
  for (const range& r : used) {
    const bool overlaps = (r.of->is_output && last.of && r.begin < last.end) || (last_output.of && r.begin < last_output.end);
    if (overlaps)
      throw error("program: the memory of " + (r.of->is_output ? r : last_output).of->name + " overlaps that of an input or output");
    if (!last.of || r.end > last.end) last = r;
    if (r.of->is_output && (!last_output.of || r.end > last_output.end)) last_output = r;
  }
  return lent;
}

#endif

}}}  // namespace gshard::v0::detail
