# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -DCONAN= -DPKG_CONFIG= -DSOURCE= -DSCRATCH= -DGENERATOR= -DCOMPILER= -DCOMPILER_ID=GNU|Clang -DCOMPILER_VERSION= -DVERSION=
#       -DRECIPE=own|center|system -DOPTIONS=mpi|io|compiled|... -P conan.cmake
# Creates the package as a user would, without a remote, and with it test_package/. Its dependencies are stubs of Conan Center's recipes, or
# the system's by [platform_requires] (RECIPE=system). Environment: see stubs/conan/conanfile.py.
cmake_minimum_required(VERSION 3.24)
file(REMOVE_RECURSE "${SCRATCH}")
set(ENV{CONAN_HOME} "${SCRATCH}/home")
set(tree "${SCRATCH}/gshard-${VERSION}")
foreach(name IN ITEMS CMakeLists.txt LICENSE cmake conanfile.py include packaging test_package)
  file(COPY "${SOURCE}/${name}" DESTINATION "${tree}")
endforeach()
file(REMOVE_RECURSE "${tree}/test_package/build")

include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

# refused(<sentence> <command>...)
function(refused sentence)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(code EQUAL 0 OR NOT said MATCHES "${sentence}")
    message(FATAL_ERROR "'${sentence}' was not said: ${said}")
  endif()
endfunction()

string(REGEX REPLACE "\\..*" "" major "${COMPILER_VERSION}")
set(compiler clang)
if(COMPILER_ID STREQUAL "GNU")
  set(compiler gcc)
endif()
cmake_host_system_information(RESULT machine QUERY OS_PLATFORM)
set(arch ${machine})
if(machine STREQUAL "aarch64")
  set(arch armv8)
endif()
string(REPLACE "|" ";" names "${OPTIONS}")
set(flags)
if("compiled" IN_LIST names)
  set(flags "gshard/*:tools.build:cxxflags=[\"-march=native\"]")  # kernels for one level: consumer/compiled tests the others
endif()
set(profile "${SCRATCH}/profile")
file(WRITE "${profile}" "[settings]
os=Linux
arch=${arch}
compiler=${compiler}
compiler.version=${major}
compiler.libcxx=libstdc++11
compiler.cppstd=20
build_type=Debug
[conf]
tools.cmake.cmaketoolchain:generator=${GENERATOR}
tools.build:jobs=1
tools.build:compiler_executables={\"cpp\": \"${COMPILER}\"}
${flags}
[platform_tool_requires]
cmake/${CMAKE_VERSION}
")
set(packages eigen/3.4.0 openmpi/4.1.8 boost/1.91.0 xtensor/0.27.1 nlohmann_json/3.11.3 xxhash/0.8.3)
if(RECIPE STREQUAL "system")
  list(JOIN packages "\n" packages)
  file(APPEND "${profile}" "[platform_requires]\n${packages}\n")
else()
  foreach(package IN LISTS packages)
    string(REGEX MATCH "^[^/]+" name "${package}")
    string(REGEX REPLACE ".*/" "" version "${package}")
    run("${CONAN}" export "${CMAKE_CURRENT_LIST_DIR}/stubs/conan" --name ${name} --version ${version})
  endforeach()
endif()

set(recipe "${tree}")
if(RECIPE STREQUAL "center")
  # As for a release: an archive of the sources, and a recipe that names it.
  set(archive "${SCRATCH}/gshard-${VERSION}.tar.gz")
  run("${CMAKE_COMMAND}" -E chdir "${SCRATCH}" "${CMAKE_COMMAND}" -E tar czf "${archive}" "gshard-${VERSION}")
  run("${CMAKE_COMMAND}" "-DARCHIVE=${archive}" "-DARCHIVE_URL=file://${archive}" -DHOMEPAGE=https://example.org "-DTO=${SCRATCH}/recipes"
    -P "${tree}/packaging/release.cmake")
  set(recipe "${SCRATCH}/recipes/conan-center/all")
endif()

set(create "${CONAN}" create "${recipe}" --version ${VERSION} --no-remote --profile:all "${profile}" --build=missing)
if(RECIPE STREQUAL "own")
  set(create "${CONAN}" create "${recipe}" --no-remote --profile:all "${profile}" --build=missing)  # the header has the version
endif()
set(options)
foreach(name IN LISTS names)
  list(APPEND options -o "gshard/*:${name}=True")
endforeach()
refused("cppstd \\(17\\)" ${create} -s compiler.cppstd=17)
refused("needs the option mpi" ${create} -o "gshard/*:boost_mpi=True")
run(${create} ${options})

# Headers fit all build types. A library is built for one.
set(install "${CONAN}" install --requires "gshard/${VERSION}" --no-remote --profile:all "${profile}" ${options})
if("compiled" IN_LIST names)
  refused("Missing prebuilt package for 'gshard/" ${install} -s gshard/*:build_type=Release)
else()
  run(${install} -s gshard/*:build_type=Release)
endif()

# A generator other than CMake's also has the compiler's limits and the same macros.
if(PKG_CONFIG)
  run(${install} -g PkgConfigDeps --output-folder "${SCRATCH}/pc")
  set(ENV{PKG_CONFIG_PATH} "${SCRATCH}/pc")
  execute_process(COMMAND "${PKG_CONFIG}" --cflags gshard OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
  set(mpi 0)
  if("mpi" IN_LIST names)
    set(mpi 1)
  endif()
  if(NOT flags MATCHES "-DGSHARD_HAS_MPI=${mpi} " OR NOT flags MATCHES "-fconstexpr-(ops-limit|steps)=")
    message(FATAL_ERROR "the flags of gshard.pc are wrong: ${flags}")
  endif()
  execute_process(COMMAND "${PKG_CONFIG}" --cflags gshard-plan OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run("${COMPILER}" -std=c++20 -DPLAN_ONLY "${CMAKE_CURRENT_LIST_DIR}/project/main.cpp" -o "${SCRATCH}/planner" ${flags})
  run("${SCRATCH}/planner")
  if("compiled" IN_LIST names)
    run_by_pkg_config(gshard-compiled "${CMAKE_CURRENT_LIST_DIR}/compiled/levels.cpp" "${SCRATCH}/program")
  endif()
endif()
