# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# gshard-plan.cps, the planner by the Common Package Specification, for CMake 4.3 and other tools. The format has no flags per compiler. Its
# flags are for the compiler that gshard was configured with. CMake prefers such a package to a config of the same name, so the package has
# another name.
add_library(gshard_plan_info INTERFACE)
target_compile_features(gshard_plan_info INTERFACE cxx_std_20)
target_compile_options(gshard_plan_info INTERFACE ${gshard_${gshard_pc_compiler}_flags})
target_include_directories(gshard_plan_info INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
set_target_properties(gshard_plan_info PROPERTIES EXPORT_NAME plan SPDX_LICENSE "Apache-2.0 WITH LLVM-exception")
install(TARGETS gshard_plan_info EXPORT gshard_plan_info ${all})
install(PACKAGE_INFO gshard-plan EXPORT gshard_plan_info DESTINATION "${CMAKE_INSTALL_DATADIR}/cps/gshard-plan" ${all}
  VERSION ${PROJECT_VERSION} COMPAT_VERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}.0 VERSION_SCHEMA simple
  DESCRIPTION "SPMD programs that are planned at compile time" LICENSE "Apache-2.0 WITH LLVM-exception" DEFAULT_TARGETS plan)
