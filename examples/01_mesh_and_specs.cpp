// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Meshes and partition specs: the elements of a tensor on each device. Docs: docs/tutorial.md#1-meshes-and-specs
#include <gshard/gshard.hpp>

#include <iostream>
#include <string_view>

namespace gs = gshard;
using gs::axes, gs::none, gs::P;

// Six devices in two rows and three columns.
using mesh = gs::mesh<gs::axis<"row", 2>, gs::axis<"column", 3>>;

template <class Spec>
void print(std::string_view spec, const gs::cluster<mesh>& cluster) {
  const gs::tensor<float, Spec> t(cluster, {4, 7});  // a 4x7 matrix with this sharding
  std::cout << spec << '\n';
  for (std::size_t i = 0; i < t.local_shards(); ++i) {  // simulated: this process has all shards
    const auto shard = t.local_shard(i);
    const auto range = [&](int d) {
      std::cout << '[' << shard.offset(d) << ',' << shard.offset(d) + shard.extent(d) << ')';
    };
    std::cout << "  device " << cluster.devices()[i] << ": rows ";
    range(0);
    std::cout << " columns ";
    range(1);
    std::cout << '\n';
  }
}

int main() {
  const auto cluster = gs::simulate<mesh>(6);
  print<P<none, none>>("replicated", cluster);
  print<P<"row", none>>("dim 0 over row", cluster);
  print<P<"row", "column">>("dim 0 over row, dim 1 over column: blocks of 3, 3 and 1", cluster);
  print<P<none, axes<"column", "row">>>("dim 1 over both axes, column major: the last shards are short or empty", cluster);
}
