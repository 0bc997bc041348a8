# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# gshard::compiled: backends, engine and all kernels in one static library. On x86-64 it has the kernels three times: for the compiler's flags, for
# x86-64-v3 and for x86-64-v4. Clusters choose (comm/cpu_level.hpp).
add_library(gshard_compiled STATIC "${PROJECT_SOURCE_DIR}/cmake/engine.cpp" "${PROJECT_SOURCE_DIR}/cmake/kernels.cpp")
add_library(gshard::compiled ALIAS gshard_compiled)
target_link_libraries(gshard_compiled PUBLIC gshard)
target_compile_definitions(gshard_compiled INTERFACE GSHARD_COMPILED_KERNELS=1)
set_target_properties(gshard_compiled PROPERTIES EXPORT_NAME compiled OUTPUT_NAME gshard POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)

# Flags such as -march=native choose one level. Only GNU's linker and objcopy can keep the levels apart.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
set(one_level)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(one_level "the processor is ${CMAKE_SYSTEM_PROCESSOR}")
elseif(NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
  set(one_level "the compiler is ${CMAKE_CXX_COMPILER_ID}")
elseif("${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}" MATCHES "-m(arch|cpu|avx|fma)|-flto|-fsanitize|-fcoverage|--coverage")
  set(one_level "the compiler's flags decide: ${CMAKE_CXX_FLAGS}")
else()
  execute_process(COMMAND "${CMAKE_LINKER}" --help OUTPUT_VARIABLE said ERROR_QUIET)
  if(NOT CMAKE_OBJCOPY OR NOT said MATCHES "--force-group-allocation")
    set(one_level "the linker is not GNU's")
  endif()
endif()
if(one_level)
  message(STATUS "gshard::compiled has kernels for one level of the instruction set: ${one_level}")
else()
  foreach(level IN ITEMS x86_64_v3 x86_64_v4)
    string(REPLACE "x86_64_" "x86-64-" march "${level}")
    set(kernels gshard_kernels_${level})
    add_library(${kernels} OBJECT "${PROJECT_SOURCE_DIR}/cmake/kernels.cpp")
    target_link_libraries(${kernels} PRIVATE gshard)
    target_compile_definitions(${kernels} PRIVATE GSHARD_KERNEL_TABLE=kernels_${level})
    target_compile_options(${kernels} PRIVATE -march=${march} -mtune=generic "$<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>")
    set_target_properties(${kernels} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)
    # Only the table stays global. Else the linker would keep one copy of what several levels have in common, such as a function of
    # std::vector, and it could be that for the highest level.
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${kernels}${CMAKE_CXX_OUTPUT_EXTENSION}")
    add_custom_command(OUTPUT "${object}"
      COMMAND "${CMAKE_LINKER}" -r --force-group-allocation -o "${object}" $<TARGET_OBJECTS:${kernels}>
      COMMAND "${CMAKE_OBJCOPY}" --wildcard "--keep-global-symbol=*kernels_${level}E" "${object}"
      DEPENDS ${kernels} $<TARGET_OBJECTS:${kernels}> COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    target_sources(gshard_compiled PRIVATE "${object}")
  endforeach()
  target_compile_definitions(gshard_compiled PRIVATE GSHARD_KERNEL_LEVELS)
endif()
