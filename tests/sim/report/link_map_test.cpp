// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/report/link_map.hpp>

#include "../../complaint.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++n;
  return n;
}

gs::run_record with(std::vector<int> chips, std::vector<gs::link_load> links) {
  gs::run_record run;
  run.chips = std::move(chips);
  run.links = std::move(links);
  run.network = "a <torus> & \"more\"";
  return run;
}

}  // namespace

TEST_CASE("a link goes along one dimension, one way, perhaps around the edge") {
  const auto course = [](std::vector<int> chips, int from, int to, bool second = false) {
    const gs::detail::link_course c = gs::detail::course_of(gs::detail::chip_grid(chips), {from, to, 0, 0}, second);
    return std::vector{c.dimension, c.way, int(c.wraps)};
  };
  const std::vector none{-1, 0, 0};
  CHECK(course({4}, 1, 2) == std::vector{2, 1, 0});
  CHECK(course({4}, 0, 3) == std::vector{2, -1, 1});
  CHECK(course({4}, 3, 0) == std::vector{2, 1, 1});
  CHECK(course({4}, 0, 2) == none);
  CHECK(course({3, 4}, 0, 4) == std::vector{1, 1, 0});
  CHECK(course({3, 4}, 8, 0) == std::vector{1, 1, 1});
  CHECK(course({3, 4}, 0, 5) == none);
  CHECK(course({2, 3, 4}, 12, 0) == std::vector{0, -1, 0});
  CHECK(course({2}, 0, 1) == std::vector{2, 1, 0});
  CHECK(course({2}, 0, 1, true) == std::vector{2, -1, 1});
  CHECK(course({4}, 0, 4) == none);
  CHECK(course({4}, -1, 0) == none);
}

TEST_CASE("as a table: every link, with all digits") {
  const std::string csv = gs::link_map_csv(with({2, 3}, {{0, 1, 1.5e9, 0.1}, {2, 0, 7, 1.0 / 3}, {0, 4, 1, 0}}));
  CHECK(csv ==
        "from,to,from_at,to_at,dimension,way,wraps,bytes,seconds\n"
        "0,1,0/0,0/1,1,1,0,1.5e+09,0.1\n"
        "2,0,0/2,0/0,1,1,1,7,0.3333333333333333\n"
        "0,4,0/0,1/1,-1,0,0,1,0\n");
}

TEST_CASE("as a picture: a line a link, two where it wraps; a legend in bytes; colors for both grounds") {
  const std::string svg = gs::link_map_svg(with({2, 3}, {{0, 1, 8 << 20, 0.1}, {2, 0, 1 << 20, 0.01}, {0, 3, 0, 0}, {0, 4, 1, 0}}));
  CHECK(svg.starts_with("<svg xmlns="));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count(svg, "<line ") == 4);
  CHECK(count(svg, "<title>chip ") == 3 + 6);
  CHECK(contains(svg, "<g class=\"h8\"><title>chip 0 to 1: 8.0 MiB, busy 100 ms</title>"));
  CHECK(contains(svg, "<g class=\"h1\"><title>chip 2 to 0: 1.0 MiB"));
  CHECK(contains(svg, "<g class=\"h0\"><title>chip 0 to 3: 0 B"));
  CHECK(contains(svg, ">nothing</text>"));
  CHECK(contains(svg, ">4.0 MiB</text>"));
  CHECK(contains(svg, "4 links, one each way; 1 join chips that are no neighbors and are not drawn."));
  CHECK(contains(svg, "a &lt;torus&gt; &amp; &quot;more&quot;"));
  CHECK(contains(svg, "prefers-color-scheme:dark"));
  CHECK(count(svg, "<g") == count(svg, "</g>"));
}

TEST_CASE("layers are side by side, links between them are corners") {
  const std::string svg = gs::link_map_svg(with({2, 2, 2}, {{0, 4, 1, 1}, {4, 0, 1, 1}, {0, 1, 1, 1}}));
  CHECK(count(svg, "<path ") == 2);
  CHECK(count(svg, "<line ") == 1);
  CHECK(contains(svg, ">layer 1</text>"));
}

TEST_CASE("without links or chips there is no picture") {
  CHECK(gs::link_map_svg(with({}, {{0, 1, 1, 1}})).empty());
  CHECK(gs::link_map_svg(with({4}, {})).empty());
}

TEST_CASE("steps of the scale") {
  CHECK(gs::detail::heat_of(0, 8) == 0);
  CHECK(gs::detail::heat_of(1e-9, 8) == 1);
  CHECK(gs::detail::heat_of(1, 8) == 1);
  CHECK(gs::detail::heat_of(1.001, 8) == 2);
  CHECK(gs::detail::heat_of(8, 8) == 8);
  CHECK(gs::detail::heat_of(0, 0) == 0);
}
