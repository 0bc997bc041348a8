// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/mesh.hpp"

#include "requests.hpp"

namespace {
using namespace requests;
std::string said_of_mesh(const char* mesh) {
  return refused([&] { pl::parse_mesh(mesh); });
}
}  // namespace

TEST_CASE("plan: a mesh as it is written") {
  for (const char* text : {"x=1", "x=2,y=4", "data=16,expert_2=8", "a=2,b=2,c=2,d=2,e=2,f=2,g=2,h=2"})
    CHECK(pl::text_of(pl::parse_mesh(text)) == text);
  const gs::mesh_shape m = pl::parse_mesh("x=2,y=4");
  CHECK(m.rank() == 2);
  CHECK(m.name(1) == "y");
  CHECK(m.static_extent(1) == 4);
}

TEST_CASE("plan: a mesh that is refused") {
  CHECK(said_of_mesh("") == "malformed mesh \"\" at column 0: expected the name of an axis, as in x=2,y=4");
  CHECK(said_of_mesh("x") == "malformed mesh \"x\" at column 1: expected '=', as in x=2,y=4");
  CHECK(said_of_mesh("x=2;y=3") == "malformed mesh \"x=2;y=3\" at column 3: expected its end, as in x=2,y=4");
  CHECK(said_of_mesh("x=2,") == "malformed mesh \"x=2,\" at column 4: expected the name of an axis, as in x=2,y=4");
  CHECK(said_of_mesh("2=2") == "malformed mesh \"2=2\" at column 0: expected the name of an axis, as in x=2,y=4");
  CHECK(said_of_mesh("x=0").starts_with("malformed mesh \"x=0\" at column 2: expected an extent of at least 1"));
  CHECK(said_of_mesh("x=-1").starts_with("malformed mesh \"x=-1\" at column 2: expected an extent of at least 1"));
  CHECK(said_of_mesh("x=3000000000").starts_with("malformed mesh \"x=3000000000\" at column 2: expected a smaller extent"));
  CHECK(said_of_mesh("x=2,x=3") == "the mesh \"x=2,x=3\" has two axes called \"x\": rename one");
  CHECK(said_of_mesh("a=2,b=2,c=2,d=2,e=2,f=2,g=2,h=2,i=2").find("a mesh has at most 8 axes") != std::string::npos);
  CHECK(said_of_mesh("x=2000000000,y=2").find("too many devices") != std::string::npos);
  CHECK(said_of_mesh("an_axis_with_a_long_name=2").find("at most 23 characters") != std::string::npos);
}
