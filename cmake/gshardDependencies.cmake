# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How each dependency is found: by gshard's own configuration, and again by its package config for a user.
# Each macro sets gshard_<name>_found, and gshard_<name>_target to what is to be linked. Existing targets are taken, be they the system's, a
# package manager's or FetchContent's. Only missing targets are looked for.

# gshard_take(<name> <target>...): found if there are such targets. gshard links them through a target of its own, gshard::needs_<name>,
# which gshard's package makes anew from what a user has: from MPI::MPI_C, say, where gshard was built with MPI::MPI_CXX. And a project that
# fetches a dependency and exports nothing of it can still export what links gshard.
macro(gshard_take name)
  set(gshard_${name}_needs ${ARGN})
  set(gshard_${name}_target gshard::needs_${name})
  set(gshard_${name}_found TRUE)
  foreach(target ${gshard_${name}_needs})
    if(NOT TARGET ${target})
      set(gshard_${name}_found FALSE)
    endif()
  endforeach()
  if(gshard_${name}_found AND NOT TARGET gshard::needs_${name})
    add_library(gshard::needs_${name} INTERFACE IMPORTED)
    set_target_properties(gshard::needs_${name} PROPERTIES INTERFACE_LINK_LIBRARIES "${gshard_${name}_needs}")
    if(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
      set_target_properties(gshard::needs_${name} PROPERTIES IMPORTED_GLOBAL TRUE)
    endif()
  endif()
endmacro()

# Asked for without a version: Eigen 5's config rejects a wish for 3.4, though it serves. A project that fetches Eigen has the target, which
# tells no version: kernel/gemm/gemm_eigen.hpp checks it.
macro(gshard_find_eigen)
  if(NOT TARGET Eigen3::Eigen)
    find_package(Eigen3 CONFIG QUIET)
  endif()
  gshard_take(eigen Eigen3::Eigen)
  if(Eigen3_VERSION AND Eigen3_VERSION VERSION_LESS 3.4)
    set(gshard_eigen_found FALSE)
  endif()
endmacro()

# MPI's C API serves, by the C++ or the C target, whichever the project has found. mpi.h shall not include the C++ bindings: they need a
# library that the C target does not link.
macro(gshard_find_mpi)
  if(NOT TARGET MPI::MPI_CXX AND NOT TARGET MPI::MPI_C)
    find_package(MPI QUIET COMPONENTS CXX)
  endif()
  if(NOT TARGET MPI::MPI_CXX AND NOT TARGET MPI::MPI_C)
    find_package(MPI QUIET)
  endif()
  if(TARGET MPI::MPI_C AND NOT TARGET MPI::MPI_CXX)
    gshard_take(mpi MPI::MPI_C)
  else()
    gshard_take(mpi MPI::MPI_CXX)
  endif()
  if(gshard_mpi_found)
    set_target_properties(${gshard_mpi_target} PROPERTIES INTERFACE_COMPILE_DEFINITIONS "OMPI_SKIP_MPICXX;MPICH_SKIP_MPICXX")
  endif()
endmacro()

# A BLAS with its C interface: OpenBLAS and MKL have both in one library, others beside it. Package managers bring a target of OpenBLAS.
macro(gshard_find_blas)
  if(NOT TARGET OpenBLAS::OpenBLAS)
    find_package(OpenBLAS CONFIG QUIET)
  endif()
  if(TARGET OpenBLAS::OpenBLAS)
    gshard_take(blas OpenBLAS::OpenBLAS)
  else()
    find_path(GSHARD_CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas)
    find_library(GSHARD_CBLAS_LIBRARY NAMES openblas cblas blas)
    mark_as_advanced(GSHARD_CBLAS_INCLUDE_DIR GSHARD_CBLAS_LIBRARY)
    if(GSHARD_CBLAS_INCLUDE_DIR AND GSHARD_CBLAS_LIBRARY AND NOT TARGET gshard_cblas)
      add_library(gshard_cblas UNKNOWN IMPORTED GLOBAL)
      set_target_properties(gshard_cblas PROPERTIES
        IMPORTED_LOCATION "${GSHARD_CBLAS_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${GSHARD_CBLAS_INCLUDE_DIR}")
    endif()
    gshard_take(blas gshard_cblas)
  endif()
endmacro()

# oneDNN's config stops the whole configuration where a package that oneDNN was built with is missing: Debian's wants OpenCL's headers, which
# libdnnl-dev only recommends. So its text is read first; a version that does not exist makes CMake name the config and not load it.
macro(gshard_find_onednn)
  set(gshard_onednn_lacks)
  if(NOT TARGET DNNL::dnnl)
    find_package(gshard_dnnl 9999 EXACT CONFIG QUIET NAMES dnnl HINTS "${dnnl_DIR}" "${dnnl_ROOT}" "$ENV{dnnl_ROOT}")
    unset(gshard_dnnl_DIR CACHE)
    foreach(gshard_config IN LISTS gshard_dnnl_CONSIDERED_CONFIGS)
      file(STRINGS "${gshard_config}" gshard_config_runtimes REGEX "^set\\(DNNL_[A-Z_]*RUNTIME \"(OCL|TBB)\"\\)")
      if(gshard_config_runtimes MATCHES "OCL")
        list(APPEND gshard_onednn_lacks OpenCL)
      endif()
      if(gshard_config_runtimes MATCHES "TBB")
        list(APPEND gshard_onednn_lacks TBB)
      endif()
      break()  # the first is the one that would be loaded
    endforeach()
    foreach(gshard_package IN LISTS gshard_onednn_lacks)
      find_package(${gshard_package} QUIET)
      if(${gshard_package}_FOUND)
        list(REMOVE_ITEM gshard_onednn_lacks ${gshard_package})
      endif()
    endforeach()
    if(NOT gshard_onednn_lacks)
      find_package(dnnl CONFIG QUIET)
    endif()
  endif()
  gshard_take(onednn DNNL::dnnl)
  if(gshard_onednn_lacks)
    message(STATUS "gshard: oneDNN is not used: its CMake package needs ${gshard_onednn_lacks} "
      "(OpenCL on Debian: opencl-headers and ocl-icd-opencl-dev)")
  endif()
endmacro()

# Threads of gshard's kernels, and of libraries that take their number from OpenMP.
macro(gshard_find_openmp)
  if(NOT TARGET OpenMP::OpenMP_CXX)
    find_package(OpenMP QUIET COMPONENTS CXX)
  endif()
  gshard_take(openmp OpenMP::OpenMP_CXX)
endmacro()

# Boost's own config (since 1.70); that of 1.74 links MPI::MPI_CXX whether or not such a target exists.
macro(gshard_find_boost_mpi)
  if(NOT TARGET Boost::mpi OR NOT TARGET Boost::serialization)
    if(NOT TARGET MPI::MPI_CXX)
      find_package(MPI QUIET COMPONENTS CXX)
    endif()
    find_package(Boost 1.74 CONFIG QUIET COMPONENTS mpi serialization)
  endif()
  gshard_take(boost_mpi Boost::mpi Boost::serialization)
endmacro()

macro(gshard_find_xtensor)
  if(NOT TARGET xtensor)
    find_package(xtensor CONFIG QUIET)
  endif()
  gshard_take(xtensor xtensor)
endmacro()

# xxHash has a CMake package from Conan and vcpkg, and none from most distributions.
macro(gshard_find_io)
  if(NOT TARGET nlohmann_json::nlohmann_json)
    find_package(nlohmann_json CONFIG QUIET)
  endif()
  if(NOT TARGET xxHash::xxhash)
    find_package(xxHash CONFIG QUIET)
  endif()
  if(NOT TARGET xxHash::xxhash)
    find_path(GSHARD_XXHASH_INCLUDE_DIR xxhash.h)
    find_library(GSHARD_XXHASH_LIBRARY xxhash)
    mark_as_advanced(GSHARD_XXHASH_INCLUDE_DIR GSHARD_XXHASH_LIBRARY)
    if(GSHARD_XXHASH_INCLUDE_DIR AND GSHARD_XXHASH_LIBRARY)
      add_library(xxHash::xxhash UNKNOWN IMPORTED GLOBAL)
      set_target_properties(xxHash::xxhash PROPERTIES
        IMPORTED_LOCATION "${GSHARD_XXHASH_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${GSHARD_XXHASH_INCLUDE_DIR}")
    endif()
  endif()
  gshard_take(io nlohmann_json::nlohmann_json xxHash::xxhash)
endmacro()

# What gshard::gshard uses besides Eigen.
set(gshard_optional mpi blas onednn openmp)
# The targets besides gshard::gshard, each for a package that most users do without.
set(gshard_parts boost_mpi xtensor io)

# For gshard's own configuration: sets gshard_with_<name> as the GSHARD_<NAME> options and the machine allow,
# gshard_libraries and gshard_<part>_libraries.
macro(gshard_find_dependencies)
  gshard_find_eigen()
  if(NOT gshard_eigen_found)
    message(FATAL_ERROR "gshard needs Eigen 3.4 or newer (Debian: libeigen3-dev); found: '${Eigen3_VERSION}'")
  endif()
  set(gshard_libraries ${gshard_eigen_target})
  foreach(name ${gshard_optional} ${gshard_parts})
    string(TOUPPER GSHARD_${name} option)
    set(gshard_with_${name} OFF)
    set(gshard_${name}_libraries)
    if(name STREQUAL "boost_mpi" AND NOT gshard_with_mpi)
      if("${${option}}" STREQUAL "ON")
        message(FATAL_ERROR "${option}=ON needs GSHARD_MPI")
      endif()
      continue()
    endif()
    if(${option})
      cmake_language(CALL gshard_find_${name})
      if(gshard_${name}_found)
        set(gshard_with_${name} ON)
        set(gshard_${name}_libraries ${gshard_${name}_target})
      elseif(NOT "${${option}}" STREQUAL "AUTO")
        message(FATAL_ERROR "${option}=${${option}}, but it was not found (${option}=AUTO goes without)")
      endif()
    endif()
  endforeach()
  foreach(name ${gshard_optional})
    list(APPEND gshard_libraries ${gshard_${name}_libraries})
  endforeach()
  message(STATUS "gshard ${PROJECT_VERSION}: Eigen ${Eigen3_VERSION}, MPI ${gshard_with_mpi}, BLAS ${gshard_with_blas}, oneDNN ${gshard_with_onednn}, OpenMP ${gshard_with_openmp}, "
    "Boost.MPI ${gshard_with_boost_mpi}, xtensor ${gshard_with_xtensor}, io ${gshard_with_io}")
endmacro()
