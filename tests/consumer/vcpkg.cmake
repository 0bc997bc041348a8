# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -DSOURCE= -DSCRATCH= -DGENERATOR= -DCOMPILER= -DVERSION= -P vcpkg.cmake
# If vcpkg is installed: gshard's port alone, then the manifest project of packaging/vcpkg/consumer, which requests MPI and checkpoints.
cmake_minimum_required(VERSION 3.24)
set(ports "${SOURCE}/packaging/vcpkg/ports")

file(READ "${ports}/gshard/vcpkg.json" manifest)
string(JSON port_version GET "${manifest}" version)
if(NOT port_version STREQUAL VERSION)
  message(FATAL_ERROR "packaging/vcpkg/ports/gshard/vcpkg.json has version ${port_version}, gshard has ${VERSION}")
endif()

find_program(vcpkg vcpkg NO_CMAKE_FIND_ROOT_PATH)
set(toolchain "$ENV{VCPKG_ROOT}/scripts/buildsystems/vcpkg.cmake")
if(NOT vcpkg OR NOT EXISTS "${toolchain}")
  message("skipped: vcpkg is not on PATH, or VCPKG_ROOT does not name its folder")
  return()
endif()

include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${SCRATCH}")
file(MAKE_DIRECTORY "${SCRATCH}" "${SCRATCH}_cache")
set(ENV{CXX} "${COMPILER}")
set(install "${vcpkg}" install "--overlay-ports=${ports}" "--x-install-root=${SCRATCH}/installed")
set(common -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_TOOLCHAIN_FILE=${toolchain}")

# A binary cache of this test keeps other ports for the next run, but not gshard: vcpkg does not see changes of its sources.
set(ENV{VCPKG_BINARY_SOURCES} "clear;files,${SCRATCH}_cache,readwrite")
run(${install} eigen3 mpi nlohmann-json xxhash)
set(ENV{VCPKG_BINARY_SOURCES} "clear;files,${SCRATCH}_cache,read")

# Without features: no library of this machine is used by accident.
run(${install} gshard)
file(GLOB config "${SCRATCH}/installed/*/share/gshard/gshardConfig.cmake")
file(STRINGS "${config}" accidents REGEX "^set\\(gshard_WITH_[A-Z_]+ ON\\)")
if(accidents)
  message(FATAL_ERROR "the port without features has: ${accidents}")
endif()
run("${CMAKE_COMMAND}" -S "${SOURCE}/tests/consumer/project" -B "${SCRATCH}/classic" ${common} -DVCPKG_MANIFEST_MODE=OFF
  "-DVCPKG_INSTALLED_DIR=${SCRATCH}/installed" "-DWANTED_VERSION=${VERSION}" -DWITH_MPI=OFF -DTENSORS_ONLY=ON)
run("${CMAKE_COMMAND}" --build "${SCRATCH}/classic")
run("${SCRATCH}/classic/consumer")

# The library: its release build is also used by a debug build.
run(${install} "gshard[compiled]" --recurse)
run("${CMAKE_COMMAND}" -S "${SOURCE}/tests/consumer/compiled" -B "${SCRATCH}/compiled" ${common} -DVCPKG_MANIFEST_MODE=OFF
  "-DVCPKG_INSTALLED_DIR=${SCRATCH}/installed" "-DWANTED_VERSION=${VERSION}")
run("${CMAKE_COMMAND}" --build "${SCRATCH}/compiled")
run("${SCRATCH}/compiled/levels")

# With the features of a manifest.
run("${CMAKE_COMMAND}" -S "${SOURCE}/packaging/vcpkg/consumer" -B "${SCRATCH}/manifest" ${common})
run("${CMAKE_COMMAND}" --build "${SCRATCH}/manifest")
run("${CMAKE_CTEST_COMMAND}" --test-dir "${SCRATCH}/manifest" --output-on-failure)
