// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/program/input_shardings.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("all shardings of a tensor, and samples of combinations") {
  CHECK(on::all_sharding_texts(0, {"x"}) == std::vector<std::string>{""});
  CHECK(on::all_sharding_texts(1, {"x"}) == std::vector<std::string>{"A,", "A@x,"});
  CHECK(on::all_sharding_texts(2, {"x"}) == std::vector<std::string>{"A,B", "A@x,B", "A,B@x"});
  CHECK(on::all_sharding_texts(1, {"x", "y"}) == std::vector<std::string>{"A,", "A@x,", "A@y,", "A@y@x,", "A@x@y,"});
  CHECK(on::combinations({{"a", "b"}, {"c", "d"}}, 10).size() == 4);
  const auto some = on::combinations({{"a", "b", "c"}, {"d", "e", "f"}, {"g", "h"}}, 3);
  CHECK(some.size() == 3);
  for (std::size_t i = 0; i < 2; ++i) CHECK(std::set<std::string>{some[0][i], some[1][i], some[2][i]}.size() == 3);
  CHECK(on::combinations({}, 5).size() == 1);
}
