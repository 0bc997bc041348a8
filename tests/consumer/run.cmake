# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# run(<command>...): prints and runs a command; its failure is the test's.
function(run)
  list(JOIN ARGN " " line)
  message("${line}")
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "ended with ${code}: ${line}")
  endif()
endfunction()
