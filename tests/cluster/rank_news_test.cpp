// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/rank_news.hpp>

#include <doctest/doctest.h>

#include <string>

namespace gs = gshard;

TEST_CASE("rank_news: a failure counts for processes that are in its scope, or have not come to it") {
  for (int begun = 0; begun < 4; ++begun)
    for (int ended = 0; ended <= begun; ++ended)
      for (unsigned scope = 0; scope < 5; ++scope) {
        gs::detail::rank_news news(1);
        for (int i = 1; i <= begun; ++i) CHECK(news.open_scope() == unsigned(i));
        for (int i = begun; i > begun - ended; --i) news.close_scope(unsigned(i));
        news.fails(2, scope, "no disk", 5);
        const bool is_over = scope > unsigned(begun - ended) && scope <= unsigned(begun);
        CAPTURE(begun);
        CAPTURE(ended);
        CAPTURE(scope);
        CHECK(news.against(7, 5) == (is_over ? "" : "rank 2 failed: no disk"));
        CHECK(news.against(7, 4).empty());
      }
}

TEST_CASE("rank_news: the first failure stays until its scope ends") {
  gs::detail::rank_news news(1);
  CHECK(news.open_scope() == 1);
  CHECK(news.open_scope() == 2);
  news.fails(1, 2, "mine", 0);
  news.fails(0, 1, "later", 0);
  CHECK(news.against(1, 0) == "this rank failed: mine");
  news.close_scope(1);
  CHECK(!news.against(1, 0).empty());
  news.close_scope(2);
  CHECK(news.against(1, 0).empty());
  CHECK(news.open_scope() == 3);
  news.fails(0, 2, "of a scope that is over", 0);
  CHECK(news.against(1, 0).empty());
}

TEST_CASE("rank_news: a rank that has departed takes part in calls up to its last") {
  gs::detail::rank_news news(0);
  CHECK(news.departure(3).empty());
  news.departs(3, 16, "has destroyed its cluster", 10);
  news.departs(3, 20, "has called exit", 11);
  CHECK(news.departure(3) == "has destroyed its cluster, so that it makes no further call");
  CHECK(news.departure(2).empty());
  CHECK(news.departure(4).empty());
  CHECK(news.against(16, 100).empty());
  CHECK(news.against(17, 9).empty());
  CHECK(news.against(17, 10) == "rank 3 has destroyed its cluster, so that it makes no further call after call 16");
}
