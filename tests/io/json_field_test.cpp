// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/json_field.hpp>

#include "../complaint.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string_view>

namespace gs = gshard;
using gs::detail::json_field;

TEST_CASE("fields of another kind are errors that name document and field") {
  const auto document = nlohmann::ordered_json::parse(
      R"({"a": {"b": [1, -2, 1.5, "inf", 18446744073709551615]}, "text": "two", "flag": true, "none": null})");
  const json_field root(document, "file 'f'");
  const json_field list = root["a"]["b"];
  CHECK(list.size() == 5);
  CHECK(list[0].integer(1, 2) == 1);
  CHECK(list[2].any_number() == 1.5);
  CHECK(std::isinf(list[3].any_number()));
  CHECK(root["text"].one_of(std::array<std::string_view, 2>{"one", "two"}) == 1);
  CHECK(root["flag"].flag());
  CHECK(root.members() == 4);
  CHECK(complaint([&] { list[1].integer(0, 9); }) == "file 'f': a.b[1]: is not a whole number from 0 to 9");
  CHECK(contains(complaint([&] { list[2].integer(0, 9); }), "a.b[2]: is not a whole number"));
  CHECK(contains(complaint([&] { list[4].integer(0, INT64_MAX); }), "is not a whole number"));
  CHECK(contains(complaint([&] { root["text"].any_number(); }), "is not a number, \"inf\""));
  CHECK(contains(complaint([&] { list[1].number(); }), "is not a number of at least 0"));
  CHECK(contains(complaint([&] { root["text"].flag(); }), "is not true or false"));
  CHECK(contains(complaint([&] { root["flag"].text(); }), "is not a string"));
  CHECK(contains(complaint([&] { root["text"].one_of(std::array<std::string_view, 1>{"one"}); }), "'two' is not one of: one"));
  CHECK(contains(complaint([&] { root["none"]["x"]; }), "none: is not an object"));
  CHECK(contains(complaint([&] { root["x"]; }), "file 'f': x: is missing"));
  CHECK(contains(complaint([&] { root["text"].size(); }), "is not a list"));
  CHECK(contains(complaint([&] { root.only({"a", "text", "flag"}); }), "none: is not known"));
}
