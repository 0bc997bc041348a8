// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/file/wire.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("fields of another wire type are skipped") {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_int64(1, 5);
  w.add_string(1, "text");
  w.add_int64(1, 7);
  w.add_fixed64(1, 9);
  on::wire_state state;
  std::vector<std::int64_t> found;
  on::for_each_field(protozero::pbf_reader(bytes), state, [&](on::wire_field& f) {
    std::int64_t n = -1;
    f.read(n);
    found.push_back(n);
  });
  CHECK(found == std::vector<std::int64_t>{5, -1, 7, -1});
}

TEST_CASE("messages are limited in number and depth") {
  on::wire_state state;
  CHECK_THROWS_WITH_AS(state.count(std::size_t(1) << 40), doctest::Contains("more than 4194304 items"), gshard::error);
  const std::function<void(int)> nest = [&](int depth) {
    state.inside("g", [&] {
      if (depth > 0) nest(depth - 1);
    });
  };
  nest(20);
  CHECK_THROWS_WITH_AS(nest(100), doctest::Contains("nested in more than 64 messages"), gshard::error);
}
