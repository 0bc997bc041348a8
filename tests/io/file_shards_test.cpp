// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/file_shards.hpp>

#include "../complaint.hpp"
#include "tensor_cases.hpp"

#include <Eigen/Core>
#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace gs = gshard;
using namespace tensor_cases;

TEST_CASE("file_shards: each element is in exactly one shard that is the first of its equals") {
  for (const std::vector<int>& shape : meshes(8)) {
    const auto on = gs::simulate<mesh>(shape);
    each_tensor([&]<class T, class Spec>(std::type_identity<gs::tensor<T, Spec>>, const numbers& extents) {
      const gs::tensor<T, Spec> t(on, extents);
      const gs::detail::file_shards all = gs::detail::file_shards_of(t);
      CHECK(all.mine.size() == t.local_shards());
      std::vector<int> writers(std::size_t(t.size()), 0);
      for (std::size_t i = 0; i < all.mine.size(); ++i) {
        const gs::detail::file_shard& s = all.mine[i];
        CHECK(s.data == reinterpret_cast<const std::byte*>(t.local_shard(i).data));
        if (s.first) gs::kernel::for_each_element(s.at, [&](std::size_t global, std::size_t) { ++writers[global]; });
      }
      CHECK(std::ranges::count(writers, 1) == t.size());
      CHECK(all.bytes() == t.size() * std::int64_t(sizeof(T)));
    });
  }
}

TEST_CASE("tensor_of_file: a reader that throws is an error, as is a negative extent") {
  const auto on = gs::simulate<mesh>({2, 2});
  const auto reading = [&](const numbers& extents, auto read) {
    return complaint([&] { gs::detail::tensor_of_file<float, P<"x">>(on, "a test", extents, read); });
  };
  CHECK(reading({4}, [](const gs::detail::file_shards&) {}).empty());
  CHECK(reading({4}, [](const gs::detail::file_shards&) { throw gs::error("no such luck"); }) == "no such luck");
  CHECK(contains(reading({-4}, [](const gs::detail::file_shards&) {}), "extent -4 of dim 0"));
}
