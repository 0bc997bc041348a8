// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/all_functions.hpp>

#include <cstddef>
#include <iterator>
#include <string_view>

namespace gs = gshard;

namespace {

// Names are unique and sorted.
static_assert([] {
  for (std::size_t i = 1; i < std::size(gs::all_functions); ++i)
    if (gs::all_functions[i].name <= gs::all_functions[i - 1].name) return false;
  return true;
}());
// A name is the header or the verb, a dot, and the function. "'" is for derivatives.
static_assert([] {
  for (const auto& f : gs::all_functions) {
    const std::size_t dot = f.name.find('.');
    if (dot == 0 || dot + 1 >= f.name.size() || f.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.") != f.name.npos ||
        f.name.find('.', dot + 1) != f.name.npos)
      return false;
  }
  return true;
}());

}  // namespace
