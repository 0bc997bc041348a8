# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -DSOURCE= -DSCRATCH= -DGENERATOR= -DCOMPILER= -DVERSION= -DWAY=installed|subdirectory -DMPI=ON|OFF
#       [-DPLAN_ONLY=ON | -DPARTS=ON] -P build.cmake
# Copies project/ out of the tree, builds it there and runs what was built.
cmake_minimum_required(VERSION 3.24)
file(REMOVE_RECURSE "${SCRATCH}")
file(COPY "${CMAKE_CURRENT_LIST_DIR}/project" DESTINATION "${SCRATCH}")

function(run)
  list(JOIN ARGN " " line)
  message("${line}")
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "ended with ${code}: ${line}")
  endif()
endfunction()

set(common -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_BUILD_TYPE=Debug)
set(libraries -DGSHARD_MPI=${MPI})
if(NOT MPI)
  list(APPEND libraries -DGSHARD_XTENSOR=OFF)  # nothing but what is needed
endif()
set(options -DWITH_MPI=${MPI} -DPLAN_ONLY=${PLAN_ONLY} -DPARTS=${PARTS})
if(WAY STREQUAL "installed")
  run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${SCRATCH}/gshard" ${common} ${libraries}
    -DGSHARD_BUILD_TESTS=OFF -DGSHARD_BUILD_EXAMPLES=OFF -DGSHARD_BUILD_BENCH=OFF)
  run("${CMAKE_COMMAND}" --install "${SCRATCH}/gshard" --prefix "${SCRATCH}/first")
  # Nothing installed may know where it was installed or built.
  file(RENAME "${SCRATCH}/first" "${SCRATCH}/prefix")
  file(REMOVE_RECURSE "${SCRATCH}/gshard")
  list(APPEND options "-DCMAKE_PREFIX_PATH=${SCRATCH}/prefix" "-DWANTED_VERSION=${VERSION}")
else()
  list(APPEND options "-DGSHARD_SOURCE=${SOURCE}" ${libraries})
endif()

run("${CMAKE_COMMAND}" -S "${SCRATCH}/project" -B "${SCRATCH}/build" ${common} ${options})
run("${CMAKE_COMMAND}" --build "${SCRATCH}/build")
run("${SCRATCH}/build/consumer")
