# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -DSOURCE= -DSCRATCH= -DGENERATOR= -DCOMPILER= -DVERSION= -DEIGEN=<folder> -DMPI_INCLUDES=<folder>|... -DPKG_CONFIG=<command> -P
# compiled.cmake
# Builds and installs gshard::compiled without MPI, once. Uses it by CMake, by pkg-config, with too few flags and with wrong ones. For each
# level, its kernels give the same bits as a header-only program that is compiled for this level.
cmake_minimum_required(VERSION 3.24)
file(REMOVE_RECURSE "${SCRATCH}")
file(COPY "${CMAKE_CURRENT_LIST_DIR}/compiled" DESTINATION "${SCRATCH}")
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

set(common -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}")
set(nothing_else -DGSHARD_BUILD_TESTS=OFF -DGSHARD_BUILD_EXAMPLES=OFF -DGSHARD_BUILD_BENCH=OFF -DGSHARD_MPI=OFF -DGSHARD_XTENSOR=OFF)
run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${SCRATCH}/gshard" ${common} ${nothing_else} -DCMAKE_BUILD_TYPE=Release -DGSHARD_COMPILED=ON)
run("${CMAKE_COMMAND}" --build "${SCRATCH}/gshard" --parallel)
run("${CMAKE_COMMAND}" --install "${SCRATCH}/gshard" --prefix "${SCRATCH}/first")
file(RENAME "${SCRATCH}/first" "${SCRATCH}/prefix")  # no installed file may contain its path
file(REMOVE_RECURSE "${SCRATCH}/gshard")

set(levels "${SCRATCH}/build/levels")
run("${CMAKE_COMMAND}" -S "${SCRATCH}/compiled" -B "${SCRATCH}/build" ${common} -DCMAKE_BUILD_TYPE=Debug "-DWANTED_VERSION=${VERSION}"
  "-DCMAKE_PREFIX_PATH=${SCRATCH}/prefix")
run("${CMAKE_COMMAND}" --build "${SCRATCH}/build")

# One header-only program for each level of this machine, optimized as the library: with AVX-512, -O2 gives other bits.
file(GLOB_RECURSE library "${SCRATCH}/prefix/libgshard.a")
execute_process(COMMAND "${levels}" OUTPUT_VARIABLE highest COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "[0-9]+" highest "${highest}")
set(flags_of_0)
set(flags_of_1 -march=x86-64-v3)
set(flags_of_2 -march=x86-64-v4)
set(names base v3 v4)
set(header_only "${COMPILER}" -std=c++20 -O3 -DGSHARD_HAS_MPI=0 "-I${SOURCE}/include" "-isystem${EIGEN}" "${SCRATCH}/compiled/levels.cpp" -pthread)
foreach(level RANGE ${highest})
  list(GET names ${level} name)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env GSHARD_CPU_LEVEL=${name} "${levels}" OUTPUT_VARIABLE compiled COMMAND_ERROR_IS_FATAL ANY)
  run(${header_only} ${flags_of_${level}} -o "${SCRATCH}/header_only")
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env GSHARD_CPU_LEVEL=${name} "${SCRATCH}/header_only" OUTPUT_VARIABLE alone COMMAND_ERROR_IS_FATAL ANY)
  message("${name}: ${compiled}")
  string(REPLACE "level ${level}" "level 0" at_base "${compiled}")  # header-only programs have no levels
  if(NOT at_base STREQUAL alone OR NOT compiled MATCHES "^level ${level}, bits [0-9a-f]+, gather: id 9")
    message(FATAL_ERROR "gshard::compiled at the level ${name} makes: ${compiled}, and a header-only program: ${alone}")
  endif()
endforeach()

# A checkpoint names the kernels of the program, so that a program with other kernels warns.
execute_process(COMMAND "${CMAKE_COMMAND}" -E env GSHARD_CPU_LEVEL=base "${levels}" "${SCRATCH}/run" ERROR_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${levels}" "${SCRATCH}/run" ERROR_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
if(EXISTS "${SCRATCH}/run" AND highest GREATER 0 AND NOT said MATCHES "saved by Eigen, this run has Eigen, AVX.*not with the same bits")
  message(FATAL_ERROR "a checkpoint of other kernels was loaded without a warning: ${said}")
endif()

# Eigen's inline functions depend on -march, for example their alignment. The library uses its own ones, in any program.
if(highest GREATER 0)
  run("${COMPILER}" -std=c++20 -march=x86-64-v3 -DGSHARD_HAS_MPI=0 -DGSHARD_COMPILED_KERNELS=1 "-I${SCRATCH}/prefix/include" "-isystem${EIGEN}"
    "${SCRATCH}/compiled/eigen.cpp" "${library}" -pthread -o "${SCRATCH}/eigen")
  run("${CMAKE_COMMAND}" -E env GSHARD_CPU_LEVEL=base "${SCRATCH}/eigen")
endif()

# A program that was compiled for another library does not link. The linker names the difference.
function(does_not_link sentence)
  execute_process(COMMAND "${COMPILER}" -std=c++20 -DGSHARD_COMPILED_KERNELS=1 ${ARGN} "-I${SCRATCH}/prefix/include" "-isystem${EIGEN}"
    "${SCRATCH}/compiled/levels.cpp" "${library}" -pthread -o "${SCRATCH}/other" RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(code EQUAL 0 OR NOT said MATCHES "${sentence}")
    message(FATAL_ERROR "'${sentence}' was not said: ${said}")
  endif()
endfunction()
string(REPLACE "." "_" version "${VERSION}")
if(MPI_INCLUDES)
  string(REPLACE "|" ";" includes "${MPI_INCLUDES}")
  list(TRANSFORM includes PREPEND "-I")
  does_not_link("needs_gshard_${version}_compiled_with_GSHARD_HAS_MPI_1" -DGSHARD_HAS_MPI=1 ${includes})
endif()
file(READ "${SCRATCH}/prefix/include/gshard/core/base/version.hpp" text)
string(REGEX REPLACE "VERSION_PATCH [0-9]+" "VERSION_PATCH 9999" text "${text}")
file(WRITE "${SCRATCH}/newer/gshard/core/base/version.hpp" "${text}")
string(REGEX REPLACE "_[0-9]+$" "_9999" newer "${version}")
does_not_link("needs_gshard_${newer}_compiled_with" -DGSHARD_HAS_MPI=0 "-I${SCRATCH}/newer")

if(PKG_CONFIG)
  file(GLOB_RECURSE pc "${SCRATCH}/prefix/gshard-compiled.pc")
  cmake_path(GET pc PARENT_PATH folder)
  set(ENV{PKG_CONFIG_PATH} "${folder}:${SCRATCH}/prefix/share/pkgconfig:$ENV{PKG_CONFIG_PATH}")
  run_by_pkg_config(gshard-compiled "${SCRATCH}/compiled/levels.cpp" "${SCRATCH}/by_pkg_config")
endif()
