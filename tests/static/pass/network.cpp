// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/pass/network.hpp>
#include <gshard/pass/step_time.hpp>
#include <gshard/pass/torus_mesh.hpp>

namespace gs = gshard;

static_assert(gs::network<gs::machine> && gs::network<gs::torus_mesh> && !gs::network<gs::torus> && !gs::network<int>);
