// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/counting.hpp>

#include <cstdint>
#include <initializer_list>

namespace gs = gshard;
using gs::max_tensor_bytes, gs::uncountable;

namespace {

static_assert(gs::detail::saturating_product(3, 4) == 12 && gs::detail::saturating_product(1LL << 62, 2) == uncountable &&
              gs::detail::saturating_product(uncountable, 1) == uncountable && gs::detail::saturating_product(uncountable, 0) == 0);
static_assert(gs::detail::saturating_sum(3, 4) == 7 && gs::detail::saturating_sum(uncountable, 0) == uncountable &&
              gs::detail::saturating_sum(uncountable, uncountable) == uncountable);
static_assert(std::int64_t(double(max_tensor_bytes)) == max_tensor_bytes && std::int64_t(double(max_tensor_bytes - 1)) == max_tensor_bytes - 1);

constexpr std::int64_t bytes(std::int64_t width, std::initializer_list<std::int64_t> extents) {
  gs::byte_count n(width);
  for (const std::int64_t e : extents) n.times(e);
  return n.bytes();
}
static_assert(bytes(4, {}) == 4 && bytes(4, {3, 5}) == 60 && bytes(8, {3, 0, 5}) == 0 && bytes(4, {1, 1}) == 4);
static_assert(bytes(1, {max_tensor_bytes}) == max_tensor_bytes && bytes(2, {max_tensor_bytes / 2}) == max_tensor_bytes && bytes(1, {max_tensor_bytes / 2, 2}) == max_tensor_bytes);
static_assert(bytes(1, {max_tensor_bytes + 1}) == uncountable && bytes(2, {max_tensor_bytes}) == uncountable && bytes(4, {-1}) == uncountable);
static_assert(bytes(4, {1LL << 40, 1LL << 40}) == uncountable && bytes(1, {INT64_MAX}) == uncountable && bytes(16, {1LL << 62, 4}) == uncountable);
// The size of an empty tensor is countable only if the product of its other extents is, as shards multiply these.
static_assert(bytes(4, {0, INT64_MAX}) == uncountable && bytes(4, {1LL << 40, 0, 1LL << 40}) == uncountable && bytes(4, {0, -1}) == uncountable);

}  // namespace
