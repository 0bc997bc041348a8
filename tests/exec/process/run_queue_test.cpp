// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Jobs of a queue: their order and errors, with and without a thread.
#include <gshard/exec/process/run_queue.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

using gshard::pending_run;
using gshard::run_queue;

TEST_CASE("run queue: jobs run one at a time, in their order") {
  for (const bool threads : {false, true}) {
    run_queue queue;
    std::vector<int> order;
    std::atomic<int> running = 0;
    std::vector<run_queue::handle> jobs;
    for (int i = 0; i < 50; ++i)
      jobs.push_back(queue.start(
          [&, i] {
            CHECK(++running == 1);
            order.push_back(i);
            --running;
          },
          threads));
    queue.finish(jobs[20]);
    CHECK(jobs[20]->done);
    if (!threads) CHECK(order.size() == 21);
    queue.drain();
    REQUIRE(order.size() == 50);
    for (int i = 0; i < 50; ++i) CHECK(order[std::size_t(i)] == i);
  }
}

TEST_CASE("run queue: threads of the caller that wait at the same time run each job once") {
  for (int round = 0; round < 200; ++round) {
    run_queue queue;
    std::atomic<int> runs = 0;
    for (int i = 0; i < 4; ++i) queue.start([&] { ++runs; }, false);
    std::thread other([&] { queue.drain(); });
    queue.drain();
    CHECK(runs == 4);
    other.join();
    CHECK(runs == 4);
  }
}

TEST_CASE("run queue: wait() throws the error of its job, once") {
  for (const bool threads : {false, true}) {
    run_queue queue;
    bool after = false;
    pending_run bad(queue, queue.start([] { throw std::runtime_error("bad"); }, threads));
    pending_run good(queue, queue.start([&] { after = true; }, threads));
    good.wait();
    CHECK(after);
    CHECK(bool(bad));
    pending_run moved = std::move(bad);
    CHECK_THROWS_WITH(moved.wait(), "bad");
    CHECK_FALSE(bool(moved));
  }
}

TEST_CASE("run queue: a job may drain its queue; the destructors wait") {
  for (const bool threads : {false, true}) {
    int done = 0;
    {
      run_queue queue;
      const pending_run first(queue, queue.start(
                                         [&] {
                                           queue.drain();  // as every collective call of a run does
                                           ++done;
                                         },
                                         threads));
      queue.start([&] { ++done; }, threads);
    }
    CHECK(done == 2);
  }
}

TEST_CASE("run queue: pending_run::start does not wait for its job, but for the one before") {
  run_queue queue;
  std::atomic<bool> go = false;
  std::atomic<int> done = 0;
  pending_run job;
  job.start(queue, [&] {
    while (!go) std::this_thread::yield();
    ++done;
  }, true);
  CHECK(bool(job));
  CHECK(done == 0);
  go = true;
  job.start(queue, [&] { CHECK(++done == 2); }, true);
  CHECK(done >= 1);
  job.wait();
  CHECK(done == 2);
  CHECK_FALSE(bool(job));
}

TEST_CASE("run_queue: it knows whether a thread is in one of its jobs") {
  for (const bool threads : {false, true}) {
    run_queue queue, other;
    CHECK(!queue.in_job());
    bool inside = false, inside_other = true;
    const auto job = queue.start([&] {
      inside = queue.in_job();
      inside_other = other.in_job();
    }, threads);
    const auto later = queue.start([] {}, threads);
    CHECK(!queue.in_job());
    queue.finish(job);
    CHECK(inside);
    CHECK(!inside_other);
    queue.drain();
    CHECK(!queue.in_job());
  }
}
