// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/datagram_watch.hpp>

#include "../complaint.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gs = gshard;

namespace datagram_watches {

/// Records the reports and ends of processes while it exists.
class record {
 public:
  record() : before_(gs::datagram_watch::reactions()) {
    gs::datagram_watch::reactions() = {[this](const std::string& text) {
                                     const std::scoped_lock lock(mutex_);
                                     reports_.push_back(text);
                                   },
                                   [this](int status) {
                                     const std::scoped_lock lock(mutex_);
                                     ends_.push_back(status);
                                   }};
  }
  ~record() { gs::datagram_watch::reactions() = before_; }
  record(const record&) = delete;
  record& operator=(const record&) = delete;

  std::vector<std::string> reports() const {
    const std::scoped_lock lock(mutex_);
    return reports_;
  }
  std::vector<int> ends() const {
    const std::scoped_lock lock(mutex_);
    return ends_;
  }
  /// Waits until there are this many reports, for at most 10 s.
  bool has(std::size_t reports) const {
    for (int i = 0; i < 1000 && this->reports().size() < reports; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return this->reports().size() >= reports;
  }

 private:
  gs::datagram_watch::reaction before_;
  mutable std::mutex mutex_;
  std::vector<std::string> reports_;
  std::vector<int> ends_;
};

/// The watches of several processes that know each other, all in this process.
inline std::vector<std::unique_ptr<gs::datagram_watch>> ranks(int n, const gs::wait_deadlines& deadlines) {
  std::vector<std::unique_ptr<gs::datagram_watch>> all;
  std::vector<gs::datagram_watch::endpoint> endpoints;
  for (int rank = 0; rank < n; ++rank) {
    all.push_back(std::make_unique<gs::datagram_watch>(rank, deadlines));
    endpoints.push_back(all.back()->mine());
  }
  for (const auto& one : all) one->know_peers(endpoints);
  return all;
}
inline void pause(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

}  // namespace datagram_watches

using namespace datagram_watches;

TEST_CASE("datagram_watch: the lowest rank that waits reports where all are, once per wait") {
  const record kept;
  auto all = ranks(4, {.warn = 0.2, .fail = 0});
  all[1]->in_call(7);
  all[1]->at_step(41, "all_reduce", "/a/model.cpp", 12);
  all[3]->in_call(6);
  all[2]->in_call(7);
  all[2].reset();
  {
    const gs::datagram_watch::wait first(all[1].get(), "an agreement of all ranks"), inner(all[1].get(), "a barrier");
    const gs::datagram_watch::wait second(all[3].get(), "a broadcast", 512);
    REQUIRE(kept.has(1));
    pause(500);
  }
  REQUIRE(kept.reports().size() == 1);
  const std::string text = kept.reports()[0];
  CAPTURE(text);
  CHECK(contains(text, "gshard: rank 1 waits for 0."));
  CHECK(contains(text, " in an agreement of all ranks, collective call 7, step 41 all_reduce at model.cpp:12\n"));
  CHECK(contains(text, "\n  rank 0 is outside of gshard's communication for "));
  CHECK(contains(text, "\n  rank 2 has destroyed its cluster, so that it makes no further call\n"));
  CHECK(contains(text, "\n  rank 3 waits for "));
  CHECK(contains(text, " in a broadcast of 512 bytes, collective call 6\n"));
  CHECK(text.ends_with("\n  absent: ranks 0, 2 and 3\n"));  // rank 3 waits in an earlier call
  CHECK(kept.ends().empty());

  const gs::datagram_watch::wait again(all[3].get(), "a barrier");
  REQUIRE(kept.has(2));
  CHECK(contains(kept.reports()[1], "gshard: rank 3 waits for "));
}

TEST_CASE("datagram_watch: a process that does not answer is named; at the second deadline the others end") {
  const record kept;
  auto all = ranks(2, {.warn = 0, .fail = 0.2});
  gs::datagram_watch stranger(5, {});
  std::vector<gs::datagram_watch::endpoint> unreachable{all[0]->mine(), stranger.mine()};  // it knows no others, and therefore does not answer
  all[0]->know_peers(unreachable);
  const gs::datagram_watch::wait waiting(all[0].get(), "an exchange of blocks");
  REQUIRE(kept.has(1));
  CHECK(contains(kept.reports()[0], "gshard: rank 0 gives up: it waits for "));
  CHECK(contains(kept.reports()[0], "\n  rank 1 does not answer: it has ended, is stopped or cannot be reached\n  absent: rank 1\n"));
  for (int i = 0; i < 100 && kept.ends().empty(); ++i) pause(10);
  REQUIRE(!kept.ends().empty());
  CHECK(kept.ends()[0] == 75);
}

TEST_CASE("datagram_watch: ranks at the same step, or beyond it, are not absent; the messages that a wait lacks are named") {
  const record kept;
  auto all = ranks(5, {.warn = 0.2, .fail = 0});
  for (const auto& one : all) one->in_call(3);
  for (int rank = 0; rank < 5; ++rank)
    for (int step = 0; step < (rank == 2 ? 1 : rank == 3 ? 3 : 2); ++step) all[std::size_t(rank)]->at_step(step, "all_to_all", nullptr, 0);
  all[4]->in_call(4);
  std::vector<std::unique_ptr<gs::datagram_watch::wait>> waits;
  for (const auto& one : all) waits.push_back(std::make_unique<gs::datagram_watch::wait>(one.get(), "an exchange of blocks", 64));
  all[0]->lacks(std::vector{1, 2});
  REQUIRE(kept.has(1));
  const std::string text = kept.reports()[0];
  CAPTURE(text);
  CHECK(contains(text,
                 " in an exchange of blocks of 64 bytes, without the messages of ranks 1 and 2, collective call 3, step 1 all_to_all\n"));
  CHECK(text.ends_with("\n  absent: rank 2\n"));
  waits[0].reset();
  const gs::datagram_watch::wait later(all[0].get(), "a barrier");
  all[2]->at_step(1, "all_to_all", nullptr, 0);
  REQUIRE(kept.has(2));
  CHECK(!contains(kept.reports()[1], "rank 0 waits for 0.2 s in a barrier, without"));
  CHECK(kept.reports()[1].ends_with("\n  absent: none, all ranks wait\n"));
}

TEST_CASE("datagram_watch: another cluster of the process is named") {
  const record kept;
  auto here = ranks(2, {.warn = 0.2, .fail = 0}), there = ranks(2, {.warn = 0, .fail = 0});
  there[1]->in_call(9);
  const gs::datagram_watch::wait mine(here[0].get(), "a barrier"), other(there[1].get(), "a broadcast");
  REQUIRE(kept.has(1));
  CHECK(contains(kept.reports()[0], "\n  rank 1 is outside of gshard's communication for "));
  CHECK(contains(kept.reports()[0], "; on another cluster it waits for "));
  CHECK(contains(kept.reports()[0], " in a broadcast, collective call 9\n"));
}

TEST_CASE("datagram_watch: a failure in a scope refuses the calls of ranks in the scope, and ends their waits") {
  const record kept;
  auto all = ranks(4, {.warn = 60, .fail = 600});
  for (int rank = 0; rank < 4; ++rank) CHECK(all[std::size_t(rank)]->open_scope() == 1);
  all[3]->close_scope(1);
  all[0]->in_call(5);
  const gs::datagram_watch::wait waiting(all[0].get(), "an agreement of all ranks");
  all[2]->fail(1, "no disk");  // returns when all ranks know it
  CHECK(all[1]->refusal(1) == "rank 2 failed: no disk");
  CHECK(all[2]->refusal(1) == "this rank failed: no disk");
  CHECK(all[3]->refusal(1).empty());
  all[1]->close_scope(1);
  REQUIRE(kept.has(1));
  CAPTURE(kept.reports()[0]);
  CHECK(kept.reports()[0].starts_with("gshard: rank 0 gives up: rank 2 failed: no disk\n  rank 0 waits for "));
  CHECK(contains(kept.reports()[0], " in an agreement of all ranks, collective call 5\n"));
  for (int i = 0; i < 300 && kept.ends().empty(); ++i) pause(10);
  REQUIRE(!kept.ends().empty());
  CHECK(kept.ends()[0] == gs::wait_deadlines::restart_status);
  CHECK(all[1]->refusal(1).starts_with("rank 0 failed: it gave up: rank 2 failed: no disk"));
}

TEST_CASE("datagram_watch: a wait for a rank that has left ends early, unless the rank had come to the call") {
  const record kept;
  auto all = ranks(3, {.warn = 60, .fail = 600});
  for (const auto& one : all) one->in_call(5);
  all[2].reset();
  {
    const gs::datagram_watch::wait last(all[0].get(), "an agreement of all ranks");
    pause(1500);
    CHECK(kept.reports().empty());
  }
  CHECK(all[0]->refusal(5).empty());
  CHECK(all[0]->refusal(6) == "rank 2 has destroyed its cluster, so that it makes no further call after call 5");
  all[0]->in_call(6);
  const gs::datagram_watch::wait next(all[0].get(), "an agreement of all ranks");
  REQUIRE(kept.has(1));
  CHECK(kept.reports()[0].starts_with(
      "gshard: rank 0 gives up: rank 2 has destroyed its cluster, so that it makes no further call after call 5\n"));
  all[1]->leave("has called exit");
  for (int i = 0; i < 300 && all[0]->refusal(6).find("rank 1 failed") == std::string::npos; ++i) pause(1);
  CHECK(all[1]->refusal(5).starts_with("rank 0 failed: it gave up: "));
}

// The thread of a watch polls every 250 ms. If it noticed the end of its watch only by polling, this test would reach its time limit.
TEST_CASE("datagram_watch: the end of a watch wakes its thread, whatever the thread waits for") {
  const record kept;
  for (int i = 0; i < 10000; ++i) gs::datagram_watch(0, {});
  for (int i = 0; i < 1000; ++i) {  // ends while the thread asks a rank that never answers, or soon after
    auto all = ranks(2, {.warn = 1e-9, .fail = 0});
    gs::datagram_watch stranger(1, {});
    all[0]->know_peers({all[0]->mine(), stranger.mine()});
    const gs::datagram_watch::wait waiting(all[0].get(), "a barrier");
    if (i % 100 == 0) pause(10);
  }
  CHECK(kept.ends().empty());
}

TEST_CASE("datagram_watch: short waits, and waits without deadlines, are not reported") {
  const record kept;
  {
    auto all = ranks(2, {.warn = 2, .fail = 4});
    for (int i = 0; i < 50; ++i) {
      const gs::datagram_watch::wait waiting(all[0].get(), "a barrier");
      pause(50);
    }
  }
  {
    auto all = ranks(2, {.warn = 0, .fail = 0});
    const gs::datagram_watch::wait waiting(all[0].get(), "a barrier");
    pause(300);
  }
  CHECK(kept.reports().empty());
  CHECK(kept.ends().empty());
}

TEST_CASE("datagram_watch: before processes know each other, one reports about itself") {
  const record kept;
  gs::datagram_watch alone(3, {.warn = 0.1, .fail = 0});
  const gs::datagram_watch::wait waiting(&alone, "making a cluster");
  REQUIRE(kept.has(1));
  CHECK(contains(kept.reports()[0], "gshard: rank 3 waits for "));
  CHECK(contains(kept.reports()[0], " in making a cluster, collective call 0\n  the other ranks are not known yet"));
}

TEST_CASE("wait watch: the time of all waits that have ended, inner ones once") {
  gs::datagram_watch watch(0, {});
  CHECK(watch.waited() == 0);
  {
    const gs::datagram_watch::wait outer(&watch, "an agreement of all ranks");
    {
      const gs::datagram_watch::wait inner(&watch, "an exchange of blocks");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    CHECK(watch.waited() == 0);
  }
  const std::int64_t once = watch.waited();
  CHECK(once >= 5000000);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  CHECK(watch.waited() == once);
  { const gs::datagram_watch::wait again(&watch, "a barrier"); }
  CHECK(watch.waited() >= once);
}
