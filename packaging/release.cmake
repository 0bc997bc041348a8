# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -DARCHIVE=gshard-1.2.3.tar.gz -DARCHIVE_URL=https://... -DHOMEPAGE=https://... -DTO=FOLDER -P packaging/release.cmake
# Writes the recipes for Conan Center and Spack, with version and hash of a released source archive, to FOLDER. See docs/releasing.md.
cmake_minimum_required(VERSION 3.24)
foreach(name IN ITEMS ARCHIVE ARCHIVE_URL HOMEPAGE TO)
  if("${${name}}" STREQUAL "")
    message(FATAL_ERROR "-D${name}= is missing: see the head of packaging/release.cmake")
  endif()
endforeach()
if(NOT EXISTS "${ARCHIVE}")
  message(FATAL_ERROR "there is no archive ${ARCHIVE}")
endif()
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH top)
file(STRINGS "${top}/include/gshard/core/base/version.hpp" version REGEX "^#define GSHARD_VERSION_[A-Z]+ [0-9]+$")
list(TRANSFORM version REPLACE ".* " "")
list(JOIN version "." VERSION)
if(NOT ARCHIVE_URL MATCHES "[^0-9]${VERSION}[^0-9]")
  message(FATAL_ERROR "ARCHIVE_URL=${ARCHIVE_URL} is not of version ${VERSION}")
endif()
file(SHA256 "${ARCHIVE}" ARCHIVE_SHA256)

foreach(file IN ITEMS conan-center/config.yml conan-center/all/conandata.yml conan-center/all/conanfile.py spack/package.py)
  file(READ "${CMAKE_CURRENT_LIST_DIR}/${file}" text)
  string(REGEX REPLACE "(^|\n)# (SPDX|@)[^\n]*" "" text "${text}")  # the indexes have licences of their own
  string(REGEX REPLACE "^\n+" "" text "${text}")
  file(CONFIGURE OUTPUT "${TO}/${file}" CONTENT "${text}" @ONLY)
endforeach()
file(COPY "${top}/test_package" DESTINATION "${TO}/conan-center/all")
