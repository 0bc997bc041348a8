// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/options.hpp"

#include "requests.hpp"

#include <cstdint>

namespace {
using namespace requests;
using list = std::vector<std::int64_t>;

pl::arguments given(const std::string& key, const std::string& text) {
  pl::arguments a;
  a.add(key, text);
  return a;
}
template <class F>
std::string said(const std::string& key, const std::string& text, F f) {
  return refused([&] { f(given(key, text)); });
}
}  // namespace

TEST_CASE("plan: lists of numbers") {
  CHECK(pl::parse_numbers("--low", "1,-2,+3") == list{1, -2, 3});
  CHECK(refused([] { pl::parse_numbers("--low", "1,,2"); }) == "malformed --low \"1,,2\" at column 2: expected a whole number, as in 1,0");
  CHECK(refused([] { pl::parse_numbers("--low", "1;2"); }) == "malformed --low \"1;2\" at column 1: expected its end, as in 1,0");
  CHECK(refused([] { pl::parse_numbers("--low", "99999999999999999999"); }).find("expected a smaller number") != std::string::npos);
  CHECK(refused([] { pl::parse_numbers("--low", ""); }).find("expected a whole number") != std::string::npos);
}

TEST_CASE("plan: dims from the front and from the back") {
  CHECK(given("dims", "0,-1").dims("dims", 3) == std::vector<int>{0, 2});
  CHECK(pl::arguments().dims("dims", 3) == std::vector<int>{0, 1, 2});
  CHECK(given("dim", "-3").dim("dim", 3, 0) == 0);
  CHECK(pl::arguments().dim("dim", 3, -1) == 2);
  const auto dims = [](const pl::arguments& a) { a.dims("dims", 3); };
  CHECK(said("dims", "3", dims) == "--dims 3: expected a number from -3 to 2");
  CHECK(said("dims", "0,-3", dims) == "--dims 0,-3 names dim 0 twice: name it once");
  CHECK(said("dim", "0,1", [](const pl::arguments& a) { a.dim("dim", 3, 0); }) == "--dim 0,1: give one dim");
  CHECK(said("dims", "0", [](const pl::arguments& a) { a.dims("dims", 0); }) == "--dims 0: a scalar has no dims");
}

TEST_CASE("plan: numbers per dim") {
  const list zeros(3, 0);
  CHECK(given("low", "1,2,3").per_dim("low", zeros, 0, 9) == list{1, 2, 3});
  CHECK(given("low", "4").per_dim("low", zeros, 0, 9) == list{4, 4, 4});
  CHECK(given("low", "4").per_dim("low", zeros, 0, 9, {1}) == list{0, 4, 0});
  CHECK(given("high", "4").per_dim("low", zeros, 0, 9) == zeros);
  pl::arguments a = given("low", "4,5");
  a.add("dims", "-1,0");
  CHECK(a.per_dim("low", zeros, 0, 9) == list{5, 0, 4});
  const auto low = [&](const pl::arguments& b) { b.per_dim("low", zeros, 0, 9); };
  CHECK(said("low", "1,2", low) == "--low 1,2 has 2 numbers for 3 dims: give one per dim, or one for all of them");
  CHECK(said("low", "10", low) == "--low 10: expected a number from 0 to 9");
}

TEST_CASE("plan: words, real numbers, and what is missing or given twice") {
  CHECK(given("kind", "b").choice("kind", {"a", "b"}, 0) == 1);
  CHECK(said("kind", "c", [](const pl::arguments& a) { a.choice("kind", {"a", "b", "d"}, 0); }) == "--kind \"c\": expected a, b or d");
  CHECK(given("value", "-inf").real("value", 0) < -1e300);
  CHECK(given("value", "0.25").real("value", 0) == 0.25);
  CHECK(said("value", "x", [](const pl::arguments& a) { a.real("value", 0); }) ==
        "malformed --value \"x\": expected a number, as in 0.5 or -inf");
  CHECK(said("value", "nan", [](const pl::arguments& a) { a.real("value", 0); }).starts_with("malformed --value"));
  CHECK(refused([] { pl::arguments().text("ids"); }) == "--ids is missing: see --help");
  pl::arguments twice = given("ids", "1");
  twice.add("ids", "2");
  CHECK(refused([&] { twice.text("ids"); }) == "--ids is given twice: give it once");
  CHECK(pl::option{"--dims,--axis", ""}.key() == "dims");
  CHECK(pl::option{"equation", ""}.key() == "equation");
}
