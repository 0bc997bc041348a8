// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/name.hpp>

#include <string_view>

namespace gs = gshard;
using name = gs::inplace_name<4>;

namespace {

static_assert(name().empty() && name().view().empty());
static_assert(name("abcd").view() == "abcd" && name(std::string_view("ab")).view() == "ab");
static_assert(name::fits("abcd") && !name::fits("abcde"));
static_assert(name("abcde").view() == "abcd");
static_assert(name("ab").append("cdef").view() == "abcd");
static_assert(name("a").append("") == name("a") && name("a") != name("b") && name("a") != name("ab"));
static_assert(sizeof(gs::tensor_name) == 64 && sizeof(gs::axis_name) == 24);

// Names are equal if their texts are, with any bytes after the text.
static_assert([] {
  name cut("abcd");
  cut.length = 2;
  return cut == name("ab");
}());

}  // namespace
