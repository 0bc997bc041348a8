// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Complete arrays as inputs of tensors and programs: contiguous ranges, Eigen matrices and xtensor arrays. Contiguous ranges (std::vector,
// std::span, ...) are row-major. Arrays of other libraries may have any memory order. Eigen's matrices and expressions are read as [all
// dims but the last, last dim] or as vectors. xtensor's arrays and expressions have the shape of the tensor.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/reason.hpp>
#include <gshard/core/ir/dtype.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/kernel/view.hpp>
#include <gshard/exec/tensor/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/exec/kernel/element.hpp>
#include <gshard/exec/kernel/element_text.hpp>
#include <gshard/exec/kernel/move/copy.hpp>
#include <gshard/exec/tensor/tensor_origin.hpp>

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#endif

namespace gshard { inline namespace v0 { namespace detail {

/// The layout of a complete array in memory.
struct array_layout {
  std::int64_t size = 0;
  int rank = -1;           // -1: a row-major range, for any extents
  bool is_matrix = false;  // of rank 2, for tensors of any rank
  kernel::index_array extent{}, stride{};

  /// The strides of the array along the dims of a tensor with these extents; empty if the array does not fit.
  /// `reversed`: the tensor has the dims in the opposite order, unless the array is a range.
  std::optional<kernel::index_array> strides_in(std::span<const std::int64_t> tensor, bool reversed = false) const;
};

/// A complete array in memory, whose element type is known at run time.
struct untyped_array {
  const std::byte* data = nullptr;
  dtype type = dtype::f32;
  array_layout layout{};
};

/// A complete array in memory.
template <class T>
struct whole_array {
  const T* data = nullptr;
  array_layout layout;

