// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/cost/network.hpp>
#include <gshard/core/cost/step_time.hpp>
#include <gshard/sim/network/torus_mesh.hpp>

namespace gs = gshard;

static_assert(gs::network<gs::machine> && gs::network<gs::torus_mesh> && !gs::network<gs::torus> && !gs::network<int>);
static_assert(gs::network_of_nodes<gs::machine> && !gs::network_of_nodes<gs::torus_mesh>);
