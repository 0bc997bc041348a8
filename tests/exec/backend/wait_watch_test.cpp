// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/backend/wait_watch.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <thread>

namespace gs = gshard;

namespace {

/// A watch that tells nobody, and shows its activity.
class silent_watch final : public gs::wait_watch {
 public:
  void lacks(std::span<const int>) override { now_.lacks = true; }
  std::uint64_t open_scope() override { return 0; }
  void close_scope(std::uint64_t) override {}
  void fail(std::uint64_t, const std::string&) override {}
  void leave(const char*) override {}
  std::string refusal(std::uint64_t) const override { return {}; }

  const activity& now() const { return now_; }
};

}  // namespace

TEST_CASE("wait_watch: an inner wait belongs to the outer one, and the end of a wait adds its time") {
  silent_watch watch;
  CHECK(watch.waited() == 0);
  {
    const gs::wait_watch::wait outer(&watch, "a barrier", 12);
    const std::int64_t began = watch.now().since;
    {
      const gs::wait_watch::wait inner(&watch, "a message");
      CHECK(watch.now().waits_in.load() == std::string("a barrier"));
      CHECK(watch.now().bytes == 12);
    }
    CHECK(watch.now().waits_in.load() != nullptr);
    CHECK(watch.now().since == began);
    watch.lacks({});
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  CHECK(watch.now().waits_in.load() == nullptr);
  CHECK_FALSE(watch.now().lacks.load());
  CHECK(watch.waited() >= 2000000);
}

TEST_CASE("wait_watch: a new call begins the count of its steps") {
  silent_watch watch;
  watch.in_call(7);
  watch.at_step(3, "einsum", "model.cpp", 12);
  watch.at_step(4, "all_reduce", nullptr, 0);
  CHECK(watch.now().steps == 2);
  CHECK(watch.now().step == 4);
  CHECK(watch.now().kind.load() == std::string("all_reduce"));
  watch.in_call(8);
  CHECK(watch.now().call == 8);
  CHECK(watch.now().steps == 0);
}

TEST_CASE("wait_watch: without a watch, a wait does nothing") { const gs::wait_watch::wait nothing(nullptr, "a barrier"); }
