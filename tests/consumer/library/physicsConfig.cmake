# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include(CMakeFindDependencyMacro)
find_dependency(gshard)
include("${CMAKE_CURRENT_LIST_DIR}/physicsTargets.cmake")
