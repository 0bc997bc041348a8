# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# run(<command>...): prints and runs a command. If it fails, the test fails.
function(run)
  list(JOIN ARGN " " line)
  message("${line}")
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "ended with ${code}: ${line}")
  endif()
endfunction()

# run_by_pkg_config(<package> <source> <program>): compiles a source with the flags of a package, and runs the program.
function(run_by_pkg_config package source program)
  foreach(flags IN ITEMS cflags libs)
    execute_process(COMMAND "${PKG_CONFIG}" --${flags} ${package} OUTPUT_VARIABLE ${flags} COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(${flags} UNIX_COMMAND "${${flags}}")
  endforeach()
  run("${COMPILER}" -std=c++20 ${cflags} "${source}" -o "${program}" ${libs})
  run("${program}")
endfunction()
