# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How each dependency is found: by gshard's own configuration, and again by its package config for a user.
# Each macro sets gshard_<name>_found, and gshard_<name>_target to what is to be linked.

# gshard_take(<name> <target>...): what is to be linked for it, found if there are such targets.
macro(gshard_take name)
  set(gshard_${name}_target ${ARGN})
  set(gshard_${name}_found TRUE)
  foreach(target ${gshard_${name}_target})
    if(NOT TARGET ${target})
      set(gshard_${name}_found FALSE)
    endif()
  endforeach()
endmacro()

# Asked for without a version: Eigen 5's config rejects a wish for 3.4, though it serves.
macro(gshard_find_eigen)
  find_package(Eigen3 CONFIG QUIET)
  set(gshard_eigen_found FALSE)
  if(TARGET Eigen3::Eigen AND NOT Eigen3_VERSION VERSION_LESS 3.4)
    set(gshard_eigen_found TRUE)
  endif()
  set(gshard_eigen_target Eigen3::Eigen)
endmacro()

# Package managers that build MPI without its C++ part know only the C target, which serves as well.
macro(gshard_find_mpi)
  if(NOT TARGET MPI::MPI_CXX AND NOT TARGET MPI::MPI_C)
    find_package(MPI QUIET COMPONENTS CXX)
  endif()
  if(NOT TARGET MPI::MPI_CXX AND NOT TARGET MPI::MPI_C)
    find_package(MPI QUIET)
  endif()
  set(gshard_mpi_found TRUE)
  if(TARGET MPI::MPI_CXX)
    set(gshard_mpi_target MPI::MPI_CXX)
  elseif(TARGET MPI::MPI_C)
    set(gshard_mpi_target MPI::MPI_C)
  else()
    set(gshard_mpi_found FALSE)
  endif()
endmacro()

# A BLAS with its C interface: OpenBLAS and MKL have both in one library, others beside it.
macro(gshard_find_blas)
  find_path(GSHARD_CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas)
  find_library(GSHARD_CBLAS_LIBRARY NAMES openblas cblas blas)
  mark_as_advanced(GSHARD_CBLAS_INCLUDE_DIR GSHARD_CBLAS_LIBRARY)
  set(gshard_blas_found FALSE)
  if(GSHARD_CBLAS_INCLUDE_DIR AND GSHARD_CBLAS_LIBRARY)
    set(gshard_blas_found TRUE)
    if(NOT TARGET gshard_cblas)
      add_library(gshard_cblas UNKNOWN IMPORTED GLOBAL)
      set_target_properties(gshard_cblas PROPERTIES
        IMPORTED_LOCATION "${GSHARD_CBLAS_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${GSHARD_CBLAS_INCLUDE_DIR}")
    endif()
  endif()
  set(gshard_blas_target gshard_cblas)
endmacro()

macro(gshard_find_onednn)
  find_package(dnnl CONFIG QUIET)
  gshard_take(onednn DNNL::dnnl)
endmacro()

# Threads of gshard's kernels, and of libraries that take their number from OpenMP.
macro(gshard_find_openmp)
  find_package(OpenMP QUIET COMPONENTS CXX)
  gshard_take(openmp OpenMP::OpenMP_CXX)
endmacro()

# Boost's own config (since 1.70); that of 1.74 links MPI::MPI_CXX whether or not such a target exists.
macro(gshard_find_boost_mpi)
  find_package(Boost 1.74 CONFIG QUIET COMPONENTS mpi serialization)
  gshard_take(boost_mpi Boost::mpi Boost::serialization)
endmacro()

macro(gshard_find_xtensor)
  find_package(xtensor CONFIG QUIET)
  gshard_take(xtensor xtensor)
endmacro()

# xxHash has a CMake package from Conan and vcpkg, and none from most distributions.
macro(gshard_find_io)
  find_package(nlohmann_json CONFIG QUIET)
  find_package(xxHash CONFIG QUIET)
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
  set(gshard_libraries Eigen3::Eigen)
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
