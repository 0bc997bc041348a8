// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/network/torus_links.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace gs = gshard;

namespace {

gs::torus of(int x, int y, int z, bool wrap) {
  gs::torus t;
  t.dims = 3;
  t.extents = {x, y, z};
  t.wrap = {wrap, wrap, wrap};
  return t;
}

}  // namespace

TEST_CASE("every link joins neighbors, and there are as many as there are ports") {
  for (const bool wrap : {true, false})
    for (const auto& t : {of(4, 3, 2, wrap), of(1, 5, 1, wrap), of(2, 2, 2, wrap)}) {
      const gs::torus_links links(t);
      int number = 0, ports = 0;
      for (int l = 0; l < links.count(); ++l) {
        if (!links.exists(l)) {
          CHECK_FALSE(links.live(l));
          continue;
        }
        ++number;
        CHECK(links.hops(links.from(l), links.to(l)) == 1);
        CHECK(links.rate(l) == t.link_bytes);
      }
      for (int chip = 0; chip < t.chips(); ++chip) ports += links.ports(chip);
      CHECK(number == ports);
      if (wrap) CHECK(number == 2 * t.chips() * ((t.extents[0] > 1) + (t.extents[1] > 1) + (t.extents[2] > 1)));
    }
}

TEST_CASE("ways are shortest, dimension by dimension, and go round what is dead") {
  for (const bool wrap : {true, false})
    for (const bool broken : {false, true}) {
      gs::faults f;
      if (broken) f.links = {{0, 1, 0}, {1, 0, 0}, {4, 5, 0}, {6, 14, 0}, {0, 8, 0.5}};
      const gs::torus t = of(3, 4, 2, wrap);
      const gs::torus_links links(t, f);
      for (int from = 0; from < t.chips(); ++from)
        for (int to = 0; to < t.chips(); ++to) {
          const std::vector<int> way = links.way(from, to);
          int at = from;
          for (const int l : way) {
            CHECK(links.live(l));
            CHECK(links.from(l) == at);
            at = links.to(l);
          }
          CHECK(at == to);
          if (!broken) CHECK(int(way.size()) == links.hops(from, to));
          CHECK(int(way.size()) >= links.hops(from, to));
          CHECK(int(links.way_around(from, to).size()) <= int(way.size()));
        }
    }
}

TEST_CASE("both ways round a ring are chosen by the message") {
  gs::torus t;
  t.dims = 1;
  t.extents = {4, 1, 1};
  const gs::torus_links links(t);
  CHECK(links.to(links.way(0, 2, true)[0]) == 1);
  CHECK(links.to(links.way(0, 2, false)[0]) == 3);
  CHECK(links.way(0, 3, true).size() == 1);
  CHECK(links.way(2, 2).empty());
}
