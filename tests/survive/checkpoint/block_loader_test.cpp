// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/checkpoint/block_loader.hpp>

#include "../../io/scratch.hpp"
#include "../../io/stores.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

namespace gs = gshard;
namespace detail = gs::detail;

namespace {

/// The blocks of a saved store, in the order of the parts.
std::vector<detail::loaded_block> blocks_of(const detail::part_plan& plan) {
  std::vector<detail::loaded_block> blocks;
  for (std::size_t part = 0; part < plan.blocks.size(); ++part)
    for (const detail::planned_block& b : plan.blocks[part]) {
      detail::loaded_block l;
      static_cast<detail::saved_block&>(l) = b;
      l.begin = b.in_part;
      l.bytes = b.bytes;
      l.part = part;
      blocks.push_back(l);
    }
  return blocks;
}
std::vector<int> first(int n) {
  std::vector<int> all(std::size_t(n), 0);
  std::iota(all.begin(), all.end(), 0);
  return all;
}
std::vector<std::int64_t> loads(const std::vector<detail::loaded_block>& blocks, int devices) {
  std::vector<std::int64_t> bytes(std::size_t(devices), 0);
  for (const detail::loaded_block& b : blocks) bytes[std::size_t(b.reader)] += b.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("assign_readers: every pair of meshes: a device reads at most 1.1 times its share") {
  const std::vector<stores::tensor_case> tensors{{"a", gs::dtype::f32, {512, 300}},
                                                 {"b", gs::dtype::f32, {1000}},
                                                 {"c", gs::dtype::f64, {77, 33, 11}},
                                                 {"d", gs::dtype::f32, {3, 100000}},
                                                 {"e", gs::dtype::f32, {}}};
  for (const int from : {1, 2, 3, 4, 6, 8}) {
    gs::parameter_store store = stores::make(stores::simulated({from}), tensors, 5);
    const detail::part_plan plan = detail::plan_parts(store);
    const std::int64_t total = std::accumulate(plan.bytes.begin(), plan.bytes.end(), std::int64_t(0));
    for (const int to : {1, 2, 3, 4, 6, 8}) {
      std::vector<detail::loaded_block> blocks = blocks_of(plan);
      detail::assign_readers(blocks, std::vector(std::size_t(from), first(to)), to);
      for (const std::int64_t bytes : loads(blocks, to)) CHECK(double(bytes) * to <= 1.1 * double(total));
      CHECK(std::ranges::is_sorted(blocks, {}, &detail::loaded_block::reader));  // consecutive blocks of a part
    }
  }
}

TEST_CASE("assign_readers: parts that only some devices can read") {
  gs::parameter_store store = stores::make(stores::simulated({4}), {{"a", gs::dtype::f32, {512, 300}}}, 5);
  const detail::part_plan plan = detail::plan_parts(store);
  const std::int64_t total = std::accumulate(plan.bytes.begin(), plan.bytes.end(), std::int64_t(0));
  for (const std::vector<std::vector<int>>& can_read :
       {std::vector<std::vector<int>>{{0, 1}, {1, 2}, {2, 3}, {3, 0}}, {{0, 1, 2, 3}, {3}, {1, 2}, {0, 2}}}) {
    std::vector<detail::loaded_block> blocks = blocks_of(plan);
    detail::assign_readers(blocks, can_read, 4);
    for (const detail::loaded_block& b : blocks) CHECK(std::ranges::find(can_read[b.part], b.reader) != can_read[b.part].end());
    for (const std::int64_t bytes : loads(blocks, 4)) CHECK(double(bytes) * 4 <= 1.1 * double(total));
  }
}

TEST_CASE("block_loader: moves blocks of one mesh to the shards of another, in rounds of any size") {
  const scratch dir;
  const std::optional<detail::directory> in(detail::directory::at(dir / ""));
  for (const std::vector<int>& from : {std::vector<int>{1}, {3}, {2, 2}})
    for (const std::vector<int>& to : {std::vector<int>{1}, {2}, {5}, {2, 3}}) {
      gs::parameter_store saved = stores::make(stores::simulated(from), stores::usual(), 3);
      stores::fill(saved);
      const detail::part_plan plan = detail::plan_parts(saved);
      std::map<std::string, std::size_t, std::less<>> by_name;
      for (std::size_t i = 0; i < plan.tensors.size(); ++i) by_name[plan.tensors[i].name] = i;
      std::vector<detail::loaded_block> blocks;
      for (std::size_t part = 0; part < plan.blocks.size(); ++part) {
        std::vector<std::byte> data(std::size_t(plan.bytes[part]));
        for (const detail::planned_block& b : plan.blocks[part])
          std::memcpy(data.data() + b.in_part, saved.find(plan.tensors[b.tensor].name)->value.data[part] + b.in_shard,
                      std::size_t(b.bytes));
        in->remove(detail::part_name(part));
        const detail::part_info info = detail::write_part(*in, detail::part_name(part), plan.tensors, plan.blocks[part], data, true);
        const std::string header = detail::read_part_header(*in, detail::part_name(part), info);
        for (detail::stored_block& b : detail::blocks_of_part(header, info.bytes, plan.tensors, by_name))
          blocks.push_back({std::move(b), part, 0});
      }
      CHECK(detail::problem_of_blocks(plan.tensors, blocks) == "");
      for (const std::int64_t round : {std::int64_t(1), std::int64_t(64), std::int64_t(1) << 30}) {
        gs::parameter_store store = stores::make(stores::simulated(to), stores::usual(), 8);
        stores::clear(store);
        detail::block_loader loader(store, plan.tensors, blocks);
        loader.reassign(std::vector(plan.blocks.size(), first(store.cluster().size())));
        CHECK(loader.read(in).empty());
        CHECK(loader.bytes_read == std::accumulate(plan.bytes.begin(), plan.bytes.end(), std::int64_t(0)));
        CHECK(stores::written(store) == 0);
        loader.scatter(round);
        CHECK(stores::wrong(store) == 0);
      }
    }
}
