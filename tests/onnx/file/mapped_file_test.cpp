// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/file/mapped_file.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("a file is memory") {
  const std::string path = "mapped_file_test.tmp";
  std::ofstream(path) << "abc";
  CHECK(on::mapped_file(path).bytes().size() == 3);
  CHECK(on::mapped_file(path).bytes()[2] == std::byte('c'));
  std::ofstream(path, std::ios::trunc);
  CHECK(on::mapped_file(path).bytes().empty());
  std::remove(path.c_str());
  CHECK_THROWS_WITH_AS(on::mapped_file("no/such/file"), doctest::Contains("no/such/file: cannot be opened"), gshard::error);
  CHECK_THROWS_WITH_AS(on::mapped_file("."), doctest::Contains("is not a regular file"), gshard::error);
}
