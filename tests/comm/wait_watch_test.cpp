// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/comm/wait_watch.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gs = gshard;

namespace wait_watches {

/// Keeps what processes would report and how they would end, as long as it lives.
class record {
 public:
  record() : before_(gs::wait_watch::reactions()) {
    gs::wait_watch::reactions() = {[this](const std::string& text) {
                                     const std::scoped_lock lock(mutex_);
                                     reports_.push_back(text);
                                   },
                                   [this](int status) {
                                     const std::scoped_lock lock(mutex_);
                                     ends_.push_back(status);
                                   }};
  }
  ~record() { gs::wait_watch::reactions() = before_; }
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
  /// Waits until there are so many reports, for at most 10 s.
  bool has(std::size_t reports) const {
    for (int i = 0; i < 1000 && this->reports().size() < reports; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return this->reports().size() >= reports;
  }

 private:
  gs::wait_watch::reaction before_;
  mutable std::mutex mutex_;
  std::vector<std::string> reports_;
  std::vector<int> ends_;
};

/// The watches of several processes that know each other, all in this one.
inline std::vector<std::unique_ptr<gs::wait_watch>> ranks(int n, const gs::wait_deadlines& deadlines) {
  std::vector<std::unique_ptr<gs::wait_watch>> all;
  std::vector<gs::wait_watch::endpoint> endpoints;
  for (int rank = 0; rank < n; ++rank) {
    all.push_back(std::make_unique<gs::wait_watch>(rank, deadlines));
    endpoints.push_back(all.back()->mine());
  }
  for (const auto& one : all) one->meet(endpoints);
  return all;
}
inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }
inline void pause(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

}  // namespace wait_watches

using namespace wait_watches;

TEST_CASE("wait_watch: the lowest rank that waits reports where all are, once per wait") {
  const record kept;
  auto all = ranks(4, {.warn = 0.2, .fail = 0});
  all[1]->in_call(7);
  all[1]->at_step(41, "all_reduce", "/a/model.cpp", 12);
  all[3]->in_call(6);
  all[2].reset();
  {
    const gs::wait_watch::wait first(all[1].get(), "an agreement of all ranks"), inner(all[1].get(), "a barrier");
    const gs::wait_watch::wait second(all[3].get(), "a broadcast", 512);
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
  CHECK(kept.ends().empty());

  const gs::wait_watch::wait again(all[3].get(), "a barrier");
  REQUIRE(kept.has(2));
  CHECK(contains(kept.reports()[1], "gshard: rank 3 waits for "));
}

TEST_CASE("wait_watch: a process that does not answer is named; at the second deadline the others end") {
  const record kept;
  auto all = ranks(2, {.warn = 0, .fail = 0.2});
  gs::wait_watch stranger(5, {});
  std::vector<gs::wait_watch::endpoint> unreachable{all[0]->mine(), stranger.mine()};  // which knows nobody, and so does not answer
  all[0]->meet(unreachable);
  const gs::wait_watch::wait waiting(all[0].get(), "an exchange of blocks");
  REQUIRE(kept.has(1));
  CHECK(contains(kept.reports()[0], "gshard: rank 0 gives up: it waits for "));
  CHECK(contains(kept.reports()[0], "\n  rank 1 does not answer: it has ended, is stopped or cannot be reached\n"));
  for (int i = 0; i < 100 && kept.ends().empty(); ++i) pause(10);
  REQUIRE(!kept.ends().empty());
  CHECK(kept.ends()[0] == 75);
}

TEST_CASE("wait_watch: short waits, and waits without deadlines, are not reported") {
  const record kept;
  {
    auto all = ranks(2, {.warn = 2, .fail = 4});
    for (int i = 0; i < 50; ++i) {
      const gs::wait_watch::wait waiting(all[0].get(), "a barrier");
      pause(50);
    }
  }
  {
    auto all = ranks(2, {.warn = 0, .fail = 0});
    const gs::wait_watch::wait waiting(all[0].get(), "a barrier");
    pause(300);
  }
  CHECK(kept.reports().empty());
  CHECK(kept.ends().empty());
}

TEST_CASE("wait_watch: before processes know each other, one reports about itself") {
  const record kept;
  gs::wait_watch alone(3, {.warn = 0.1, .fail = 0});
  const gs::wait_watch::wait waiting(&alone, "making a cluster");
  REQUIRE(kept.has(1));
  CHECK(contains(kept.reports()[0], "gshard: rank 3 waits for "));
  CHECK(contains(kept.reports()[0], " in making a cluster, collective call 0\n"));
}

TEST_CASE("wait watch: the time of all waits that have ended, inner ones once") {
  gs::wait_watch watch(0, {});
  CHECK(watch.waited() == 0);
  {
    const gs::wait_watch::wait outer(&watch, "an agreement of all ranks");
    {
      const gs::wait_watch::wait inner(&watch, "an exchange of blocks");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    CHECK(watch.waited() == 0);
  }
  const std::int64_t once = watch.waited();
  CHECK(once >= 5000000);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  CHECK(watch.waited() == once);
  { const gs::wait_watch::wait again(&watch, "a barrier"); }
  CHECK(watch.waited() >= once);
}
