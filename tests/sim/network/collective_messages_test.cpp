// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tests the contents of the messages. events_test.cpp compares their times with the closed forms.
#include <gshard/sim/network/collective_messages.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <vector>

namespace gs = gshard;
using gs::all_to_all_scheme, gs::gather_scheme, gs::tie_policy;

namespace {

gs::torus square(bool wrap, int cores) {
  gs::torus t;
  t.dims = 2;
  t.extents = {4, 3, 1};
  t.wrap = {wrap, wrap, true};
  t.cores = cores;
  return t;
}

/// The bytes that each chip receives from others.
std::vector<double> received(const gs::torus_mesh& m, const gs::message_list& list) {
  std::vector<double> bytes(std::size_t(m.topology().chips()), 0.0);
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].from != list[i].to) bytes[std::size_t(m.chip(list[i].to))] += list[i].bytes;
  return bytes;
}
std::vector<double> sent(const gs::torus_mesh& m, const gs::message_list& list) { return received(m, list.reversed()); }

}  // namespace

TEST_CASE("a gather brings all but the own piece, a reduce-scatter sends it") {
  for (const int cores : {1, 2})
    for (const gather_scheme s : {gather_scheme::one_way, gather_scheme::both_ways, gather_scheme::all_links, gather_scheme::streamed}) {
      const gs::torus_mesh m(square(true, cores));
      for (const double bytes : received(m, gs::all_gather_messages(m, 1, 1200, s))) CHECK(bytes == doctest::Approx(1100));
      for (const double bytes : sent(m, gs::reduce_scatter_messages(m, 1, 1200, s))) CHECK(bytes == doctest::Approx(1100));
      for (const double bytes : received(m, gs::all_reduce_messages(m, 1, 1200, s))) CHECK(bytes == doctest::Approx(2200));
    }
  // The ends of an open ring receive everything from one side.
  const gs::torus_mesh open(square(false, 1));
  for (const gather_scheme s : {gather_scheme::one_way, gather_scheme::streamed})
    for (const double bytes : received(open, gs::all_gather_messages(open, 1, 1200, s))) CHECK(bytes == doctest::Approx(1100));
}

TEST_CASE("an all-to-all brings a part of every other chip, by dimension each part as often as dimensions change") {
  for (const tie_policy ties : {tie_policy::one_way, tie_policy::split}) {
    const gs::torus_mesh m(square(true, 2));
    for (const double bytes : received(m, gs::all_to_all_messages(m, 1, 1200, all_to_all_scheme::direct, ties)))
      CHECK(bytes == doctest::Approx(2 * 1100));
    for (const all_to_all_scheme s : {all_to_all_scheme::by_dimension, all_to_all_scheme::all_orders})
      for (const double bytes : received(m, gs::all_to_all_messages(m, 1, 1200, s, ties)))
        CHECK(bytes == doctest::Approx(2 * (1200 * 3 / 4.0 + 1200 * 2 / 3.0)));
  }
}

TEST_CASE("a phase has n - 1 messages of each chip, ring by ring") {
  const gs::torus_mesh m(square(true, 1), {4, 3});
  const gs::message_list list = gs::all_to_all_messages(m, 1, 1200, all_to_all_scheme::by_dimension, tie_policy::one_way);
  std::size_t sending = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].from == list[i].to) continue;
    ++sending;
    CHECK(list[i].from % 3 == list[i].to % 3);  // only along axis 0
  }
  CHECK(sending == 12 * 3);
}

TEST_CASE("a chip is led by its worst core") {
  const gs::torus_mesh m(square(true, 2));
  const gs::faults f{.dead_devices = {3}, .stragglers = {{5, 2, 0}}};
  const gs::message_list list = gs::all_gather_messages(m, 1, 1200, gather_scheme::one_way, f);
  std::set<int> leaders;
  for (std::size_t i = 0; i < list.size(); ++i) leaders.insert(list[i].from);
  CHECK(leaders.size() == 12);
  CHECK((leaders.contains(3) && leaders.contains(5) && leaders.contains(0)));
}
