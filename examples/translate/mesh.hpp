// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/ir/mesh.hpp>

namespace translate {

namespace gs = gshard;

/// What the model is sharded over: experts and groups alike.
using mesh = gs::mesh<gs::axis<"expert">>;

}  // namespace translate
