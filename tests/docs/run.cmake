# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -DPROGRAM=<command> [-DEXPECTED=<file>] [-DFRESH=<folder>] -P run.cmake: the program must succeed, and print the text of the file.
cmake_minimum_required(VERSION 3.24)
if(FRESH)  # the program would resume from this directory
  file(REMOVE_RECURSE "${CMAKE_CURRENT_BINARY_DIR}/${FRESH}")
endif()
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "ended with ${code}:\n${printed}")
endif()
# Replaces the name of the source by the name on the page.
string(REGEX REPLACE "[a-z_]+_[0-9]+\\.cpp" "first.cpp" printed "${printed}")
if(EXPECTED)
  file(READ "${EXPECTED}" expected)
  if(NOT printed STREQUAL expected)
    message(FATAL_ERROR "The page says:\n${expected}\nThe program prints:\n${printed}")
  endif()
endif()
