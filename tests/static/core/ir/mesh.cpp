// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/mesh.hpp>

namespace gs = gshard;

namespace {

using mesh = gs::mesh<gs::axis<"data">, gs::axis<"expert", 8>>;

static_assert(mesh::shape.rank() == 2);
static_assert(mesh::shape.name(0) == "data" && mesh::shape.name(1) == "expert");
static_assert(mesh::shape.static_extent(0) == gs::dynamic && mesh::shape.static_extent(1) == 8);
static_assert(mesh::shape.find("data") == 0 && mesh::shape.find("expert") == 1);
static_assert(mesh::shape.find("exp") == -1 && mesh::shape.find("experts") == -1 &&
              mesh::shape.find("") == -1);

static_assert(mesh::shape.static_devices() == 0 && gs::mesh<>::shape.static_devices() == 1);
static_assert(gs::mesh<gs::axis<"data", 3>, gs::axis<"expert", 8>>::shape.static_devices() == 24);
static_assert([] {
  gs::mesh_shape shape;
  for (int a = 0; a < gs::max_axes; ++a) shape.push_back({&"abcdefgh"[a], 1}, INT32_MAX);
  return shape.static_devices() > gs::max_devices;
}());

// A mesh without axes is one device.
static_assert(gs::mesh<>::shape.rank() == 0 && gs::mesh<>::shape.find("data") == -1);

using widest = gs::mesh<gs::axis<"a">, gs::axis<"b">, gs::axis<"c">, gs::axis<"d">, gs::axis<"e">,
                        gs::axis<"f">, gs::axis<"g">, gs::axis<"h">>;
static_assert(widest::shape.rank() == gs::max_axes && widest::shape.find("h") == 7);

}  // namespace
