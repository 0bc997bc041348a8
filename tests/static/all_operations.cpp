// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/all_operations.hpp>

#include <cstddef>
#include <iterator>

namespace gs = gshard;

namespace {

// Each operation has a number of its own, by which plans are ordered: numbers must not change.
static_assert([] {
  for (std::size_t i = 0; i < std::size(gs::all_operations); ++i)
    if (gs::all_operations[i]->id != int(i)) return false;
  return std::size(gs::all_operations) <= gs::most_operations;
}());
// Each name is unique.
static_assert([] {
  for (const gs::op_ref a : gs::all_operations)
    for (const gs::op_ref b : gs::all_operations)
      if (a->name.empty() || ((a->name == b->name) != (a == b))) return false;
  return true;
}());

}  // namespace
