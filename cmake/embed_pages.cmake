# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -DOUTPUT=<include folder>/gshard/io/report/page_texts.hpp -P embed_pages.cmake
# Writes the files of pages/ as constants of a header, in which <gshard/io/report/page.hpp> and <gshard/survive/monitor/run_page.hpp> find them.
cmake_minimum_required(VERSION 3.24)
set(header "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Made by cmake/embed_pages.cmake: the scripts, style sheets and frame of HTML pages.

#include <gshard/core/base/compiler.hpp>

#include <string_view>

namespace gshard { inline namespace v0 { namespace detail { namespace page_texts {
")
file(GLOB files "${CMAKE_CURRENT_LIST_DIR}/pages/*")
if(NOT OUTPUT OR NOT files)
  message(FATAL_ERROR "OUTPUT is missing, or ${CMAKE_CURRENT_LIST_DIR}/pages is empty")
endif()
foreach(file IN LISTS files)
  file(READ "${file}" text)
  if(text MATCHES "[)]page\"")
    message(FATAL_ERROR "${file} contains )page\", which ends the constant")
  endif()
  cmake_path(GET file FILENAME name)
  string(REPLACE "." "_" name "${name}")
  string(APPEND header "\ninline constexpr std::string_view ${name} = R\"page(${text})page\";\n")
endforeach()
string(APPEND header "\n}}}}  // namespace gshard::v0::detail::page_texts\n")
set(before "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT before STREQUAL header)  # otherwise what includes it is up to date
  file(WRITE "${OUTPUT}" "${header}")
endif()
