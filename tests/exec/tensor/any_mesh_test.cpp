// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/tensor/any_mesh.hpp>

#include <gshard/exec/tensor/cluster.hpp>

#include "../../complaint.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace gs = gshard;

TEST_CASE("a mesh as text has the axes of the mesh as a type") {
  constexpr gs::mesh_shape same = gs::mesh<gs::axis<"data", 2>, gs::axis<"expert">>::shape;
  for (const gs::any_mesh& m : {gs::any_mesh("data=2,expert"), gs::any_mesh(std::string("data=2,expert")), gs::any_mesh(same)}) {
    REQUIRE(m.rank() == 2);
    for (int a = 0; a < 2; ++a) {
      CHECK(m.name(a) == same.name(a));
      CHECK(m.static_extent(a) == same.static_extent(a));
    }
  }
  CHECK(gs::any_mesh("").rank() == 0);
  CHECK(gs::any_mesh("a,b,c,d,e,f,g,h").rank() == gs::max_axes);
}

TEST_CASE("texts that are no mesh") {
  const auto of = [](const char* text) { return complaint([&] { gs::any_mesh m(text); }); };
  for (const char* text : {",", "x,", ",x", "x=2,,y", "=2", "x y", "x@y", "a?", "a+b", "twenty_four_characters__", " x"})
    CHECK(contains(of(text), "is not a list of axes such as \"data=2,expert\""));
  for (const char* text : {"x=", "x=0", "x=-1", "x=2.5", "x= 2", "x=2=3", "x=99999999999", "x=a"})
    CHECK(contains(of(text), "has an extent that is not a positive number"));
  CHECK(of("x=2,y,x=3") == "mesh: \"x=2,y,x=3\" has two axes called \"x\"");
  CHECK(contains(of("a,b,c,d,e,f,g,h,i"), "has more than 8 axes"));
  CHECK(contains(of("x=2147483647,y=2"), "has more than 2147483647 devices"));
}

TEST_CASE("simulated devices with a mesh that is known at run time") {
  CHECK(gs::simulate("data=2,expert", 8).extent(1) == 4);
  CHECK(gs::simulate("data,expert", std::vector{3, 2}).size() == 6);
  CHECK(gs::simulate(gs::mesh<gs::axis<"x">>::shape, 3).size() == 3);
  CHECK(contains(complaint([] { gs::simulate("x=3", 4); }), "the mesh does not fit 4 devices: axis \"x\" has 3"));
  CHECK(contains(complaint([] { gs::simulate("x", 0); }), "0"));
}
