// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/core/ir/mesh.hpp>

namespace translate {

namespace gs = gshard;

/// The mesh of the model. Experts and groups are sharded over its axis.
using mesh = gs::mesh<gs::axis<"expert">>;

}  // namespace translate
