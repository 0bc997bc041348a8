// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The attributes of a node: the settings of its operation, in addition to its tensors and its rule.

#include <gshard/core/ir/custom_operation.hpp>
#include <gshard/core/ir/dim.hpp>
#include <gshard/core/ir/pointwise.hpp>
#include <gshard/core/ir/reduction.hpp>

#include <cstdint>
#include <type_traits>

namespace gshard { inline namespace v0 {

/// The change that a reshape makes at its dim. merge and split, insert and remove are inverses.
enum class reshape_kind : std::uint8_t { unchanged, merge, split, insert, remove, rename };

/// The reaction of an optimizer to a loss, a gradient or an updated parameter that is NaN or infinite.
/// stop: the run throws not_finite_error. skip: no parameter is updated, as if the batch were absent. ignore: nothing.
enum class not_finite : std::uint8_t { stop, skip, ignore };

/// The attributes of an operation by name, and their places in `packed_attributes`.
struct attribute_names {
  enum class kind : std::uint8_t { flag, number, integer };
  struct item {
    const char* name;
    kind what;
    int at;  // among those of its kind
  };
  static constexpr int most = 6;

  item items[most]{};
  int count = 0;
  int of_kind[3]{};

  template <class T>
  static constexpr kind kind_of = std::is_same_v<T, bool> ? kind::flag : std::is_floating_point_v<T> ? kind::number : kind::integer;
};

namespace detail {
template <class T>
inline constexpr attribute_names attribute_names_of = [] {
  attribute_names all;
  T defaults;
  T::each(defaults, [&](const char* name, const auto& x) {
    constexpr auto what = attribute_names::kind_of<std::remove_cvref_t<decltype(x)>>;
    all.items[all.count++] = {name, what, all.of_kind[int(what)]++};
  });
  return all;
}();
}  // namespace detail

/// Attributes that only the rewrite, the gradient and the kernel of an operation read, as numbers. They are members of a struct, whose
/// `each(all, f)` calls f(name, member) for each: a bool, a double, an integer or an enumeration. @see own
struct packed_attributes {
  static constexpr int most_integers = 3, most_numbers = 4;

  std::int32_t integers[most_integers]{};
  double numbers[most_numbers]{};
  std::uint32_t flags = 0;
  const attribute_names* names = nullptr;  ///< Null: none is set.

  constexpr packed_attributes() = default;
  template <class T>
    requires requires(const T& t, void (*f)(...)) { T::each(t, f); }
  constexpr packed_attributes(const T& all) : packed_attributes(packed(all)) {}
  template <class T>
  constexpr T unpack() const {
    T all;
    int of_kind[3]{};
    T::each(all, [&](const char*, auto& x) {
      using type = std::remove_cvref_t<decltype(x)>;
      const int i = of_kind[int(attribute_names::kind_of<type>)]++;
      if constexpr (std::is_same_v<type, bool>) x = ((flags >> i) & 1u) != 0;
      else if constexpr (std::is_floating_point_v<type>) x = numbers[i];
      else x = type(integers[i]);
    });
    return all;
  }
  /// True if the attributes have equal values.
  constexpr bool same(const packed_attributes& other) const {
    bool same = flags == other.flags;
    for (int i = 0; i < most_integers; ++i) same = same && integers[i] == other.integers[i];
    for (int i = 0; i < most_numbers; ++i) same = same && numbers[i] == other.numbers[i];
    return same;
  }

 private:
  // A function, because g++ 12 does not let the constructor of a constant assign members.
  template <class T>
  static constexpr packed_attributes packed(const T& all) {
    constexpr const attribute_names& listed = detail::attribute_names_of<T>;
    using enum attribute_names::kind;
    static_assert(listed.of_kind[int(integer)] <= most_integers && listed.of_kind[int(number)] <= most_numbers);
    packed_attributes p;
    p.names = &listed;
    int of_kind[3]{};
    T::each(all, [&](const char*, const auto& x) {
      using type = std::remove_cvref_t<decltype(x)>;
      const int i = of_kind[int(attribute_names::kind_of<type>)]++;
      if constexpr (std::is_same_v<type, bool>) p.flags |= std::uint32_t(x) << i;
      else if constexpr (std::is_floating_point_v<type>) p.numbers[i] = x;
      else p.integers[i] = std::int32_t(x);
    });
    return p;
  }
};

/// The settings of a node that passes read, or that several operations share. A node sets those of its operation. The others keep their
/// defaults.
struct attributes {
  std::int32_t dim = 0;     ///< The dim of operand 0 along which the operation works, or of the result if it has no operand.
  std::uint32_t axes = 0;   ///< Communication: a mask of mesh axes. Devices that differ only along them exchange data.
  std::uint32_t moves = 0;  ///< A combined collective: the operation of each operand. @see operation_of_move
  std::int32_t ring_operand = 0;  ///< A loop over blocks: the operand whose blocks are passed on; the number of operands if sums are.
  std::int32_t window = 0;        ///< A merge of dims: the row of the window through which the first dim reads the result.
  std::int32_t key = 0;           ///< Identifies the random numbers that a node draws, and the loop whose iterations number them.
  std::int32_t loop = 0;          ///< The number of the loop to which a node of a loop belongs.
  reduction combine = reduction::sum;              ///< The reduction that completes partial results.
  reshape_kind change = reshape_kind::unchanged;   ///< The change of the dims of an operand whose elements stay in their order.
  not_finite if_not_finite = not_finite::ignore;   ///< An update: if skip, the last operand is not 0 where the step is skipped.
  bool reverse = false;          ///< A node of a loop: the last iteration's random numbers first.
  bool of_blocks = false;        ///< Computes a part for each block, therefore its strategy is the sharding of its result.
  bool by_blocks = false;        ///< With the trait `after_extremum`: `decompose` rewrites the node by blocks.
  bool defers_sums = false;      ///< A sum over iterations: the sums over devices are completed after the loop.
  bool may_move = false;         ///< Readers may reshard the result, whatever the strictness of the program.
  bool gradient_as_operand = false;  ///< The gradient has the sharding of the operand, not of the result.
  bool rounds_to_bf16 = false;   ///< The factors of a product are rounded to bf16.
  bool inside = false;           ///< Indices are inside the operand, and need no check. Windows must be: the kernel throws if one is not.
  double fill = 0;               ///< The result where windows read nothing. If it is not 0, the operation is not linear.
  double factor = 1;             ///< A constant by which the operation multiplies. If it is positive, zeros stay where they are.
  const pointwise* function = nullptr;         ///< What the node computes, if its operation takes a function.
  const custom_operation* custom = nullptr;    ///< The user's operation, with its traits.
  const char* label = nullptr;                 ///< In errors of the node: the name of its tensor, or of its verb.
  packed_attributes own{};                     ///< Those of one operation alone. @see own
  dim_list dims = {};  ///< Dims whose extents the node needs in addition to those of its tensors: those that a factor counts, slots,
                       ///< iterations. With the trait `taps`, by dim of operand 0: 1 + the factor of its taps.
};

/// The attributes of one operation alone: `own<cumsum_attributes>(n.attr)` of a cumsum.
template <class T>
constexpr T own(const attributes& a) {
  return a.own.unpack<T>();
}

}}  // namespace gshard::v0
