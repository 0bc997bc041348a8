# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -DSCRATCH=<folder> -P self_test.cmake
# check.cmake must find each breach in fixture/, and nothing else there.
cmake_minimum_required(VERSION 3.24)
set(here "${CMAKE_CURRENT_LIST_DIR}")
file(REMOVE_RECURSE "${SCRATCH}")
file(COPY "${here}/fixture/" DESTINATION "${SCRATCH}")

set(head "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n#pragma once\n\n// A header.\n")
string(REPEAT "\n" 496 blank)
file(WRITE "${SCRATCH}/include/gshard/exec/kernel/fits.hpp" "${head}${blank}")
file(WRITE "${SCRATCH}/tests/exec/kernel/fits_test.cpp" "")
file(WRITE "${SCRATCH}/include/gshard/exec/kernel/long.hpp" "${head}${blank}\n")
string(REPEAT "/" 140 wide)
file(WRITE "${SCRATCH}/include/gshard/exec/kernel/wide.hpp" "${head}${wide}\n${wide}/\n")
file(WRITE "${SCRATCH}/tests/exec/kernel/wide_test.cpp" "")
string(REPEAT "case op::einsum:\n" 29 kinds)  # with those of asks.hpp one too many
file(WRITE "${SCRATCH}/include/gshard/exec/program/kinds.hpp" "${head}${kinds}")
file(WRITE "${SCRATCH}/tests/exec/program/kinds_test.cpp" "")

execute_process(COMMAND "${CMAKE_COMMAND}" -DROOT=${SCRATCH} -P "${here}/check.cmake"
  RESULT_VARIABLE code OUTPUT_VARIABLE found ERROR_VARIABLE found)
if(code EQUAL 0)
  message(FATAL_ERROR "the fixture passed:\n${found}")
endif()
string(REGEX REPLACE "\n\nCMake Error.*" "\n" found "${found}")
file(READ "${here}/expected.txt" expected)
if(NOT found STREQUAL expected)
  message("expected:\n${expected}\nfound:\n${found}")
  message(FATAL_ERROR "check.cmake found something else than fixture/ holds")
endif()
