// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/reason.hpp>

namespace gs = gshard;

namespace {

// The words do not change the check. mustfail/ tests how they are printed.
static_assert(gs::holds<true> && !gs::holds<false>);
static_assert(
    gs::holds<true, gs::unknown_axis<"exprt">, gs::mesh_axes<"data", "expert">, gs::in_tensor<"layer.wi">>);
static_assert(!gs::holds<false, gs::in_equation<"GSM;ME->GSE">, gs::at_column<3>, gs::index_letter<"X">>);

}  // namespace
