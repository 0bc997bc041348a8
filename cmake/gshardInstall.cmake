# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Headers to include/, CMake's package to share/cmake/gshard, pkg-config's files to share/pkgconfig. Only gshard::compiled depends on the
# architecture: its files are in lib/, and the package config finds them there.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_DATADIR}/cmake/gshard")

# A project with gshard as a subproject may export targets that link gshard. Therefore gshard's targets are in export sets, even if they are
# not installed.
set(all COMPONENT gshard)
if(NOT GSHARD_INSTALL)
  list(APPEND all EXCLUDE_FROM_ALL)
endif()
function(gshard_install set)  # targets
  # CMake before 3.23 has no file sets and uses the folder.
  install(TARGETS ${ARGN} EXPORT ${set} FILE_SET HEADERS ${all} FILE_SET unchecked ${all}
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endfunction()
function(gshard_export set)
  install(EXPORT ${set} NAMESPACE gshard:: DESTINATION "${package_dir}" ${all})
  export(EXPORT ${set} NAMESPACE gshard:: FILE "${PROJECT_BINARY_DIR}/${set}.cmake")
endfunction()

list(TRANSFORM gshard_libraries PREPEND gshard_ OUTPUT_VARIABLE targets_of_libraries)
gshard_install(gshardTargets ${targets_of_libraries} gshard_plan gshard gshard_kernels)
gshard_export(gshardTargets)
# One export each: a user gets only the requested targets.
foreach(part IN LISTS gshard_parts)
  gshard_install(gshard_${part}_targets gshard_${part})
  if(gshard_with_${part})
    gshard_export(gshard_${part}_targets)
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
  DESTINATION "${package_dir}" ${all})
install(FILES "${PROJECT_SOURCE_DIR}/cmake/runtime.cpp" "${PROJECT_SOURCE_DIR}/cmake/kernels.cpp" DESTINATION "${CMAKE_INSTALL_DATADIR}/gshard" ${all})
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/gshard" ${all})
if(GSHARD_COMPILED)
  set(compiled COMPONENT gshard_compiled)
  if(NOT GSHARD_INSTALL)
    list(APPEND compiled EXCLUDE_FROM_ALL)
  endif()
  install(TARGETS gshard_compiled EXPORT gshard_compiled_targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${compiled})
  install(EXPORT gshard_compiled_targets NAMESPACE gshard:: DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/gshard" ${compiled})
  export(EXPORT gshard_compiled_targets NAMESPACE gshard:: FILE "${PROJECT_BINARY_DIR}/gshard_compiled_targets.cmake")
endif()
include(gshardPkgConfig)
if(CMAKE_VERSION VERSION_GREATER_EQUAL 4.3)
  include(gshardPackageInfo)
endif()
if(PROJECT_IS_TOP_LEVEL AND GSHARD_INSTALL)
  include(gshardPackages)
endif()
