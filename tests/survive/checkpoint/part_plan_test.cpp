// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/checkpoint/part_plan.hpp>

#include <gshard/exec/tensor/tiling.hpp>

#include "../../io/scratch.hpp"
#include "../../io/stores.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace gs = gshard;
namespace kernel = gs::kernel;

TEST_CASE("for_each_slab: blocks tile the shard, are contiguous in it, and are as small as wanted") {
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 2000; ++turn) {
    kernel::placement shard;
    shard.rank = int(random() % 5);
    for (std::size_t d = 0; d < std::size_t(shard.rank); ++d) {
      shard.extent[d] = std::int64_t(random() % 7);
      shard.offset[d] = std::int64_t(random() % 3);
      shard.global[d] = shard.offset[d] + shard.extent[d] + 1;
    }
    const auto most = std::int64_t(1 + random() % 40);
    std::int64_t next = 0;
    std::vector<gs::detail::owned_block> blocks;
    gs::detail::for_each_slab(shard, most, [&](const kernel::placement& b, std::int64_t first) {
      CHECK(first == next);
      next += kernel::element_count(b.rank, b.extent);
      CHECK(kernel::element_count(b.rank, b.extent) <= most);
      CHECK(kernel::offset_of(b, shard, kernel::row_major_strides(shard.rank, shard.extent)) == first);
      CHECK(kernel::is_row_major(b.rank, b.extent, kernel::row_major_strides(shard.rank, shard.extent)));
      blocks.push_back({0, std::int64_t(blocks.size()), b});
    });
    CHECK(gs::detail::problem_of_tiling(shard, blocks) == "");
  }
}

TEST_CASE("plan_parts: every element is written once, from the shard of a device that has it; devices write equal shares") {
  for (const std::vector<int>& mesh : {std::vector<int>{1}, {2}, {3}, {2, 3}, {2, 2, 2}})
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      std::vector<stores::tensor_case> tensors = stores::usual();
      tensors.push_back({"large", gs::dtype::f32, {300, 7, 31}});
      tensors.push_back({"more", gs::dtype::f64, {40, 50}});
      gs::parameter_store store = stores::make(stores::simulated(mesh), tensors, seed);
      stores::fill(store);
      const gs::detail::part_plan plan = gs::detail::plan_parts(store);
      std::vector<std::vector<gs::detail::owned_block>> by_tensor(plan.tensors.size());
      for (std::size_t device = 0; device < plan.blocks.size(); ++device) {
        std::int64_t at = 0;
        for (const gs::detail::planned_block& b : plan.blocks[device]) {
          CHECK(b.in_part == at);
          at += b.bytes;
          const gs::detail::bound_value& v = store.find(plan.tensors[b.tensor].name)->value;
          const kernel::placement& shard = v.places[device];
          CHECK(kernel::offset_of(b.at, shard, kernel::row_major_strides(shard.rank, shard.extent)) * gs::size_of(v.type) == b.in_shard);
          CHECK(b.in_shard + b.bytes <= v.bytes(device));
          by_tensor[b.tensor].push_back({int(device), 0, b.at});
        }
        CHECK(at == plan.bytes[device]);
      }
      for (std::size_t t = 0; t < by_tensor.size(); ++t) {
        kernel::placement whole;
        whole.rank = plan.tensors[t].rank();
        for (std::size_t d = 0; d < plan.tensors[t].extents.size(); ++d) whole.extent[d] = whole.global[d] = plan.tensors[t].extents[d];
        CHECK(gs::detail::problem_of_tiling(whole, by_tensor[t]) == "");
      }
    }
}

TEST_CASE("plan_parts: copies of a replicated tensor share the writing") {
  for (const std::vector<int>& mesh : {std::vector<int>{4}, {2, 4}}) {
    gs::parameter_store store(stores::simulated(mesh));
    stores::add(store, {"w", gs::dtype::f32, {512, 256}}, gs::sharding::replicated(2));
    const gs::detail::part_plan plan = gs::detail::plan_parts(store);
    for (const std::int64_t bytes : plan.bytes) CHECK(double(bytes) <= 1.05 * double(512 * 256 * 4) / double(plan.bytes.size()));
  }
}

TEST_CASE("plan_parts: a partial sum cannot be saved") {
  gs::parameter_store store(stores::simulated({2}));
  stores::add(store, {"w", gs::dtype::f32, {4}}, gs::sharding::replicated(1)).value.layout.partial = 1;
  CHECK(complaint([&] { gs::detail::plan_parts(store); }) == "checkpoint: \"w\" is a partial sum");
}
