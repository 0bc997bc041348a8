// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/fixed_string.hpp>

#include <string_view>
#include <type_traits>

namespace gs = gshard;

namespace {

template <gs::fixed_string>
struct named {};

static_assert(gs::fixed_string("GSM").view() == "GSM" && gs::fixed_string("").view().empty());
static_assert(sizeof(gs::fixed_string("GSM")) == 4);
static_assert(std::is_same_v<named<"a">, named<gs::fixed_string("a")>> &&
              !std::is_same_v<named<"a">, named<"b">>);

// A computed text names the same type as a literal with its characters, so compilers print both alike.
static_assert(std::is_same_v<named<gs::word<6>(std::string_view("expert"))>, named<"expert">>);
static_assert(std::is_same_v<named<gs::word<0>(std::string_view{})>, named<"">>);
static_assert(std::is_same_v<named<gs::word<8>(std::string_view("annotate rest"))>, named<"annotate">>);

}  // namespace
