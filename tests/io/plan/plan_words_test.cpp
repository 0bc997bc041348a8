// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/plan/plan_words.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>

namespace gs = gshard;

TEST_CASE("words are in the order of the enumerators, and name operations once") {
  using namespace gs::detail;
  CHECK(word_of(gs::reduction::prod) == "prod");
  CHECK(word_of(gs::reshape_kind::rename) == "rename");
  CHECK(word_of(gs::not_finite::ignore) == "ignore");
  CHECK(word_of(gs::initializer::kind::row) == "row");
  CHECK(words_of(gs::dtype::f32).size() == std::size_t(gs::element_types));
  std::set<std::string_view> names;
  for (const std::string_view name : words_of(gs::op_ref())) CHECK(names.insert(name).second);
}

TEST_CASE("sets of own attributes differ by their names") {
  std::set<std::string> all;
  for (const gs::attribute_names* const set : gs::detail::own_attributes) {
    std::string names;
    for (int i = 0; i < set->count; ++i) names.append(set->items[i].name).append(" ");
    CHECK(all.insert(names).second);
  }
}
