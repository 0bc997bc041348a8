// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/draw.hpp"

#include "requests.hpp"

namespace {
using namespace requests;
std::string drawing(const char* mesh, const char* text, bool colors = false) {
  const pl::plan_facts f = facts(reshard(mesh, text, text));
  return pl::draw("input 0", f.inputs[0], f.mesh, colors);
}
}  // namespace

TEST_CASE("plan: a layout as a drawing: blocks, the short last one, copies") {
  CHECK(drawing("x=4,y=2", "10@x,7") ==
        "input 0  10@x,7  local [3,7]\n"
        "  dim 0  10@x\n"
        "    [ 0, 3)  ################  {0,1}\n"
        "    [ 3, 6)  ################  {2,3}\n"
        "    [ 6, 9)  ################  {4,5}\n"
        "    [ 9,10)  ######..........  short  {6,7}\n"
        "  dim 1  7  whole on every device\n"
        "  2 copies of every element\n");
  CHECK(drawing("x=4,y=2", "3@x+partial(y)") ==
        "input 0  3@x+partial(y)  local [1]\n"
        "  dim 0  3@x\n"
        "    [0,1)  ################  {0,1}\n"
        "    [1,2)  ################  {2,3}\n"
        "    [2,3)  ################  {4,5}\n"
        "    [3,3)  ................  empty  {6,7}\n"
        "  1 copy of every addend, 2 addends of every element\n");
}

TEST_CASE("plan: the middle of a long drawing is left out") {
  const std::string text = drawing("x=4,y=8", "64@(y,x)");
  CHECK(text.find("    [ 6, 8)  ################  1 device\n    ... 24 more blocks\n    [56,58)") != std::string::npos);
}

TEST_CASE("plan: colors only on request") {
  CHECK(drawing("x=2", "4@x").find('\033') == std::string::npos);
  CHECK(drawing("x=2", "4@x", true).find("\033[31m################\033[0m") != std::string::npos);
}
