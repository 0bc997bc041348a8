// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/record/run_record.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string_view>

namespace {
template <class E>
void check_names(std::size_t n) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < n; ++i) names.insert(name(E(i)));
  CHECK(names.size() == n);
  CHECK(names.count("") == 0);
}
}  // namespace

TEST_CASE("everything in a record has a name of its own") {
  check_names<gshard::step_part>(std::size_t(gshard::step_part::count_));
  check_names<gshard::memory_kind>(std::size_t(gshard::memory_kind::count_));
  check_names<gshard::limit>(5);
  check_names<gshard::activity>(3);
}