  operator untyped_array() const { return {reinterpret_cast<const std::byte*>(data), dtype_of<T>, layout}; }
};

/// Reads arrays of another library: `value_type`, and read(array, f), which calls f(whole_array<value_type>). `owns`: true if the array's
/// destructor frees its elements.
template <class Array>
struct array_reader {};

template <class Given>
concept foreign_array = requires { typename array_reader<Given>::value_type; };

/// The element type of an array; void if the type is not an array.
template <class Given>
struct whole_element {
  using type = void;
};
template <foreign_array Given>
struct whole_element<Given> {
  using type = typename array_reader<Given>::value_type;
};
template <class Given>
  requires(!foreign_array<Given> && requires(const Given& g) { std::span(g); })
struct whole_element<Given> {
  using type = typename decltype(std::span(std::declval<const Given&>()))::value_type;
};

/// The element type of an array, const if the caller may not change elements; void for an expression without memory.
template <class Array>
struct elements_in {
  using type = void;
};
template <class Array>
  requires requires(Array& a) { std::data(a); }
struct elements_in<Array> {
  using type = std::remove_pointer_t<decltype(std::data(std::declval<Array&>()))>;
};
template <class Array>
inline constexpr bool has_memory = !std::is_void_v<typename elements_in<Array>::type>;

/// True if the type can be a complete array of T. This includes types that convert to a span.
template <class Given, class T>
inline constexpr bool is_whole_array =
    foreign_array<Given> ? std::is_same_v<typename whole_element<Given>::type, T> : std::is_convertible_v<const Given&, std::span<const T>>;

/// True if the type is an array of any element type.
template <class Given>
inline constexpr bool has_elements = !std::is_void_v<typename whole_element<Given>::type>;

/// True if the array's destructor frees its elements.
template <class Array>
inline constexpr bool owns_elements = [] {
  if constexpr (foreign_array<Array>) return array_reader<Array>::owns;
  else return has_elements<Array> && !std::ranges::enable_borrowed_range<Array>;
}();

/// Rejects every type but complete arrays of T, with one message.
template <class T, class Given>
constexpr void check_whole_array() {
  static_assert(holds<is_whole_array<Given, T> || !has_elements<Given>, expected_type<T>, actual_type<Given>>,
                "gshard: whole data have another element type than the tensor");
  static_assert(holds<is_whole_array<Given, T> || has_elements<Given>, expected_type<T>, actual_type<Given>>,
                "gshard: whole data are a contiguous range (std::vector, std::span), an Eigen matrix, or an xtensor array (include "
                "<gshard/exec/tensor/eigen.hpp> or <gshard/exec/tensor/xtensor.hpp>)");
}

/// Calls f(whole_array<T>).
template <class T, class Given, class F>
void read_whole(const Given& given, F f) {
  if constexpr (foreign_array<Given>) {
    array_reader<Given>::read(given, f);
  } else {
    const std::span<const T> range(given);
    f(whole_array<T>{range.data(), {std::int64_t(range.size())}});
  }
}

/// An error text: "5 elements, its dims make 6", or with extents.
std::string text_of_misfit(const array_layout& given, std::span<const std::int64_t> tensor, const std::string& before,
                           const std::string& between);

/// Copies the elements of a shard from a complete array. `width`: bytes of an element.
void copy_shard_of(const std::byte* whole, const kernel::index_array& stride, std::byte* shard, const kernel::placement& at,
                   std::int64_t width);

/// The elements in row-major order, copied to `room` unless the array is a row-major range.
std::span<const std::byte> row_major_elements(const untyped_array& given, const kernel::index_array& stride,
                                              std::span<const std::int64_t> tensor, buffer& room);

/// A hash of samples of an array, and facts about them.
std::uint64_t hash_of_samples(const untyped_array& given, const kernel::index_array& stride, std::span<const std::int64_t> tensor);
void add_samples(std::vector<fact>& facts, const std::string& array, const untyped_array& given, const kernel::index_array& stride,
                 std::span<const std::int64_t> tensor);
/// Facts about the elements, which are in row-major order: each of the first 4096, and two sums of the others.
void add_elements(std::vector<fact>& facts, const std::string& array, dtype type, std::span<const std::byte> elements);

#if GSHARD_HAS_BODIES

GSHARD_INLINE std::optional<kernel::index_array> array_layout::strides_in(std::span<const std::int64_t> tensor, bool reversed) const {
  if (reversed && rank >= 0) {
    auto strides = strides_in(std::vector<std::int64_t>(tensor.rbegin(), tensor.rend()));
    if (strides) std::reverse(strides->begin(), strides->begin() + std::ptrdiff_t(tensor.size()));
    return strides;
  }
  kernel::index_array wanted{};
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < tensor.size(); ++d) elements *= wanted[d] = tensor[d];
  if (size != elements) return std::nullopt;
  if (rank < 0) return kernel::row_major_strides(int(tensor.size()), wanted);
  const bool same = rank == int(tensor.size()) && std::equal(tensor.begin(), tensor.end(), extent.begin());
  if (!is_matrix) return same ? std::optional(stride) : std::nullopt;
  kernel::index_array steps{};
  if (tensor.size() == 1) steps[0] = extent[0] == 1 ? stride[1] : stride[0];
  if (tensor.size() < 2) return extent[0] == 1 || extent[1] == 1 ? std::optional(steps) : std::nullopt;
  const std::size_t last = tensor.size() - 1;
  if (extent[1] != tensor[last]) return std::nullopt;
  steps[last] = stride[1];
  for (std::int64_t d = std::int64_t(last) - 1, step = stride[0]; d >= 0; step *= wanted[std::size_t(d--)]) steps[std::size_t(d)] = step;
  return steps;
}

GSHARD_INLINE std::string text_of_misfit(const array_layout& given, std::span<const std::int64_t> tensor, const std::string& before,
                                         const std::string& between) {
  std::int64_t elements = 1;
  for (const std::int64_t e : tensor) elements *= e;
  if (given.rank < 0) return before + std::to_string(given.size) + " elements" + between + std::to_string(elements);
  return before + "an array " + extents_text({given.extent.data(), std::size_t(given.rank)}) + between + extents_text(tensor);
}

GSHARD_INLINE void copy_shard_of(const std::byte* whole, const kernel::index_array& stride, std::byte* shard, const kernel::placement& at,
                                 std::int64_t width) {
  if (kernel::element_count(at.rank, at.extent) == 0) return;
  std::int64_t begin = 0;
  for (int d = 0; d < at.rank; ++d) begin += at.offset[std::size_t(d)] * stride[std::size_t(d)];
  kernel::copy_block(whole + begin * width, stride, shard, kernel::row_major_strides(at.rank, at.extent), at.extent, at.rank, width);
}

GSHARD_INLINE std::span<const std::byte> row_major_elements(const untyped_array& given, const kernel::index_array& stride,
                                                            std::span<const std::int64_t> tensor, buffer& room) {
  const std::int64_t width = size_of(given.type), bytes = given.layout.size * width;
  if (given.layout.rank < 0) return {given.data, std::size_t(bytes)};
  kernel::index_array extent{};
  std::copy(tensor.begin(), tensor.end(), extent.begin());
  room = buffer(bytes);
  copy_shard_of(given.data, stride, room.data(), kernel::whole(int(tensor.size()), extent), width);
  return {room.data(), std::size_t(bytes)};
}

/// Element i, in row-major order, of an array for a tensor with these extents.
inline const std::byte* element_of_array(const untyped_array& given, const kernel::index_array& stride,
                                         std::span<const std::int64_t> tensor, std::int64_t i) {
  std::int64_t at = given.layout.rank < 0 ? i : 0;
  for (std::size_t d = given.layout.rank < 0 ? 0 : tensor.size(); d-- > 0; i /= tensor[d]) at += i % tensor[d] * stride[d];
  return given.data + at * size_of(given.type);
}

GSHARD_INLINE std::uint64_t hash_of_samples(const untyped_array& given, const kernel::index_array& stride,
                                            std::span<const std::int64_t> tensor) {
  const auto width = std::size_t(size_of(given.type));
  std::array<std::byte, most_samples * sizeof(std::complex<double>)> samples;
  std::size_t bytes = 0;
  for_each_sample(given.layout.size, [&](std::int64_t i) {
    std::memcpy(samples.data() + bytes, element_of_array(given, stride, tensor, i), width);
    bytes += width;
  });
  return hash_of_bytes({samples.data(), bytes});
}

GSHARD_INLINE void add_samples(std::vector<fact>& facts, const std::string& array, const untyped_array& given,
                               const kernel::index_array& stride, std::span<const std::int64_t> tensor) {
  for_each_sample(given.layout.size, [&](std::int64_t i) {
    const std::byte* const element = element_of_array(given, stride, tensor, i);
    facts.push_back({"element " + std::to_string(i) + " of " + array, element_text(given.type, element)});
  });
}

/// Two sums of the elements from `first` on as texts. The second one depends on their order.
template <class T>
std::array<std::string, 2> sums_of_elements(std::span<const T> elements, std::size_t first) {
  using number = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;  // sums of integers are exact, modulo 2^64
  number sum = 0, weighted = 0;
  const auto add = [&](number x, std::size_t i) {
    sum += x;
    weighted += x * number(i);
  };
  for (std::size_t i = first; i < elements.size(); ++i) {
    if constexpr (has_parts<T>) {
      add(double(elements[i].real()), 2 * i);
      add(double(elements[i].imag()), 2 * i + 1);
    } else {
      add(number(elements[i]), i);
    }
  }
  return {number_text(sum), number_text(weighted)};
}

GSHARD_INLINE void add_elements(std::vector<fact>& facts, const std::string& array, dtype type, std::span<const std::byte> elements) {
  constexpr std::size_t most = 4096;
  const auto width = std::size_t(size_of(type)), n = elements.size() / width;
  facts.push_back({"the number of elements of " + array, std::to_string(n)});
  for (std::size_t i = 0; i < std::min(most, n); ++i)
    facts.push_back({"element " + std::to_string(i) + " of " + array, element_text(type, elements.data() + i * width)});
  if (n <= most) return;
  const auto [sum, weighted] = with_element(type, [&]<class T>(T*) {
    return sums_of_elements(std::span(reinterpret_cast<const T*>(elements.data()), n), most);
  });
  facts.push_back({"the sum of the other elements of " + array, sum});
  facts.push_back({"the sum of i times element i of the others of " + array, weighted});
}

#endif

}}}  // namespace gshard::v0::detail
