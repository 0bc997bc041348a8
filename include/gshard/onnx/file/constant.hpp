// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Tensors whose elements are known while a model is imported.

#include <gshard/exec/kernel/element.hpp>
#include <gshard/exec/kernel/move/cast.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/onnx/file/model.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

/// A row-major tensor of real numbers, integers or truth values in memory of its own.
struct constant {
  element type = element::f32;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> integers;  ///< The elements, if they are integers or truth values.
  std::vector<double> reals;           ///< The elements, if they are real numbers.

  bool is_real() const { return is_float(type); }
  std::size_t size() const { return is_real() ? reals.size() : integers.size(); }
  double real(std::size_t i) const { return is_real() ? reals[i] : double(integers[i]); }
  std::int64_t integer(std::size_t i) const { return is_real() ? std::int64_t(reals[i]) : integers[i]; }

  bool operator==(const constant&) const = default;
};

inline std::int64_t count_of(std::span<const std::int64_t> extents) {
  std::int64_t n = 1;
  for (const std::int64_t e : extents) n *= e;
  return n;
}

/// A number rounded to a type of real numbers.
inline double rounded(element type, double x) {
  switch (type) {
    case element::f32:
      return double(float(x));
    case element::f16:
      return double(kernel::detail::converted<float>(kernel::detail::converted<half>(float(x))));
    case element::bf16:
      return double(kernel::detail::converted<float>(kernel::detail::converted<bfloat16>(float(x))));
    default:
      return x;
  }
}
/// An integer modulo 2^bits, as the type holds it.
constexpr std::int64_t wrapped(element type, std::int64_t x) {
  const element_traits& t = traits(type);
  if (type == element::boolean) return x != 0;
  if (type == element::i32) return std::int32_t(std::uint64_t(x) & 0xffffffffu);
  if (t.wraps_at == 0) return x;
  const std::int64_t low = x & ((std::int64_t(1) << t.wraps_at) - 1);
  return t.is_signed && (low >> (t.wraps_at - 1)) != 0 ? low - (std::int64_t(1) << t.wraps_at) : low;
}

inline constant integers_of(std::vector<std::int64_t> all, element type = element::i64) {
  constant c{type, {std::int64_t(all.size())}, std::move(all), {}};
  return c;
}
inline constant scalar_integer(std::int64_t n, element type = element::i64) {
  return {type, {}, {n}, {}};
}
inline constant scalar_real(double x, element type = element::f32) {
  return {type, {}, {}, {rounded(type, x)}};
}
/// A constant without elements, for them to be added.
inline constant empty_like(element type, std::vector<std::int64_t> extents) {
  return {type, std::move(extents), {}, {}};
}

/// True if the elements of a tensor can be known while importing: real numbers, integers, truth values.
constexpr bool can_be_known(element e) {
  return e != element::string && e != element::undefined && !is_complex(e);
}

namespace element_access {
template <class T>
T read(const std::byte* at) {
  T x;
  std::memcpy(&x, at, sizeof x);
  return x;
}
/// The integer of a type at an address in a file.
inline std::int64_t integer_at(element type, const std::byte* at) {
  switch (type) {
    case element::u8:
      return read<std::uint8_t>(at);
    case element::i8:
      return read<std::int8_t>(at);
    case element::u16:
      return read<std::uint16_t>(at);
    case element::i16:
      return read<std::int16_t>(at);
    case element::i32:
      return read<std::int32_t>(at);
    case element::u32:
      return read<std::uint32_t>(at);
    case element::boolean:
      return read<std::uint8_t>(at) != 0;
    default:
      return read<std::int64_t>(at);
  }
}
inline double real_at(element type, const std::byte* at) {
  switch (type) {
    case element::f32:
      return double(read<float>(at));
    case element::f16:
      return double(kernel::detail::converted<float>(read<half>(at)));
    case element::bf16:
      return double(kernel::detail::converted<float>(read<bfloat16>(at)));
    default:
      return read<double>(at);
  }
}
/// Writes elements [0, n) of a file as the carrier of their type.
inline void to_carrier(element type, const std::byte* from, std::byte* to, std::int64_t n) {
  const element_traits& t = traits(type);
  if (size_of(t.carrier) == t.size && type != element::boolean) {
    if (n > 0) std::memcpy(to, from, std::size_t(n * t.size));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i, from += t.size, to += size_of(t.carrier)) {
    const std::int64_t x = integer_at(type, from);
    if (t.carrier == dtype::boolean)
      *to = std::byte(x != 0);
    else if (t.carrier == dtype::i32) {
      const auto narrow = std::int32_t(x);
      std::memcpy(to, &narrow, sizeof narrow);
    } else {
      std::memcpy(to, &x, sizeof x);
    }
  }
}
}  // namespace element_access

/// The elements of a tensor of a model. Its type must be one that can be known.
inline constant constant_of(const model_tensor& t) {
  constant c = empty_like(t.type, t.shape);
  const auto n = std::size_t(count_of(t.shape));
  const auto size = std::size_t(traits(t.type).size);
  for (std::size_t i = 0; i < n; ++i) {
    const std::byte* const at = t.data.data() + i * size;
    if (c.is_real())
      c.reals.push_back(element_access::real_at(t.type, at));
    else
      c.integers.push_back(element_access::integer_at(t.type, at));
  }
  return c;
}

/// A constant as a tensor of a model, with memory of its own.
inline model_tensor tensor_of(const constant& c, const std::string& name) {
  model_tensor t{name, c.type, c.extents, {}, {}};
  const auto size = std::size_t(traits(c.type).size);
  const auto bytes = std::make_shared<std::vector<std::byte>>(c.size() * size);
  for (std::size_t i = 0; i < c.size(); ++i) {
    std::byte* const at = bytes->data() + i * size;
    const auto write = [&](const auto& x) { std::memcpy(at, &x, sizeof x); };
    switch (c.type) {
      case element::f32:
        write(float(c.reals[i]));
        break;
      case element::f64:
        write(c.reals[i]);
        break;
      case element::f16:
        write(kernel::detail::converted<half>(float(c.reals[i])));
        break;
      case element::bf16:
        write(kernel::detail::converted<bfloat16>(float(c.reals[i])));
        break;
      default:
        std::memcpy(at, &c.integers[i], size);
        break;  // little-endian: the low bytes
    }
  }
  t.data = *bytes;
  t.owner = bytes;
  return t;
}

}}}  // namespace gshard::v0::onnx
