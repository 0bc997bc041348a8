// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/collective.hpp>

#include <gshard/exec/collective/make_collective.hpp>

#include "on_devices.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;

static_assert(std::is_abstract_v<gs::detail::collective>);
static_assert(!std::is_copy_constructible_v<gs::detail::collective>);

TEST_CASE("finish_both: the second half is finished after an error as well, and the first error is thrown") {
  std::string log;
  const auto half = [&](char name, bool fails) {
    return [&log, name, fails] {
      log += name;
      if (fails) throw gs::error(std::string(1, name) + " failed");
    };
  };
  gs::detail::finish_both(half('a', false), half('b', false));
  CHECK_THROWS_WITH_AS(gs::detail::finish_both(half('c', true), half('d', false)), "c failed", gs::error);
  CHECK_THROWS_WITH_AS(gs::detail::finish_both(half('e', false), half('f', true)), "f failed", gs::error);
  CHECK_THROWS_WITH_AS(gs::detail::finish_both(half('g', true), half('h', true)), "g failed", gs::error);
  CHECK(log == "abcdefgh");
}

namespace {

struct example {
  gs::op_ref kind;
  std::pair<int, int> from, to;  // the axes of both dims
  bool partial = false;
};
const std::vector<example> examples{{op::all_to_all, {0, -1}, {-1, 0}},
                                    {op::all_gather, {0, -1}, {-1, -1}},
                                    {op::all_gather, {-1, 0}, {-1, -1}},
                                    {op::all_reduce, {-1, -1}, {-1, -1}, true},
                                    {op::reduce_scatter, {-1, -1}, {0, -1}, true}};

/// Runs all kinds of collectives in all ways, and with an error of each exchange. They leave no message behind, and run again.
void check_all(const std::vector<int>& node, bool early, std::pair<std::int64_t, std::int64_t> extents, std::size_t& errors) {
  for (const example& x : examples) {
    CAPTURE(std::string(x.kind->name));
    CAPTURE(early);
    const on_devices::cluster c({2, 2}, node);
    on_devices::matrix in(c, extents, x.from, x.partial), out(c, extents, x.to);
    in.set(in.numbers([&](std::size_t device) { return x.partial ? 1 + device / 2 : 3; }));
    const gs::detail::step_moves moves(x.kind, c.on, 1, {{in.value, out.value}});
    const auto step = gs::detail::make_collective(gs::detail::collectives_for<gs::detail::all_move_kinds>, moves,
                                                  std::make_shared<gs::detail::collective_room>(), early);
    step->start();
    step->finish();
    const gs::traffic received = c.devices->received()[0];
    const std::size_t exchanges = c.devices->finished;
    on_devices::check(c, *step, out, 3, received.exchange_bytes + received.gather_bytes);
    const std::vector<std::vector<float>> expected = out.memory;
    for (std::size_t i = 0; i < exchanges; ++i, ++errors)
      for (const int advances : {0, 1000}) {
        c.devices->fails = std::string(c.devices->finished + i, '-') + "x";
        const std::string said = "exchange " + std::to_string(c.devices->finished + i) + " failed";
        step->start();
        for (int k = 0; k < advances && !step->advance(); ++k) {}
        CHECK_THROWS_WITH_AS(step->finish(), said.c_str(), gs::error);
        CHECK(c.devices->started == c.devices->finished);
        out.set(out.numbers([](std::size_t) { return -1; }));
        step->start();
        step->finish();
        CHECK(out.memory == expected);
      }
  }
}

}  // namespace

TEST_CASE("collectives of every kind can be advanced, dropped, and run again after an error of any message") {
  std::size_t errors = 0;
  for (const bool early : {false, true})
    for (const std::vector<int>& node : {std::vector<int>{}, {0, 0, 1, 1}, {0, 1, 0, 1}}) {
      check_all(node, early, {7, 5}, errors);
      check_all(node, early, {200, 301}, errors);
    }
  CHECK(errors > 50);
}
