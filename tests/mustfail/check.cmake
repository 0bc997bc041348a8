# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -DSOURCE=<file> -DCOMPILER=<c++> -DFLAGS=<response file> [-DONLY_FAILS=ON] -P check.cmake The source must compile without MUST_FAIL.
# With ONLY_FAILS, another test checks this for several sources at once. With MUST_FAIL defined it must not compile, and the compiler's
# output must match every regular expression in its lines `// expect: <regex>`. Flags in a line `// flags: <flags>` are added with
# MUST_FAIL.
cmake_minimum_required(VERSION 3.24)
set(ENV{LC_ALL} C)

function(refuse text)
  message("${SOURCE} ${text}")  # verbatim; an error's text would be filled to 80 columns
  message(FATAL_ERROR "refused")
endfunction()

set(command "${COMPILER}" "@${FLAGS}" "${SOURCE}")

if(NOT ONLY_FAILS)
  execute_process(COMMAND ${command} RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT code EQUAL 0)
    refuse("does not compile without MUST_FAIL:\n${said}")
  endif()
endif()

file(STRINGS "${SOURCE}" flags REGEX "^// flags: ")
string(REPLACE "// flags: " "" flags "${flags}")
execute_process(COMMAND ${command} -DMUST_FAIL ${flags} RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(code EQUAL 0)
  refuse("compiles with MUST_FAIL")
endif()

file(READ "${SOURCE}" rest)
set(expected 0)
set(missing "")
set(sentences 0)
while(rest MATCHES "(^|\n)[ \t]*// expect: ([^\n]*[^ \t\n])[ \t]*\n(.*)$")
  # MATCHES finds the first line, as the text before it is not captured.
  set(sentence "${CMAKE_MATCH_2}")
  set(rest "\n${CMAKE_MATCH_3}")
  math(EXPR expected "${expected} + 1")
  if(sentence MATCHES "^(gshard|error): ")  # by the library, or by the compiler alone
    math(EXPR sentences "${sentences} + 1")
  endif()
  if(NOT said MATCHES "${sentence}")
    string(APPEND missing "\n  ${sentence}")
  endif()
endwhile()
if(expected EQUAL 0)
  refuse("has no line '// expect: <regex>'")
endif()
if(missing)
  refuse("fails to compile, but this was expected and not said:${missing}\nThe compiler said:\n${said}")
endif()

# One error for each sentence, and nothing after it. The whole output is short, including notes; quoted lines of code are not counted.
string(REGEX MATCHALL "error: " errors "${said}")
list(LENGTH errors count)
if(NOT count EQUAL sentences)
  refuse("is told in ${count} errors where ${sentences} were expected:\n${said}")
endif()
string(REGEX REPLACE "[^\n]" "" line_ends "${said}")
string(LENGTH "${line_ends}" line_ends)
math(EXPR most "12 * ${sentences}")
if(line_ends GREATER most)
  refuse("is told in ${line_ends} lines (${most} are allowed):\n${said}")
endif()
