# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -DSOURCE=<tree> -DSCRATCH=<folder> -DGENERATOR= -DCOMPILER= -DGIT=<git> -P recipe.cmake
# Applies the change of CONTRIBUTING.md that adds an operation to a copy of the tree, counts its files, builds the cases and runs those of
# the operation. Fails if the operation needs a file that the recipe does not name.
cmake_minimum_required(VERSION 3.24)
include("${CMAKE_CURRENT_LIST_DIR}/../consumer/run.cmake")
file(REMOVE_RECURSE "${SCRATCH}")
foreach(name IN ITEMS include cmake docs tests CMakeLists.txt)
  file(COPY "${SOURCE}/${name}" DESTINATION "${SCRATCH}/tree")
endforeach()

file(READ "${SOURCE}/CONTRIBUTING.md" page)
string(FIND "${page}" "````diff\n" begin)
string(FIND "${page}" "\n````\n" end)
math(EXPR begin "${begin} + 9")
math(EXPR length "${end} - ${begin} + 1")
string(SUBSTRING "${page}" ${begin} ${length} patch)
file(WRITE "${SCRATCH}/recipe.patch" "${patch}")
string(REGEX MATCHALL "\n[+][+][+] b/[a-z0-9_./]+" files "\n${patch}")
list(TRANSFORM files REPLACE "^\n.* b/" "")
set(expected
  include/gshard/ops/along/cumprod.hpp include/gshard/ops/along/cumprod_kernel.hpp include/gshard/operations.def
  tests/cases/case_verbs.hpp tests/cases/twins_test.cpp tests/cases/along.md)
if(NOT files STREQUAL expected)
  message(FATAL_ERROR "an added operation touches other files than the recipe's table names: ${files}")
endif()
set(ENV{GIT_CEILING_DIRECTORIES} "${SCRATCH}")  # the scratch folder is no part of a checkout
run("${CMAKE_COMMAND}" -E chdir "${SCRATCH}/tree" "${GIT}" apply ../recipe.patch)

file(WRITE "${SCRATCH}/CMakeLists.txt" [[
cmake_minimum_required(VERSION 3.24)
project(recipe LANGUAGES CXX)
add_subdirectory(tree gshard)
find_package(doctest CONFIG REQUIRED)
add_executable(recipe tree/tests/main.cpp tree/tests/cases/cases_test.cpp tree/tests/cases/twins_test.cpp on_tensors.cpp)
target_include_directories(recipe PRIVATE tree/tests/eager)
target_link_libraries(recipe PRIVATE gshard::gshard doctest::doctest)
]])
file(WRITE "${SCRATCH}/on_tensors.cpp" [[
#include <gshard/eager/verbs.hpp>

#include "every_spec.hpp"

#include <doctest/doctest.h>

using gshard::none, gshard::P;

TEST_CASE("cases: on tensors, with every sharding") {
  const every_spec::operand<double, P<none, none>, P<"x", none>, P<none, "x">, P<"y", "x">> x{{2, 3}, {1, 2, 3, 4, 5, 6}};
  every_spec::check(std::vector<double>{1, 2, 6, 4, 20, 120}, [](const auto& t) { return gshard::cumprod(t); }, x);
  every_spec::check(std::vector<double>{1, 2, 3, 4, 10, 18}, [](const auto& t) { return gshard::cumprod<0>(t); }, x);
}
]])
run("${CMAKE_COMMAND}" -DROOT=${SCRATCH}/tree -P "${SCRATCH}/tree/tests/architecture/check.cmake")
run("${CMAKE_COMMAND}" -S "${SCRATCH}" -B "${SCRATCH}/build" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_BUILD_TYPE=Debug
  -DGSHARD_BUILD_TESTS=OFF -DGSHARD_BUILD_EXAMPLES=OFF -DGSHARD_BUILD_BENCH=OFF -DGSHARD_MPI=OFF)
run("${CMAKE_COMMAND}" --build "${SCRATCH}/build")
set(ENV{GSHARD_CASES} "${SCRATCH}/tree/tests/cases/along.md")
foreach(case IN ITEMS right verbs "on tensors")
  execute_process(COMMAND "${SCRATCH}/build/recipe" "--test-case=cases: ${case}*" RESULT_VARIABLE code OUTPUT_VARIABLE said)
  message("${said}")
  if(NOT code EQUAL 0 OR said MATCHES "test cases: +0 ")
    message(FATAL_ERROR "the cases of the added operation fail, or there are none")
  endif()
endforeach()
