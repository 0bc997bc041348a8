# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# gshard::compiled: backends, engine and all kernels in one static library. On x86-64 it has the kernels three times: for the compiler's
# flags, for x86-64-v3 and for x86-64-v4. Clusters choose (comm/cpu_level.hpp).
add_library(gshard_compiled STATIC "${PROJECT_SOURCE_DIR}/cmake/engine.cpp")
add_library(gshard::compiled ALIAS gshard_compiled)
target_link_libraries(gshard_compiled PUBLIC gshard)
target_compile_definitions(gshard_compiled INTERFACE GSHARD_COMPILED_KERNELS=1)
set_target_properties(gshard_compiled PROPERTIES EXPORT_NAME compiled OUTPUT_NAME gshard POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)

# Only GNU's linker and objcopy can hide the inline functions of the kernels. Otherwise the linker keeps one copy of each in a program: maybe
# a function of std::vector with AVX-512 instructions, or the aligned_malloc of an Eigen with another alignment.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
get_directory_property(options COMPILE_OPTIONS)
list(JOIN options " " options)
set(flags "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}} ${options}")
set(cannot_hide)
get_property(has_several_configurations GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
  set(cannot_hide "the compiler is ${CMAKE_CXX_COMPILER_ID}")
elseif(flags MATCHES "-fsanitize|-fcoverage|--coverage")
  set(cannot_hide "the compiler's flags are ${flags}")
elseif(has_several_configurations)
  set(cannot_hide "the generator is ${CMAKE_GENERATOR}")
else()
  foreach(linker "${CMAKE_LINKER}" ld.bfd ld)
    execute_process(COMMAND "${linker}" --help OUTPUT_VARIABLE said ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND said MATCHES "--force-group-allocation")
      set(gnu_linker "${linker}")
      break()
    endif()
  endforeach()
  if(NOT CMAKE_OBJCOPY OR NOT gnu_linker)
    set(cannot_hide "GNU's linker or objcopy is missing")
  endif()
endif()
if(cannot_hide)
  message(WARNING "gshard::compiled shares inline functions with programs, because ${cannot_hide}. Compile programs with the same flags.")
endif()

# Flags such as -march=native choose one level, also flags of a compiler that is a wrapper.
include(CheckCXXSourceCompiles)
string(GENEX_STRIP "${flags}" CMAKE_REQUIRED_FLAGS)
if(NOT has_several_configurations AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  unset(GSHARD_FLAGS_OPTIMIZE CACHE)
  check_cxx_source_compiles("
    #ifndef __OPTIMIZE__
    #error
    #endif
    int main() {}" GSHARD_FLAGS_OPTIMIZE)
  if(NOT GSHARD_FLAGS_OPTIMIZE)
    message(WARNING "gshard::compiled is not optimized: CMAKE_BUILD_TYPE is '${CMAKE_BUILD_TYPE}', and the flags are '${flags}'")
  endif()
endif()
set(one_level "${cannot_hide}")
if(NOT one_level)
  unset(GSHARD_BASE_LEVEL_IS_LOWEST CACHE)
  check_cxx_source_compiles("
    #if !defined(__x86_64__) || defined(__AVX__)
    #error
    #endif
    int main() {}" GSHARD_BASE_LEVEL_IS_LOWEST)
  if(NOT GSHARD_BASE_LEVEL_IS_LOWEST)
    set(one_level "the compiler's flags choose an instruction set with AVX, or another processor")
  endif()
endif()
unset(CMAKE_REQUIRED_FLAGS)
set(levels base)
if(one_level)
  message(WARNING "gshard::compiled has kernels for one level of the instruction set: ${one_level}. It needs a processor with that level.")
else()
  list(APPEND levels x86_64_v3 x86_64_v4)
endif()

foreach(level IN LISTS levels)
  set(kernels gshard_kernels_${level})
  add_library(${kernels} OBJECT "${PROJECT_SOURCE_DIR}/cmake/kernels.cpp")
  target_link_libraries(${kernels} PRIVATE gshard)
  set_target_properties(${kernels} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF INTERPROCEDURAL_OPTIMIZATION OFF)
  if(level STREQUAL "base")
    set(table compiled_kernels)
    if(NOT one_level)
      target_compile_definitions(${kernels} PRIVATE GSHARD_KERNEL_LEVELS)
    endif()
  else()
    set(table kernels_${level})
    string(REPLACE "x86_64_" "x86-64-" march "${level}")
    target_compile_definitions(${kernels} PRIVATE GSHARD_KERNEL_TABLE=${table})
    target_compile_options(${kernels} PRIVATE -march=${march} -mtune=generic)
  endif()
  if(cannot_hide)
    target_sources(gshard_compiled PRIVATE $<TARGET_OBJECTS:${kernels}>)
  else()
    # Only the table and the highest level stay global.
    target_compile_options(${kernels} PRIVATE -fno-lto "$<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>")
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${kernels}${CMAKE_CXX_OUTPUT_EXTENSION}")
    add_custom_command(OUTPUT "${object}"
      COMMAND "${gnu_linker}" -r --force-group-allocation -o "${object}" $<TARGET_OBJECTS:${kernels}>
      COMMAND "${CMAKE_OBJCOPY}" --wildcard "--keep-global-symbol=*${table}E" "--keep-global-symbol=*highest_levelE" "${object}"
      DEPENDS ${kernels} $<TARGET_OBJECTS:${kernels}> COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    target_sources(gshard_compiled PRIVATE "${object}")
  endif()
endforeach()
