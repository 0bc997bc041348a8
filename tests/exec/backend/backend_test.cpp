// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/backend/backend.hpp>

#include "random_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace gs = gshard;

namespace {

// Moves no data, to test the functions of the base class alone.
class idle final : public gs::backend {
 public:
  idle(std::vector<int> extents, std::vector<int> devices)
      : backend(std::move(extents), std::move(devices)) {}
  int calls = 0;
  std::vector<std::size_t> finished;

 private:
  std::size_t do_start(std::uint32_t, std::span<const gs::exchange_part>, const gs::exchange_bounds&, bool) override {
    return std::size_t(++calls);
  }
  void do_finish(std::size_t started) override {
    finished.push_back(started);
    if (started == 7) throw gs::error("the seventh fails");
  }
  void do_all_gather(std::uint32_t, std::span<const gs::gather_part>) override { ++calls; }
};

// Some devices of a 2x1x3 mesh. Other processes are supposed to hold the others.
const std::vector<int> extents{2, 1, 3}, held{1, 2, 4};

template <class F>
void for_each_case(F f) {
  for (std::uint32_t axes = 0; axes < cases::n_masks(extents); ++axes)
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      CAPTURE(axes);
      CAPTURE(seed);
      idle b(extents, held);
      f(b, axes, seed, cases::members(extents, axes, 0).size());
    }
}

}  // namespace

TEST_CASE("backend: an exchange copies the own block, counts what comes from others, and hands the rest on") {
  for_each_case([](idle& b, std::uint32_t axes, std::uint64_t seed, std::size_t size) {
    cases::exchange_case x(extents, axes, seed);
    b.exchange(axes, cases::parts(x, b.devices()));
    CHECK(b.calls == (size > 1 ? 1 : 0));
    for (std::size_t i = 0; i < held.size(); ++i) {
      const auto d = std::size_t(held[i]),
                 own = cases::place(cases::members(extents, axes, held[i]), held[i]);
      cases::bytes expected(x.recv[d].size(), cases::untouched);
      std::copy_n(x.send[d].begin() + x.send_offset[d][own], x.send_bytes[d][own],
                  expected.begin() + x.recv_offset[d][own]);
      CHECK(x.recv[d] == expected);
      std::int64_t bytes = 0;
      for (std::size_t j = 0; j < size; ++j) bytes += j == own ? 0 : x.recv_bytes[d][j];
      CHECK(b.received()[i] == gs::traffic{size > 1 ? 1 : 0, bytes, 0, 0});
    }
  });
}

TEST_CASE("backend: what is started is finished once, whatever becomes of it; own blocks and counts are left alone") {
  using order = std::vector<std::size_t>;
  idle b(extents, held);
  cases::exchange_case x(extents, 4, 0);
  const auto parts = cases::parts(x, b.devices());
  const auto untouched = x.recv;
  gs::pending_exchange none;
  none.finish();
  {
    gs::pending_exchange one = b.start(4, parts), two = b.start(4, parts), three = std::move(one), four;
    one.finish();
    CHECK(b.finished == order{});
    two.finish();
    two.finish();
    CHECK(b.finished == order{2});
    four = std::move(three);
    three.finish();
    CHECK(b.finished == order{2});
    four = b.start(4, parts);
    CHECK(b.finished == order{2, 1});
  }
  CHECK(b.finished == order{2, 1, 3});
  for (int i = 4; i <= 6; ++i) b.exchange(4, parts);
  CHECK(b.finished == order{2, 1, 3, 4, 5, 6});
  x.recv = untouched;
  b.reset_received();
  {
    gs::pending_exchange fails = b.start(4, cases::parts(x, b.devices()));
    CHECK_THROWS_WITH_AS(fails.finish(), "the seventh fails", gs::error);
    CHECK(b.finished.size() == 7);
  }
  CHECK(b.finished.size() == 7);
  CHECK(x.recv == untouched);
  for (const gs::traffic& t : b.received()) CHECK(t == gs::traffic{});
  CHECK_THROWS_WITH_AS((void)b.start(2, cases::parts(x, b.devices())), doctest::Contains("exchange: "), gs::error);  // groups of one device
  CHECK(b.calls == 7);
}

TEST_CASE("backend: an all-gather counts the bytes of the other members") {
  for_each_case([](idle& b, std::uint32_t axes, std::uint64_t seed, std::size_t size) {
    cases::gather_case g(extents, axes, seed);
    for (int times = 1; times <= 2; ++times) {
      b.all_gather(axes, cases::parts(g, b.devices()));
      CHECK(b.calls == (size > 1 ? times : 0));
      for (std::size_t i = 0; i < held.size(); ++i) {
        const auto d = std::size_t(held[i]);
        std::int64_t bytes = -std::int64_t(g.send[d].size());
        for (const std::int64_t block : g.recv_bytes[d]) bytes += block;
        CHECK(b.received()[i] == gs::traffic{0, 0, size > 1 ? times : 0, times * bytes});
      }
    }
    b.reset_received();
    for (const gs::traffic& t : b.received()) CHECK(t == gs::traffic{});
  });
}

TEST_CASE("backend: wrong arguments name the device held and reach nobody") {
  idle b(extents, held);
  cases::exchange_case x(extents, 1, 0);
  ++x.recv_bytes[4][1];  // device 4 is member 1 of {1, 4}
  CHECK_THROWS_WITH_AS(b.exchange(1, cases::parts(x, b.devices())),
                       doctest::Contains("exchange: device 4 sends itself"), gs::error);
  cases::gather_case g(extents, 4, 0);
  g.recv_bytes[2].pop_back();
  CHECK_THROWS_WITH_AS(b.all_gather(4, cases::parts(g, b.devices())), "all_gather: device 2: recv has 2 entries for a group of 3",
                       gs::error);
  CHECK(b.calls == 0);
  CHECK_THROWS_AS(idle({2, 0}, {0}), gs::error);
}

TEST_CASE("backend: one process holds all devices; the set of all axes") {
  const idle b(extents, held);
  CHECK(gs::detail::this_process(b) == 0);
  CHECK(gs::detail::process_of(b, held.back()) == 0);
  CHECK(gs::detail::all_axes(b) == (1u << extents.size()) - 1);
}
