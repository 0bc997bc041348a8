// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/checkpoint/checkpointer_options.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace gs = gshard;

TEST_CASE("checkpointer options: what is wrong is named") {
  const auto wrong = [](const gs::checkpointer_options& o, bool leader = true) { return gs::detail::problem_of_options(o, leader); };
  const std::string begin = "checkpoint: checkpointer_options::";
  CHECK(wrong({}) == "");
  CHECK(wrong({.keep = 0}) == begin + "keep is 0; it is at least 1");
  CHECK(wrong({.every_seconds = -1}) == begin + "every_seconds is negative or not a number");
  CHECK(wrong({.every_seconds = NAN}) == begin + "every_seconds is negative or not a number");
  CHECK(wrong({.lock_seconds = -1}) == "");
  CHECK(wrong({.lock_seconds = NAN}) == begin + "lock_seconds is not a number");
  CHECK(wrong({.most_roll_backs = 0}) == "");
  CHECK(wrong({.most_roll_backs = -1}) == begin + "most_roll_backs is negative");
  CHECK(wrong({.settings = {{"name", "Andr\xc3\xa9"}}}) == "");
  CHECK(wrong({.settings = {{"name", "Andr\xe9"}}}) == begin + "settings: \"Andr\xe9\" is not UTF-8");
  CHECK(wrong({.settings = {{"n\xe4me", "Andre"}}}) == begin + "settings: \"n\xe4me\" is not UTF-8");
  CHECK(wrong({.require_signature = true}) == "checkpoint: require_signature needs a key");
  CHECK(wrong({.require_signature = true}, false) == "");
}

TEST_CASE("checkpointer options: every difference between processes is seen") {
  const auto facts = [](const gs::checkpointer_options& o) {
    std::vector<gs::fact> all;
    gs::detail::add_to(all, o);
    return gs::hash_of(all);
  };
  const std::vector<gs::checkpointer_options> all{{},
                                                  {.every_steps = 1},
                                                  {.every_seconds = 1},
                                                  {.keep = 3},
                                                  {.per_host = true},
                                                  {.lock_seconds = 6},
                                                  {.on_failure = gs::checkpointer_options::failure::stop},
                                                  {.allow_not_finite = true},
                                                  {.most_roll_backs = 4},
                                                  {.settings = {{"a", "b"}}},
                                                  {.settings = {{"a", "c"}}},
                                                  {.require_signature = true}};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < all.size(); ++j) CHECK((facts(all[i]) == facts(all[j])) == (i == j));
}
