// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/testing/run_program.hpp>

#include <gshard/core/trace/einsum.hpp>

#include <doctest/doctest.h>

#include <string>

#include "../complaint.hpp"

namespace gs = gshard;
namespace testing = gs::testing;

namespace {

const testing::model product = [](const gs::parameter_scope&, std::span<const gs::symbol> x) {
  return gs::list<gs::symbol>{gs::einsum<"AB,BC->AC">(x[0], x[1])};
};

}  // namespace

TEST_CASE("run_program: a product on one device and on three, of chosen shardings") {
  const testing::traced t = testing::trace({{"AB"}, {"BC"}}, product);
  const gs::dims sizes{{'A', 2}, {'B', 4}, {'C', 1}};
  const testing::arrays given{{1, 2, 3, 4, 5, 6, 7, 8}, {1, 0, -1, 2}};
  testing::setting s = testing::serial(t, sizes);
  const testing::array expected{1 - 3 + 8, 5 - 7 + 16};
  CHECK(testing::run(t, s, given)[0] == expected);
  s.mesh = {3};
  for (gs::sharding& l : s.layouts) l[0].push_back(0);
  CHECK(testing::text_of(s) == "mesh 3, dims A=2 B=4 C=1, shardings [x,-] [x,-]");
  CHECK(testing::run(t, s, given)[0] == expected);
}

TEST_CASE("run_program: wrong arrays and models are named") {
  const testing::traced t = testing::trace({{"AB"}, {"BC"}}, product);
  const testing::setting s = testing::serial(t, {{'A', 2}, {'B', 4}, {'C', 1}});
  CHECK(complaint([&] { testing::run(t, s, {{1}}); }).find("one array is needed for each input") != std::string::npos);
  CHECK(complaint([&] { testing::run(t, s, {{1}, {1, 2, 3, 4}}); }).find("another size than its tensor") != std::string::npos);
  CHECK(complaint([] { testing::trace({{"AB"}, {"CB"}}, product); }).find("one index or operation has two different dims") !=
        std::string::npos);
}
