// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/backend/agreement.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::fact;
using facts = std::vector<fact>;

TEST_CASE("facts are equal if all but their places are") {
  const facts all{{"the call", "save", "a.cpp:3"}, {"the step", "4"}};
  CHECK(gs::hash_of(all) == gs::hash_of({{"the call", "save", "b.cpp:4"}, {"the step", "4"}}));
  for (const facts& other : {facts{{"the call", "load"}, {"the step", "4"}}, facts{{"the call", "save"}, {"the step", "5"}},
                             facts{{"the call", "save"}}, facts{{"the call", "savet"}, {"he step", "4"}},
                             facts{{"the call", "save"}, {"the seed", "4"}}, facts{{"the step", "4"}, {"the call", "save"}}})
    CHECK(gs::hash_of(all) != gs::hash_of(other));

  const gs::collective_call call(all);
  CHECK(call.hash() == gs::hash_of(all));
  CHECK(call.facts().size() == 2);
  int asked = 0;
  const auto give = [&] {
    ++asked;
    return all;
  };
  const gs::collective_call lazy(5, give);
  CHECK(lazy.hash() == 5);
  CHECK(asked == 0);
  CHECK(lazy.facts()[1].value == "4");
  CHECK(asked == 1);
  CHECK(gs::collective_call().facts().empty());
}

TEST_CASE("the hash of an array depends on every bit of it, and on its length") {
  std::mt19937 random(3);
  for (std::size_t n = 0; n < 100; ++n) {
    std::vector<std::byte> data(n);
    for (std::byte& b : data) b = std::byte(random() % 256);
    const std::uint64_t hash = gs::detail::hash_of_bytes(data);
    CHECK(hash == gs::detail::hash_of_bytes(std::vector<std::byte>(data)));
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<std::byte> other = data;
      other[i] ^= std::byte(1u << random() % 8);
      CHECK(hash != gs::detail::hash_of_bytes(other));
    }
    data.push_back(std::byte(0));
    CHECK(hash != gs::detail::hash_of_bytes(data));
  }
}

TEST_CASE("numbers as text tell them apart") {
  CHECK(gs::detail::number_text(0.1f) == "0.1");
  CHECK(gs::detail::number_text(0.1) != gs::detail::number_text(std::nextafter(0.1, 1)));
  CHECK(gs::detail::number_text(-7) == "-7");
  CHECK(gs::detail::number_text(true) == "true");
  CHECK(gs::detail::number_text(std::numeric_limits<double>::lowest()).size() < 32);
  CHECK(gs::detail::extents_text(std::vector<std::int64_t>{2, 3}) == "[2,3]");
}

TEST_CASE("groups of ranks in words") {
  const auto text = [](const std::vector<int>& ranks) { return gs::detail::ranks_text(ranks); };
  CHECK(text({3}) == "rank 3");
  CHECK(text({0, 1}) == "ranks 0 and 1");
  CHECK(text({0, 1, 2}) == "ranks 0 to 2");
  CHECK(text({0, 1, 2, 5}) == "ranks 0 to 2 and 5");
  CHECK(text({1, 3, 4, 6, 7, 8}) == "ranks 1, 3, 4 and 6 to 8");
  std::vector<int> odd;
  for (int i = 1; i < 40; i += 2) odd.push_back(i);
  CHECK(text(odd) == "ranks 1, 3, 5, 7, 9, 11, 13, 15 and 12 more");
  CHECK(gs::detail::groups_text({"8", "9", "9", "8"}) == "ranks 0 and 3 have 8, ranks 1 and 2 have 9");
  std::vector<std::string> each;
  for (int i = 0; i < 10; ++i) each.push_back(std::to_string(i));
  CHECK(gs::detail::groups_text(each).ends_with("rank 7 has 7, and others have 2 other values"));
}

TEST_CASE("disagreements in words") {
  const fact call{"the call", "save", "a.cpp:3"};
  CHECK(gs::detail::disagreement(call, 0, false, {{"the mesh", "2x2"}, {"the mesh", "4"}}) ==
        "save (a.cpp:3): the processes disagree on the mesh: rank 0 has 2x2, rank 1 has 4");
  CHECK(gs::detail::disagreement(call, 7, false, {{"step 1", "map", "b.cpp:1"}, {"output 0", "%3"}}) ==
        "call 7 on their cluster: save (a.cpp:3): the processes disagree: rank 0 has step 1 map (b.cpp:1), rank 1 has output 0 %3");
  CHECK(gs::detail::disagreement(call, 7, true, {call, {"the call", "load"}, call}) ==
        "call 7 on their cluster: the processes make different calls: ranks 0 and 2 have save (a.cpp:3), rank 1 has load");
}
