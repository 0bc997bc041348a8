# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# gshard_dev: linked by gshard's own tests, examples and benchmarks. It has every dependency that was found, and warnings.
add_library(gshard_dev INTERFACE)
target_link_libraries(gshard_dev INTERFACE gshard)
foreach(part IN LISTS gshard_parts)
  if(gshard_with_${part})
    target_link_libraries(gshard_dev INTERFACE gshard_${part})
  endif()
endforeach()
target_compile_definitions(gshard_dev INTERFACE GSHARD_SHOW_WARNINGS=1)  # otherwise users include the headers as system headers
target_compile_options(gshard_dev INTERFACE
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wshadow>"
  # g++ 12 warns of the undefined operands in its own AVX-512 intrinsics, which Eigen and xxHash inline.
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>"
  # At -O3 there are more of these warnings, and wrong ones about overlapping copies in std::string (GCC bug 105651).
  "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:-Wno-uninitialized;-Wno-restrict>"
  "$<$<AND:$<BOOL:${GSHARD_WERROR}>,$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>>:-Werror>")

# How to start programs on several ranks, also as root, in containers, and on fewer cores than ranks.
set(gshard_mpiexec ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG})
set(gshard_mpiexec_flags)
if(gshard_with_mpi AND MPIEXEC_EXECUTABLE)
  execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE version ERROR_VARIABLE version)
  if(version MATCHES "Open MPI|OpenRTE|open-mpi")
    set(gshard_mpiexec_flags --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
  endif()
endif()
set(gshard_mpi_environment
  OMP_NUM_THREADS=1
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_btl_vader_single_copy_mechanism=none)

# gshard_translate: the headers in examples/translate and their installed dependencies, for the program and its tests.
add_library(gshard_translate INTERFACE)
target_include_directories(gshard_translate INTERFACE
  "${PROJECT_SOURCE_DIR}/examples" "${PROJECT_SOURCE_DIR}/examples/translate")
target_link_libraries(gshard_translate INTERFACE gshard_dev)
foreach(library sentencepiece_train sentencepiece utf8proc)
  string(TOUPPER GSHARD_${library}_LIBRARY found)
  find_library(${found} ${library})
  mark_as_advanced(${found})
  if(${found})
    target_link_libraries(gshard_translate INTERFACE "${${found}}")
  endif()
endforeach()
