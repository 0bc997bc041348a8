// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/attributes.hpp>

namespace {
using namespace gshard;

// Attributes that an operation does not set have no effect.
constexpr attributes none;
static_assert(none.factor == 1 && none.own.same({}) && none.change == reshape_kind::unchanged && none.combine == reduction::sum);
static_assert(none.moves == 0 && none.function == nullptr && none.custom == nullptr && none.dims.empty());

}  // namespace
