// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/process/thread_rule.hpp>

#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/backend/loopback.hpp>
#include <gshard/exec/backend/simulated.hpp>

#include "../../complaint.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace gs = gshard;
using gs::detail::thread_rule;
using allows = thread_rule::allows;

namespace {
const std::string two_threads = "cluster: one thread at a time may use it; two do at the same time";

std::string complaint_in_thread(const auto& f) {
  std::string said;
  std::thread([&] { said = complaint(f); }).join();
  return said;
}
void call(gs::backend& on) { on.begin(std::vector<gs::fact>{{"the call", "of a test"}}); }
}  // namespace

TEST_CASE("thread_rule: one thread at a time; inner uses belong to the outer one") {
  thread_rule rule(allows::one_at_a_time);
  const auto use = [&] { const thread_rule::use inner(rule); };
  CHECK(rule.is_checked());
  CHECK(complaint_in_thread(use).empty());
  {
    const thread_rule::use outer(rule);
    use();
    CHECK(complaint_in_thread(use) == two_threads);
    use();
    CHECK(complaint_in_thread(use) == two_threads);
  }
  CHECK(complaint_in_thread(use).empty());
  CHECK(std::string(rule.take_refusal()) == ": one thread at a time may use it; two do at the same time");
  CHECK(rule.take_refusal() == nullptr);
}

TEST_CASE("thread_rule: the main thread alone, any thread, and one thread for all objects of the process") {
  thread_rule main(allows::main_thread), any(allows::any_thread), first(allows::one_in_process), second(allows::one_in_process);
  const thread_rule::use a(any), b(first), c(second);
  CHECK(!any.is_checked());
  CHECK(complaint_in_thread([&] { const thread_rule::use one(any); }).empty());
  CHECK(complaint_in_thread([&] { const thread_rule::use one(main); }) ==
        "cluster: MPI_Init_thread has given MPI_THREAD_FUNNELED or less, so only the thread that initialized MPI may use it; another one "
        "does");
  CHECK(complaint_in_thread([&] { const thread_rule::use one(second); }) ==
        "cluster: MPI_Init_thread has given MPI_THREAD_SERIALIZED, so one thread at a time may use clusters; two do at the same time");
}

TEST_CASE("thread_rule: threads in turn see each other's writes, and no two are in at the same time") {
  thread_rule rule(allows::one_at_a_time);
  int inside = 0, uses = 0;  // a race without the rule
  std::atomic<int> wrong = 0, refused = 0, done = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) try {
          const thread_rule::use one(rule);
          wrong += ++inside != 1;
          ++uses;
          --inside;
          ++done;
        } catch (const gs::error& e) {
          refused += e.what() == two_threads;
        }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(uses == done);
  CHECK(done + refused == 20000);
}

TEST_CASE("thread_rule: all calls of a backend that another thread uses are refused; runs that were started are waited for") {
  gs::simulated on({3});
  std::vector<std::byte> sent(4), received(12);
  std::vector<std::vector<std::span<std::byte>>> blocks(3);
  std::vector<gs::gather_part> parts;
  for (std::size_t d = 0; d < 3; ++d) {
    for (std::size_t m = 0; m < 3; ++m) blocks[d].push_back(std::span(received).subspan(4 * m, 4));
    parts.push_back({sent, blocks[d]});
  }
  const auto gather = [&] { on.all_gather(1, parts); };
  {
    const thread_rule::use in_use = on.enter();
    CHECK(complaint_in_thread([&] { call(on); }) == two_threads);
    CHECK(complaint_in_thread([&] { const thread_rule::use other = on.enter(); }) == two_threads);
    CHECK(complaint_in_thread(gather) == two_threads);
    CHECK(complaint_in_thread([&] { on.exchange(1, {}); }) == two_threads);
    CHECK(complaint_in_thread([&] { static_cast<void>(on.start(1, {})); }) == two_threads);
    call(on);
    gather();
  }
  CHECK(on.calls() == 1);
  CHECK(complaint_in_thread([&] { call(on); }).empty());
  CHECK(complaint_in_thread(gather).empty());

  std::vector<int> order;
  for (int job = 0; job < 3; ++job)
    on.started().start(
        [&, job] {
          const thread_rule::use in_use = on.enter();
          call(on);
          order.push_back(job);
        },
        true);
  const thread_rule::use in_use = on.enter();
  CHECK(order == std::vector{0, 1, 2});
  CHECK(on.calls() == 5);
}

TEST_CASE("thread_rule: a thread may use several clusters at a time, and threads several, one each; one device is for all threads") {
  gs::simulated first({2}), second({2});
  gs::loopback one;
  const thread_rule::use a = first.enter();
  {
    const thread_rule::use b = second.enter();
    call(first);
    call(second);
    CHECK(complaint_in_thread([&] { call(first); }) == two_threads);
    CHECK(complaint_in_thread([&] { call(second); }) == two_threads);
  }
  CHECK(complaint_in_thread([&] { call(second); }).empty());
  const thread_rule::use c = one.enter();
  CHECK(complaint_in_thread([&] { call(one); }).empty());
}
