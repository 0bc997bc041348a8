// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/program/check.hpp>

namespace gs = gshard;
using gs::fault;

namespace {

// A program without a fault passes. mustfail/ tests the sentences.
static_assert(gs::detail::check_program<fault::nothing, gs::diagnostic{}, gs::mesh<gs::axis<"data">>>());

}  // namespace
