# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiles several sources of tests as one, because most of a test's compile time is the library's.
# -DGSHARD_TESTS_APART=ON compiles each source alone.
option(GSHARD_TESTS_APART "Compile every test source alone" OFF)
mark_as_advanced(GSHARD_TESTS_APART)

# Writes a generated source, unless it is the same. Not file(CONFIGURE), which replaces "@data@" of "B@data@model,M".
function(gshard_write_source source content)
  set(before)
  if(EXISTS "${source}")
    file(READ "${source}" before)
  endif()
  if(NOT before STREQUAL content)
    file(WRITE "${source}" "${content}")
  endif()
endfunction()

# gshard_together(<variable> <unit> <source>...): sets the variable to one generated source that compiles these. It includes their headers,
# and then each source in its own namespace, where its includes have no effect.
function(gshard_together variable unit)
  set(headers)
  set(bodies)
  set(number 0)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    file(STRINGS "${source}" lines REGEX "^#include [<\"]")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include ([<\"][^>\"]+[>\"]).*" "\\1" header "${line}")
      string(REGEX REPLACE "^\"(.+)\"$" "${folder}/\\1" beside "${header}")
      if(EXISTS "${beside}")
        cmake_path(NORMAL_PATH beside)
        set(header "\"${beside}\"")
      endif()
      list(APPEND headers "#include ${header}\n")
    endforeach()
    math(EXPR number "${number} + 1")
    string(APPEND bodies "namespace source_${number} {\n#include \"${source}\"\n}\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  endforeach()
  list(REMOVE_DUPLICATES headers)
  list(JOIN headers "" headers)
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/together/${unit}.cpp")
  gshard_write_source("${generated}" "${headers}${bodies}")
  set(${variable} "${generated}" PARENT_SCOPE)
endfunction()

# gshard_compile_together(<variable> <target> <source>...): sets the variable to generated sources, each of which compiles many of these.
# Four fifths of the code of a unit of twelve are the library's inline functions, which the linker then drops. Sources with macros or
# conditional includes, and sources that define declarations of another namespace, are compiled alone.
function(gshard_compile_together variable target)
  if(GSHARD_TESTS_APART)
    set(${variable} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(units)
  set(group)
  foreach(source IN LISTS ARGN)
    file(STRINGS "${source}" own REGEX "^(#(if|define|include)|template <>|namespace (gshard|std)|extern \"C\")|^[a-z:]+ [a-z_]+::[a-z_]+[(]")
    string(REGEX REPLACE "^(#include [^;]*;?)+" "" own "${own}")  # the includes at the top
    list(FILTER own EXCLUDE REGEX "^#if")
    if(own)
      list(APPEND units "${source}")
    else()
      list(APPEND group "${source}")
    endif()
  endforeach()
  set(most 40)  # then the largest units take 2 GB
  list(LENGTH group count)
  math(EXPR together "(${count} + ${most} - 1) / ${most}")
  set(begin 0)
  set(number 0)
  while(begin LESS count)
    math(EXPR number "${number} + 1")
    math(EXPR size "${count} * ${number} / ${together} - ${begin}")
    list(SUBLIST group ${begin} ${size} sources)
    gshard_together(unit "${target}_${number}" ${sources})
    list(APPEND units "${unit}")
    math(EXPR begin "${begin} + ${size}")
  endwhile()
  set(${variable} ${units} PARENT_SCOPE)
endfunction()

# gshard_programs_together(<target> <source>...): adds an executable that contains these programs. Its first argument is the name of the
# program to run: its source without folder and extension. A source without a main is only compiled.
function(gshard_programs_together target)
  set(functions)
  set(choices)
  set(number 0)
  foreach(source IN LISTS ARGN)
    math(EXPR number "${number} + 1")
    cmake_path(GET source STEM name)
    file(READ "${source}" text)
    string(FIND "${text}" "int main(" main)
    if(NOT main EQUAL -1)
      # A function other than main must return its status explicitly.
      string(SUBSTRING "${text}" 0 ${main} head)
      string(SUBSTRING "${text}" ${main} -1 tail)
      string(REGEX REPLACE "^int main\\(" "int run_it(" tail "${tail}")
      string(FIND "${tail}" "}" end REVERSE)
      string(SUBSTRING "${tail}" 0 ${end} body)
      string(SUBSTRING "${tail}" ${end} -1 tail)
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
      set(source "${CMAKE_CURRENT_BINARY_DIR}/functions/${name}.cpp")
      gshard_write_source("${source}" "${head}${body}  return 0;\n${tail}")
      set(arguments)
      if(body MATCHES "^int run_it\\(int argc")
        set(arguments "argc, argv")
      endif()
      string(APPEND choices "  if (chosen == \"${name}\") return source_${number}::run_it(${arguments});\n")
    endif()
    list(APPEND functions "${source}")
  endforeach()
  gshard_together(unit ${target} ${functions})
  file(CONFIGURE OUTPUT ${target}.cpp CONTENT "#include \"${unit}\"
#include <string_view>
int main(int argc, char** argv) {
  const std::string_view chosen = argc > 1 ? argv[1] : \"\";
  --argc, ++argv;
${choices}  return 127;
}
" @ONLY)
  add_executable(${target} ${target}.cpp)
endfunction()
