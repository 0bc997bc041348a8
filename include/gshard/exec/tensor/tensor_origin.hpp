// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The origin of a tensor. Processes compare it to check that all pass the same tensor to a collective call.

#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/backend/backend.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/core/base/hash.hpp>
#endif

namespace gshard { inline namespace v0 { namespace detail {

/// Numbers tensors in the order in which a process makes them, which is the same on all processes.
struct tensor_origin {
  std::uint64_t call = 0, number = 0;  ///< the number-th tensor made after this call; 0: on one process, nothing is compared
  std::uint64_t array = 0;             ///< a hash of samples of the array that filled it; 0: none
  std::string constant{};              ///< for a number in an operation: its text

  tensor_origin() = default;
  explicit tensor_origin(backend& on);

  /// The hash, which is 0 for an empty origin.
  std::uint64_t hash() const;
  /// Adds facts about a tensor. `what`: "input 0 (BM)"
  void add_to(std::vector<fact>& facts, const std::string& what) const;
};

/// Calls f(i) for the elements by which complete arrays are compared: all elements of small arrays, otherwise 64 runs of 16.
inline constexpr std::int64_t most_samples = 2048;
template <class F>
void for_each_sample(std::int64_t elements, F f) {
  constexpr std::int64_t runs = 64, in_run = 16;
  if (elements <= most_samples)
    for (std::int64_t i = 0; i < elements; ++i) f(i);
  else
    for (std::int64_t run = 0; run < runs; ++run)
      for (std::int64_t i = 0; i < in_run; ++i) f((elements - in_run) / (runs - 1) * run + i);
}

#if GSHARD_HAS_BODIES

GSHARD_INLINE tensor_origin::tensor_origin(backend& on) {
  if (on.processes() == 1) return;
  const auto [last, objects] = on.number_object();
  call = last;
  number = objects;
}
GSHARD_INLINE std::uint64_t tensor_origin::hash() const {
  if (number == 0) return 0;
  fnv1a<std::uint64_t> h;
  if (constant.empty()) h.add(call).add(number).add(array);
  else h.add(constant);
  return h.value();
}
GSHARD_INLINE void tensor_origin::add_to(std::vector<fact>& facts, const std::string& what) const {
  if (number == 0) return;
  const std::string made = "tensor " + std::to_string(number) + " made after call " + std::to_string(call);
  facts.push_back({"the tensor of " + what, constant.empty() ? made : "the number " + constant});
  facts.push_back({"the array of the tensor of " + what, array == 0 ? "none" : "one with hash " + std::to_string(array)});
}

#endif

}}}  // namespace gshard::v0::detail
