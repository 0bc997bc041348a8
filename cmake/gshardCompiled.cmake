# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# gshard::compiled: backends, engine and all kernels in one static library. On x86-64 it has the kernels three times: for the compiler's
# flags, for x86-64-v3 and for x86-64-v4. Clusters choose (comm/cpu_level.hpp).
add_library(gshard_compiled STATIC "${PROJECT_SOURCE_DIR}/cmake/engine.cpp")
add_library(gshard::compiled ALIAS gshard_compiled)
target_link_libraries(gshard_compiled PUBLIC gshard)
target_compile_definitions(gshard_compiled INTERFACE GSHARD_COMPILED_KERNELS=1)
set_target_properties(gshard_compiled PROPERTIES EXPORT_NAME compiled OUTPUT_NAME gshard POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)

# Only GNU's linker and objcopy can hide the inline functions of kernels. Otherwise the linker would keep one copy of each. This might be a
# function of std::vector for the highest level, or Eigen's aligned_malloc of a program with another -march.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
set(flags "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}")
set(cannot_hide)
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
  set(cannot_hide "the compiler is ${CMAKE_CXX_COMPILER_ID}")
elseif(flags MATCHES "-flto|-fsanitize|-fcoverage|--coverage")
  set(cannot_hide "the compiler's flags are ${flags}")
else()
  execute_process(COMMAND "${CMAKE_LINKER}" --help OUTPUT_VARIABLE said ERROR_QUIET)
  if(NOT CMAKE_OBJCOPY OR NOT said MATCHES "--force-group-allocation")
    set(cannot_hide "the linker is not GNU's")
  endif()
endif()

# Flags such as -march=native choose one level.
set(one_level "${cannot_hide}")
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(one_level "the processor is ${CMAKE_SYSTEM_PROCESSOR}")
elseif(flags MATCHES "-m(arch|cpu|avx|fma)")
  set(one_level "the compiler's flags decide: ${flags}")
endif()
set(levels base)
if(one_level)
  message(STATUS "gshard::compiled has kernels for one level of the instruction set: ${one_level}")
else()
  list(APPEND levels x86_64_v3 x86_64_v4)
endif()

foreach(level IN LISTS levels)
  set(kernels gshard_kernels_${level})
  add_library(${kernels} OBJECT "${PROJECT_SOURCE_DIR}/cmake/kernels.cpp")
  target_link_libraries(${kernels} PRIVATE gshard)
  set_target_properties(${kernels} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)
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
    # Only the table stays global.
    target_compile_options(${kernels} PRIVATE "$<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>")
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${kernels}${CMAKE_CXX_OUTPUT_EXTENSION}")
    add_custom_command(OUTPUT "${object}"
      COMMAND "${CMAKE_LINKER}" -r --force-group-allocation -o "${object}" $<TARGET_OBJECTS:${kernels}>
      COMMAND "${CMAKE_OBJCOPY}" --wildcard "--keep-global-symbol=*${table}E" "${object}"
      DEPENDS ${kernels} $<TARGET_OBJECTS:${kernels}> COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    target_sources(gshard_compiled PRIVATE "${object}")
  endif()
endforeach()
