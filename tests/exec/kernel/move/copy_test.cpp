// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/move/copy.hpp>

#include "../support.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace {

using namespace test;

// Strides of a tensor whose dims have a random order in memory, maybe with gaps.
ks::index_array random_strides(std::mt19937& gen, int rank, const ks::index_array& extent,
                               std::int64_t& size) {
  std::vector<std::size_t> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), gen);
  ks::index_array stride{};
  size = 1;
  for (std::size_t d : order) {
    stride[d] = size;
    size *= extent[d] + (pick(gen, 0, 3) == 0 ? pick(gen, 0, 3) : 0);
  }
  return stride;
}

template <class Element>
void check_random_copy(std::uint32_t seed) {
  CAPTURE(seed);
  std::mt19937 gen(seed);
  const int rank = static_cast<int>(pick(gen, 0, 5));
  ks::index_array extent{};
  for (std::size_t d = 0; d < static_cast<std::size_t>(rank); ++d) {
    const auto kind = pick(gen, 0, 19);
    extent[d] = kind == 0 ? 0 : kind < 3 ? 1 : kind < 8 && rank < 4 ? pick(gen, 15, 35) : pick(gen, 2, 6);
  }
  std::int64_t src_size = 0, dst_size = 0;
  const auto src_stride = random_strides(gen, rank, extent, src_size);
  const auto dst_stride = random_strides(gen, rank, extent, dst_size);
  std::vector<Element> src(static_cast<std::size_t>(src_size) + 1),
      dst(static_cast<std::size_t>(dst_size) + 1);
  for (auto& e : src)
    for (auto& byte : e) byte = static_cast<unsigned char>(gen());
  auto expected = dst;
  for_each_index(rank, extent, [&](const ks::index_array& index, std::int64_t) {
    expected[static_cast<std::size_t>(offset_of(rank, index, dst_stride))] =
        src[static_cast<std::size_t>(offset_of(rank, index, src_stride))];
  });
  ks::copy_block(reinterpret_cast<const std::byte*>(src.data()), src_stride,
                 reinterpret_cast<std::byte*>(dst.data()), dst_stride, extent, rank, sizeof(Element));
  CHECK(dst == expected);
}

template <std::size_t Size>
struct alignas(Size == 2 ? 2 : Size % 4 == 0 ? 4 : 1) element : std::array<unsigned char, Size> {};

}  // namespace

TEST_CASE("copy_block: moves exactly the elements of the block") {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    check_random_copy<element<4>>(seed);
    check_random_copy<element<8>>(seed);
    check_random_copy<element<1>>(seed);
    check_random_copy<element<2>>(seed);
    check_random_copy<element<16>>(seed);
    check_random_copy<element<6>>(seed);
  }
}
