// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/shape.hpp"

#include "requests.hpp"

namespace {
using namespace requests;
const gs::mesh_shape mesh = pl::parse_mesh("x=2,y=2,long_name=3");
std::string said_of_shape(const char* text) {
  return refused([&] { pl::parse_shape(text, mesh); });
}
}  // namespace

TEST_CASE("plan: a shape is printed as it is written") {
  for (const char* text :
       {"4", "4@x", "4@x,24,100@y", "16@(x,long_name),8", "16@(long_name,x),8@y", "scalar", "scalar+partial(x)", "16,8+partial(x,y)",
        "16,8+max(x)", "16@y,8+min(x)", "scalar+prod(x,y)", "1,2,3,4,5,6,7,8@y+partial(x)", "4@x,2+order(1,0,2,3,4,5,6,7,8,9,10,11)"}) {
    const pl::shape s = pl::parse_shape(text, mesh);
    CHECK(pl::text_of(s, mesh) == text);
    CHECK(pl::parse_shape(pl::text_of(s, mesh), mesh) == s);
  }
  // The mesh's own order is no order, and copies are the same in every order.
  CHECK(pl::text_of(pl::parse_shape("4@x+order(0,1,2,3,4,5,6,7,8,9,10,11)", mesh), mesh) == "4@x");
  CHECK(pl::text_of(pl::parse_shape("4+order(1,0,2,3,4,5,6,7,8,9,10,11)", mesh), mesh) == "4");
  // The order of axes in a partial sum has no meaning.
  CHECK(pl::text_of(pl::parse_shape("4+partial(y,x)", mesh), mesh) == "4+partial(x,y)");
  CHECK(pl::text_of(pl::parse_shape("4@(y)", mesh), mesh) == "4@y");
}

TEST_CASE("plan: what a shape means") {
  const pl::shape s = pl::parse_shape("16@(long_name,x),8+partial(y)", mesh);
  CHECK(s.extents == std::vector<std::int64_t>{16, 8});
  CHECK(s.layout.rank == 2);
  CHECK(s.layout.open == 0);
  REQUIRE(s.layout[0].size() == 2);
  CHECK(s.layout[0][0] == 2);
  CHECK(s.layout[0][1] == 0);
  CHECK(s.layout[1].empty());
  CHECK(s.layout.partial == 2);
}

TEST_CASE("plan: a shape that is refused") {
  const auto at = [&](const char* text, const std::string& column, const char* expected) {
    CAPTURE(text);
    const std::string all = said_of_shape(text);
    CAPTURE(all);
    CHECK(all.starts_with("malformed shape \"" + std::string(text) + "\" at column " + column + ": expected " + expected));
  };
  at("", "0", "an extent of at least 1");
  at("4,", "2", "an extent of at least 1");
  at("0", "0", "an extent of at least 1");
  at("4,-2", "2", "an extent of at least 1");
  at("4 ,2", "1", "its end");
  at("4@", "2", "the name of an axis");
  at("4@(x", "4", "')'");
  at("4@()", "3", "the name of an axis");
  at("4+partial(x", "11", "')'");
  at("4+partial", "1", "its end");
  at("4+partial(x),2", "12", "its end");
  at("4@x+order(1", "11", "')'");
  at("4+partial(x)+order(1)", "19", "its end, because partial sums lie in the mesh's order");
  CHECK(said_of_shape("4@x+order(1,0)") == "the order of \"4@x+order(1,0)\" must have each of the 12 devices of the mesh once");
  at("99999999999999999999", "0", "a smaller extent");
  at("1,1,1,1,1,1,1,1,1", "16", "its end, because a tensor has at most 8 dims");
  CHECK(said_of_shape("4@z") ==
        "a partition spec names an axis that the mesh does not have (\"z\" in \"4@z\"); the mesh has x, y, long_name");
  const std::string twice = "; let each axis shard one dim or hold one partial sum";
  CHECK(said_of_shape("4@x,4@x") == "a partition spec uses one mesh axis twice (\"x\" in \"4@x,4@x\")" + twice);
  CHECK(said_of_shape("4@x+partial(x)") == "a partition spec uses one mesh axis twice (\"x\" in \"4@x+partial(x)\")" + twice);
  CHECK(said_of_shape("4+partial(y,y)") == "a partition spec uses one mesh axis twice (\"y\" in \"4+partial(y,y)\")" + twice);
}
