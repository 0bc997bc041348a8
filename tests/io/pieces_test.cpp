// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/pieces.hpp>

#include "scratch.hpp"
#include "stores.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace gs = gshard;

namespace {

/// A tensor of int32 on all devices of a simulated mesh. Each element is its global linear index.
struct counted {
  gs::any_cluster on;
  gs::detail::bound_value value;
  std::vector<std::vector<std::int32_t>> shards;
  std::int64_t elements = 1;

  counted(const std::vector<int>& mesh, std::uint64_t seed) : on(stores::simulated(mesh)) {
    std::mt19937_64 random(seed);
    value.type = gs::dtype::i32;
    for (std::uint64_t rank = random() % 5; rank > 0; --rank)
      value.extents.push_back(std::int64_t(random() % 6));
    value.layout = stores::random_layout(random, value.rank(), int(mesh.size()));
    for (const std::int64_t e : value.extents) elements *= e;
    for (const int device : on.devices()) {
      value.places.push_back(gs::place(value.extents, value.layout, mesh, device));
      std::vector<std::int32_t>& shard =
          shards.emplace_back(std::size_t(value.elements(std::size_t(device))));
      gs::kernel::for_each_run(value.places.back(),
                               [&](std::int64_t local, std::int64_t global, std::int64_t n) {
                                 for (std::int64_t i = 0; i < n; ++i)
                                   shard[std::size_t(local + i)] = std::int32_t(global + i);
                               });
    }
    for (std::vector<std::int32_t>& shard : shards)
      value.data.push_back(reinterpret_cast<std::byte*>(shard.data()));
  }
};

template <class F>
void for_random_cases(F f) {
  for (const std::vector<int>& mesh : {std::vector<int>{}, {1}, {2}, {5}, {2, 3}, {3, 2, 2}})
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      CAPTURE(gs::detail::mesh_text(mesh));
      CAPTURE(seed);
      counted c(mesh, seed);
      for (const std::int64_t piece_bytes :
           {std::int64_t(1), std::int64_t(50), std::int64_t(200), std::int64_t(1) << 40})
        f(c, piece_bytes);
    }
}

}  // namespace

TEST_CASE("pieces_of: all rows in order, in as few pieces as fit") {
  for_random_cases([](const counted& c, std::int64_t piece_bytes) {
    const auto pieces = gs::detail::pieces_of(c.value, piece_bytes);
    const std::int64_t bytes = gs::detail::row_bytes(c.value);
    std::int64_t end = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      CHECK(pieces[i].first == end);
      CHECK(pieces[i].count() > 0);
      if (pieces[i].count() > 1) CHECK(pieces[i].count() * bytes <= piece_bytes);
      if (i + 1 < pieces.size()) CHECK((pieces[i].count() + 1) * bytes > piece_bytes);
      end = pieces[i].last;
    }
    CHECK(end * bytes == c.elements * 4);
  });
}

TEST_CASE("pack, unpack: every element once, at its place") {
  for_random_cases([](const counted& c, std::int64_t piece_bytes) {
    std::int64_t next = 0;
    for (const gs::detail::row_range rows : gs::detail::pieces_of(c.value, piece_bytes)) {
      const std::vector<std::vector<std::byte>> packets{gs::detail::pack(c.value, rows, c.on.backend())};
      const std::vector<std::byte> whole = gs::detail::unpack(c.value, rows, c.on.backend(), packets);
      std::vector<std::int32_t> truth(whole.size() / 4), got(truth);
      std::iota(truth.begin(), truth.end(), std::int32_t(next));
      std::memcpy(got.data(), whole.data(), whole.size());
      CHECK(got == truth);
      next += std::int64_t(got.size());
      CHECK(contains(complaint([&] { gs::detail::unpack(c.value, rows, c.on.backend(), {}); }), "lack"));
    }
    CHECK(next == c.elements);
  });
}

TEST_CASE("copy_shards_of: gives every device what is its own") {
  for_random_cases([](counted& c, std::int64_t piece_bytes) {
    const std::vector<std::vector<std::int32_t>> truth = c.shards;
    for (std::vector<std::int32_t>& shard : c.shards) std::fill(shard.begin(), shard.end(), -1);
    std::int64_t next = 0;
    for (const gs::detail::row_range rows : gs::detail::pieces_of(c.value, piece_bytes)) {
      std::vector<std::int32_t> whole(std::size_t(rows.count() * gs::detail::row_bytes(c.value)) / 4);
      std::iota(whole.begin(), whole.end(), std::int32_t(next));
      next += std::int64_t(whole.size());
      gs::detail::copy_shards_of(c.value, rows, std::as_bytes(std::span(whole)));
    }
    CHECK(c.shards == truth);
  });
}
