// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/replicate.hpp>

#include "../run_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace gs = gshard;

TEST_CASE("a value in any sharding is the same on every device when replicated") {
  for (const gs::sharding& layout : run_graph::all_layouts(2, 2)) {
    const gs::any_cluster on(run_graph::mesh_of_rank(2), std::make_shared<gs::simulated>(std::vector<int>{2, 3}));
    gs::detail::bound_value x;
    x.type = gs::dtype::i32;
    x.extents = {5, 7};
    x.layout = layout;
    std::vector<gs::buffer> memory, room;
    for (const int device : on.devices()) {
      const gs::kernel::placement at = gs::place(x.extents, layout, on.backend().extents(), device);
      auto* const data = reinterpret_cast<std::int32_t*>(memory.emplace_back(at.extent[0] * at.extent[1] * 4).data());
      for (std::int64_t i = 0; i < at.extent[0]; ++i)
        for (std::int64_t j = 0; j < at.extent[1]; ++j)
          data[i * at.extent[1] + j] = std::int32_t(7 * (at.offset[0] + i) + at.offset[1] + j);
      x.places.push_back(at);
      x.data.push_back(memory.back().data());
    }
    const gs::detail::bound_value y = gs::detail::replicate(on, x, room);
    for (std::size_t d = 0; d < y.data.size(); ++d)
      for (std::int32_t k = 0; k < 35; ++k) REQUIRE(y.as<const std::int32_t>(d)[k] == k);
  }
}
