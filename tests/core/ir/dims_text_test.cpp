// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/dims_text.hpp>

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

/// A number below n.
std::size_t below(std::mt19937& random, std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); }

/// A sharding as text, in the form of plans.
std::string text_of(const std::string& letters, const gs::named_sharding& s) {
  std::string text;
  for (int d = 0; d < s.rank; ++d) {
    text += (d ? "," : "") + std::string(1, letters[std::size_t(d)]) + ((s.open >> d) & 1u ? "?" : "");
    for (int i = 0; i < s.count; ++i)
      if (s.items[std::size_t(i)].dim == d) text += "@" + std::string(s.items[std::size_t(i)].axis.view());
  }
  std::string partial;
  for (int i = 0; i < s.count; ++i)
    if (s.items[std::size_t(i)].dim < 0) partial += (partial.empty() ? "+" : ",") + std::string(s.items[std::size_t(i)].axis.view());
  return text + (s.rank == 1 && s.open == 0 && s.count == 0 ? "," : "") + partial;
}

}  // namespace

TEST_CASE("the text of any sharding states that sharding") {
  std::mt19937 random(1);
  const std::vector<std::string> names{"data", "model", "x", "expert_with_long_name_2"};
  for (int run = 0; run < 5000; ++run) {
    gs::named_sharding s;
    std::string letters;
    s.rank = 1 + int(below(random, gs::max_rank));
    for (int d = 0; d < s.rank; ++d) {
      letters += char('A' + below(random, 26));
      if (below(random, 4) == 0) s.open |= 1u << d;
      else
        for (std::size_t n = below(random, 5); n > 0; --n) s.add(names[below(random, names.size())], d);
    }
    for (std::size_t n = below(random, 3); n > 0; --n) s.add(names[below(random, names.size())], -1);
    const std::string text = text_of(letters, s);
    CAPTURE(text);
    const gs::dims_text found(text);
    REQUIRE(found.is_valid());
    CHECK(found.has_letters());
    CHECK(found.letters.view() == letters);
    CHECK(found.is_sharded == (s.rank > 1 || text.size() > 1));
    CHECK(text_of(letters, found.sharding) == text);
    CHECK(found.sharding.count == s.count);
    CHECK(found.sharding.open == s.open);
  }
}

TEST_CASE("any text is read, or has a position that is wrong") {
  std::mt19937 random(2);
  const std::string characters = "GSM,@?+ x1.";
  for (int run = 0; run < 20000; ++run) {
    std::string text(below(random, 40), ' ');
    for (char& c : text) c = characters[below(random, characters.size())];
    CAPTURE(text);
    const gs::dims_text found(text);
    CHECK(found.sharding.rank <= gs::max_rank);
    if (found.is_valid()) CHECK(found.letters.view().size() == std::size_t(found.sharding.rank));
    else CHECK(found.error <= text.size());
  }
}
