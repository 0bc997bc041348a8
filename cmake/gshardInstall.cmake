# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Headers to include/, the package to share/cmake/gshard: nothing installed depends on the architecture.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_DATADIR}/cmake/gshard")

# CMake before 3.23 knows no file sets and goes by the folder.
install(TARGETS gshard_plan gshard EXPORT gshardTargets FILE_SET HEADERS FILE_SET unchecked
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT gshardTargets NAMESPACE gshard:: DESTINATION "${package_dir}")
# One export each: a user has the targets that are asked for.
foreach(part IN LISTS gshard_parts)
  install(TARGETS gshard_${part} EXPORT gshard_${part}_targets FILE_SET HEADERS FILE_SET unchecked
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  if(gshard_with_${part})
    install(EXPORT gshard_${part}_targets NAMESPACE gshard:: DESTINATION "${package_dir}")
  endif()
endforeach()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/gshardConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/gshardConfig.cmake" INSTALL_DESTINATION "${package_dir}"
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/gshardConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES
  "${PROJECT_BINARY_DIR}/gshardConfig.cmake"
  "${PROJECT_BINARY_DIR}/gshardConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/gshardDependencies.cmake"
  DESTINATION "${package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/gshard")
