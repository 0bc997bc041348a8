// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/tensor/whole_array.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::detail::array_layout;
using facts = std::vector<gs::fact>;

static_assert(gs::detail::is_whole_array<std::vector<float>, float> && gs::detail::is_whole_array<std::span<float>, float> &&
              gs::detail::is_whole_array<float[4], float> && gs::detail::is_whole_array<std::array<std::int32_t, 3>, std::int32_t>);
static_assert(!gs::detail::is_whole_array<std::vector<double>, float> && gs::detail::has_elements<std::vector<double>>);
static_assert(!gs::detail::is_whole_array<std::list<float>, float> && !gs::detail::has_elements<std::list<float>> &&
              !gs::detail::has_elements<float>);

namespace {

using extents = std::vector<std::int64_t>;

/// The offsets of the elements of a tensor with these extents, in row-major order. Nothing if the array does not fit.
std::optional<extents> offsets(const array_layout& a, const extents& of) {
  const auto stride = a.strides_in(of);
  if (!stride) return std::nullopt;
  std::int64_t n = 1;
  for (const std::int64_t e : of) n *= e;
  extents found;
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t rest = i, at = 0;
    for (std::size_t d = of.size(); d-- > 0; rest /= of[d]) at += rest % of[d] * (*stride)[d];
    found.push_back(at);
  }
  return found;
}

constexpr array_layout range(std::int64_t n) { return {n}; }
constexpr array_layout matrix(std::int64_t rows, std::int64_t cols, std::int64_t down, std::int64_t right) {
  return {rows * cols, 2, true, {rows, cols}, {down, right}};
}

template <class T>
void add_elements(facts& all, const std::string& array, const std::vector<T>& elements) {
  gs::detail::add_elements(all, array, gs::dtype_of<T>, std::as_bytes(std::span(elements)));
}

}  // namespace

TEST_CASE("a range has any extents of as many elements, row by row") {
  CHECK(offsets(range(6), {2, 3}) == extents{0, 1, 2, 3, 4, 5});
  CHECK(offsets(range(1), {}) == extents{0});
  CHECK(offsets(range(0), {2, 0, 3}) == extents{});
  CHECK(!offsets(range(6), {2, 2}));
}

TEST_CASE("a matrix has the last dim as columns and all others as rows, or is a vector") {
  CHECK(offsets(matrix(2, 3, 1, 2), {2, 3}) == extents{0, 2, 4, 1, 3, 5});
  CHECK(offsets(matrix(4, 2, 1, 4), {2, 2, 2}) == extents{0, 4, 1, 5, 2, 6, 3, 7});
  CHECK(offsets(matrix(4, 2, 10, 1), {2, 2, 2}) == extents{0, 1, 10, 11, 20, 21, 30, 31});
  CHECK(offsets(matrix(3, 1, 2, 7), {3}) == extents{0, 2, 4});
  CHECK(offsets(matrix(1, 3, 7, 2), {3}) == extents{0, 2, 4});
  CHECK(offsets(matrix(1, 1, 1, 1), {}) == extents{0});
  CHECK(offsets(matrix(1, 1, 5, 5), {1}) == extents{0});
  CHECK(offsets(matrix(0, 3, 1, 0), {0, 3}) == extents{});
  for (const extents& of : {extents{3, 2}, {6}, {1, 6}, {2, 3, 1}, {3, 2, 1}, {2, 2}, {}}) CHECK(!offsets(matrix(2, 3, 1, 2), of));
}

TEST_CASE("other arrays have their own extents") {
  const array_layout a{6, 2, false, {2, 3}, {1, 2}};
  CHECK(offsets(a, {2, 3}) == extents{0, 2, 4, 1, 3, 5});
  for (const extents& of : {extents{3, 2}, {6}, {1, 2, 3}, {2, 3, 1}}) CHECK(!offsets(a, of));
}

TEST_CASE("what does not fit is told with the extents of both") {
  const std::vector<std::int64_t> of{4, 3};
  CHECK(gs::detail::text_of_misfit(range(5), of, "a: ", " for a tensor of ") == "a: 5 elements for a tensor of 12");
  CHECK(gs::detail::text_of_misfit(matrix(3, 4, 1, 3), of, "a: ", " for a tensor of ") == "a: an array [3,4] for a tensor of [4,3]");
}

TEST_CASE("elements of arrays as facts") {
  facts all;
  add_elements(all, "input 2", std::vector<float>{0.1f, -2});
  REQUIRE(all.size() == 3);
  CHECK(all[0].value == "2");
  CHECK(all[1].what == "element 0 of input 2");
  CHECK(all[1].value == "0.1");
  std::vector<double> many(5000, 0.25);
  all.clear();
  add_elements(all, "w", many);
  CHECK(all.size() == 1 + 4096 + 2);
  CHECK(all[all.size() - 2].value == "226");
  const auto facts_of = [](const std::vector<double>& w) {
    facts f;
    add_elements(f, "w", w);
    return f;
  };
  many.back() = 0;
  CHECK(gs::hash_of(all) != gs::hash_of(facts_of(many)));
  std::vector<double> swapped = many;
  std::swap(swapped[4998], swapped[4999]);
  CHECK(facts_of(many)[4097].value == facts_of(swapped)[4097].value);
  CHECK(facts_of(many).back().value != facts_of(swapped).back().value);
}

TEST_CASE("facts about the elements of a long array: sums of integers tell neighbors apart that doubles do not") {
  std::vector<std::int64_t> all(5000, std::int64_t(1) << 60);
  facts before, after;
  add_elements(before, "x", all);
  ++all.back();
  add_elements(after, "x", all);
  CHECK(before.end()[-2].value != after.end()[-2].value);
}
