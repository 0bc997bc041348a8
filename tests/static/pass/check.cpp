// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ir/mesh.hpp>
#include <gshard/pass/check.hpp>

namespace gs = gshard;
using gs::fault;

namespace {

// A program without a fault passes, and so does one whose fault a static_assert has told. The sentences are
// tested in mustfail/.
using mesh = gs::mesh<gs::axis<"data">>;
static_assert(gs::detail::check_program<fault::nothing, gs::diagnostic{}, mesh>());
static_assert(gs::detail::check_program<fault::reported,
                                        [] {
                                          gs::diagnostic d;
                                          d.report(fault::reported, "GSM;ME->GSE");
                                          return d;
                                        }(),
                                        mesh>());

}  // namespace
