# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -DROOT=<tree> "-DOPTIONS=mpi|blas|..." "-DFLAGS=-f...|..." -P recipes.cmake
# Every recipe turns every optional library on or off, so that none is used by accident. It has the compiler flags of CMakeLists.txt.
cmake_minimum_required(VERSION 3.24)
string(REPLACE "|" ";" OPTIONS "${OPTIONS}")
string(REPLACE "|" ";" FLAGS "${FLAGS}")
set(breaches)
function(must_say file text)
  file(READ "${ROOT}/${file}" content)
  string(FIND "${content}" "${text}" at)
  if(at EQUAL -1)
    set(breaches "${breaches}${file} lacks ${text}\n" PARENT_SCOPE)
  endif()
endfunction()

foreach(option IN LISTS OPTIONS)
  string(TOUPPER "${option}" upper)
  must_say(conanfile.py "\"${option}\"")
  must_say(packaging/conan-center/all/conanfile.py "\"${option}\"")
  must_say(packaging/spack/package.py "\"${option}\"")
  must_say(packaging/vcpkg/ports/gshard/portfile.cmake "GSHARD_${upper}")
  must_say(CMakePresets.json "\"GSHARD_${upper}\": \"O")  # ON or OFF, in the preset packages
endforeach()
must_say(conanfile.py "\"core\", \"base\", \"version.hpp\"")  # where the version is
# The build preset of the same name builds everything that cpack packages.
must_say(CMakePresets.json "\"targets\": [\"gshard_compiled\", \"gshard_commands\"]")
foreach(flag IN LISTS FLAGS)
  must_say(conanfile.py "\"${flag}\"")
  must_say(packaging/conan-center/all/conanfile.py "\"${flag}\"")
endforeach()
file(STRINGS "${ROOT}/CITATION.cff" version REGEX "^version:")
if(version)
  string(APPEND breaches "CITATION.cff: the version is in include/gshard/core/base/version.hpp alone\n")
endif()
if(breaches)
  message(FATAL_ERROR "${breaches}")
endif()
