// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The cases of docs/bugs.md and of tests/cases, or of the file GSHARD_CASES: right numbers on one device, and on every mesh.
#include "run_case.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::vector<std::string> files() {
  if (const char* const one = std::getenv("GSHARD_CASES")) return {one};
  std::vector<std::string> all{"../docs/bugs.md"};
  for (const auto& entry : std::filesystem::directory_iterator("cases"))
    if (entry.path().extension() == ".md" && entry.path().stem() != "README") all.push_back(entry.path().string());
  std::sort(all.begin(), all.end());
  return all;
}

std::string wrong_with(const std::string& block) {
  std::istringstream in("# x\n```case\nsizes A=4 C=2\nmeshes 1 2\nx: f64[AC] = 1..8\n" + block + "\n```\n");
  std::size_t runs = 0;
  std::string text;
  for (const cases::text_case& c : cases::read_cases(in, "given")) text += cases::wrong(c, runs);
  return text;
}
bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("cases: right numbers on one device, and on every mesh with every sharding") {
  for (const std::string& file : files()) {
    const std::vector<cases::text_case> list = cases::read_cases(file);
    CAPTURE(file);
    CHECK(!list.empty());
    for (const cases::text_case& c : list) {
      std::size_t runs = 0;
      CHECK(cases::wrong(c, runs) == "");
      CHECK((runs > 0 || !cases::expected_error(c).empty()));
    }
  }
}

TEST_CASE("cases: tests that docs/bugs.md names exist") {
  std::ifstream page("../docs/bugs.md");
  int named = 0;
  for (std::string row; std::getline(page, row);) {
    const std::size_t begin = row.find("| `tests/"), middle = row.find("`: ", begin);
    if (begin == std::string::npos) continue;
    const std::string file = row.substr(begin + 3, middle - begin - 3), name = row.substr(middle + 3, row.rfind(" |") - middle - 3);
    std::ifstream test("../" + file);
    const std::string text{std::istreambuf_iterator<char>(test), {}};
    CHECK_MESSAGE(text.find("TEST_CASE(\"" + name + "\")") != std::string::npos, file, ": ", name);
    ++named;
  }
  CHECK(named > 0);
}

TEST_CASE("cases: a case that is wrong is found") {
  CHECK(wrong_with("sum(x) == 36") == "");
  CHECK(says(wrong_with("sum(x) == 37"), "line 6: element 0 is 36, expected 37"));
  CHECK(says(wrong_with("sum(\"ac->c\", x) == [16 20 1]"), "2 elements, expected 3"));
  CHECK(says(wrong_with("sum(\"ac->c\", x) == [16 21]"), "element 1 is 20, expected 21"));
  CHECK(says(wrong_with("x == 2 * x"), "element 0 is 1, expected 2"));
  CHECK(wrong_with("sum(x) unaffected by x") != "");
  CHECK(says(wrong_with("error \"dims\"\nsum(x)"), "no error"));
  CHECK(says(wrong_with("sort(x, dim=2).ids"), "one device"));
  CHECK(wrong_with("error \"dims\"\nsort(x, dim=2).ids") == "");
  CHECK(wrong_with("z: f64[A] = 0.5\nsum(z) unaffected by z") != "");
  CHECK(wrong_with("z: f64[C] = 0..1\nsum(z) unaffected by z") != "");
  CHECK(wrong_with("y: f32[A] = 0.000002\ny ~ 0.000009") != "");
  CHECK(wrong_with("y: f32[A] = 0.000002\ny ~ 0.000002") == "");
  CHECK(wrong_with("differentiable cumsum(x) * tanh(x)") == "");
  CHECK(says(wrong_with("differentiable x + 3 * stop_gradient(x)"), "line 6: the slope along input 0 is "));
}

TEST_CASE("cases: a fault of a case is not the refusal that it expects") {
  CHECK(says(wrong_with("error \"option\"\nsort(x, dims=0).ids"), "no option dims"));
  CHECK(says(wrong_with("y = sum(x)"), "it compares nothing"));
}

TEST_CASE("cases: what cannot be read is an error with its line") {
  CHECK_THROWS_WITH_AS(wrong_with("sum(x) == 36 37"), doctest::Contains("given:6: unexpected text"), cases::bad_case);
  CHECK_THROWS_WITH_AS(wrong_with("sum(x"), doctest::Contains("given:6: "), cases::bad_case);
  CHECK(says(wrong_with("summe(x)"), "unknown verb summe"));
  CHECK(says(wrong_with("sum(z)"), "unknown name z"));
  CHECK(says(wrong_with("sort(x, dims=0).ids"), "sort: no option dims"));
  CHECK(says(wrong_with("sum(x) unaffected by z"), "no input z"));
  CHECK(says(wrong_with("y: f64[A] = [1 2]\ny"), "y has 4 elements, 2 are given"));
  CHECK(says(wrong_with("y: f65[A]\ny"), "unknown element type f65"));
  CHECK(says(wrong_with("y: f64[A] = []\ny"), "y is given no number"));
  CHECK(says(wrong_with("y: f64[Z]\ny"), "letter Z has no size"));
  CHECK(says(wrong_with("n: i32[A] from 9 below C\nn"), "n: no number is from 9 to"));
  CHECK(says(wrong_with("f(a) = f(a)\nf(x)"), "f calls itself without end"));
  for (const char* const text : {"y: f64[A] = 5..1", "sum(x) == [0..inf]", "steps 2 garbage", "steps 0", "meshes 2y3", "error \"\"", "same x y"})
    CHECK_THROWS_WITH_AS(wrong_with(text), doctest::Contains("given:6: "), cases::bad_case);
  CHECK_THROWS_AS(wrong_with("error \"dims\"\nerror \"dims\"\nsum(x)"), cases::bad_case);
}
