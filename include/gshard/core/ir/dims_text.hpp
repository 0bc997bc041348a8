// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The text of a tensor's dims and sharding, as plans print it: "G@expert,S,M".

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/base/name.hpp>
#include <gshard/core/ir/equation.hpp>
#include <gshard/core/ir/sharding.hpp>

#include <array>
#include <cstddef>
#include <string_view>

namespace gshard { inline namespace v0 {

/// A sharding by axis names, before it is resolved on a mesh.
struct named_sharding {
  struct item {
    axis_name axis;
    int dim = 0;  // -1: partial sum
  };
  static constexpr int most_axes = 4;  // of one dim, and of a partial sum
  static constexpr int most = (max_rank + 1) * most_axes + 1;
  std::array<item, most> items{};
  int count = 0;
  int rank = 0;
  unsigned open = 0;
  list_view<int> order{};  // device order; empty: the mesh's own

  constexpr void add(std::string_view axis, int dim) {
    items[std::size_t(count)].axis = axis_name(axis);
    items[std::size_t(count)].dim = dim;
    ++count;
  }
};

/// The dims of a tensor as text, in one of two forms. Letters alone, `"GSM"`, leave the sharding to propagation. Dims with commas between
/// them state it, as plans print it: `"G@expert,S,M"`. `@axis`: the axis shards the dim; several are major to minor. `?`: propagation may
/// shard the dim. `+axis,axis` at the end: a partial sum. `"M,"` is a single dim that is not sharded. Device orders are a part of specs
/// alone.
struct dims_text {
  static constexpr std::size_t valid = std::string_view::npos;

  inplace_name<max_rank> letters;  ///< The letter of each dim; '#' for a dim that is not one letter, such as "BT" or "2".
  named_sharding sharding;
  bool is_sharded = false;    ///< The text states the sharding.
  std::size_t error = valid;  ///< The position of the first character that is wrong.

  /// True if a text has the second form.
  static constexpr bool names_shardings(std::string_view text) { return text.find_first_of(",@?+") != text.npos; }

  constexpr dims_text() = default;
  constexpr explicit dims_text(std::string_view text) : is_sharded(names_shardings(text)) {
    if (is_sharded) read_dims(text);
    else read_letters(text);
  }

  constexpr bool is_valid() const { return error == valid; }
  /// True if it declares dims: each is one letter.
  constexpr bool has_letters() const { return is_valid() && all_letters_; }
  /// The number of axes of a dim; of the partial sum for dim -1.
  constexpr std::size_t axes(int dim) const {
    std::size_t n = 0;
    for (int i = 0; i < sharding.count; ++i) n += sharding.items[std::size_t(i)].dim == dim;
    return n;
  }
  constexpr std::string_view axis(int dim, std::size_t which) const {
    for (int i = 0; i < sharding.count; ++i)
      if (const named_sharding::item& at = sharding.items[std::size_t(i)]; at.dim == dim && which-- == 0) return at.axis.view();
    return {};
  }

 private:
  bool all_letters_ = true;

  constexpr void read_letters(std::string_view text) {
    for (std::size_t i = 0; i < text.size() && is_valid(); ++i) {
      if (!is_letter(text[i]) || sharding.rank == max_rank) error = i;
      else add_dim(text.substr(i, 1));
    }
  }
  constexpr void read_dims(std::string_view text) {
    std::size_t at = 0;
    const auto rest_until = [&](std::string_view ends) {
      const std::string_view found = text.substr(at, text.find_first_of(ends, at) - at);
      at += found.size();
      return found;
    };
    const auto next_is = [&](char c) { return at < text.size() && text[at] == c && ++at; };
    const auto add_axis = [&](int dim) {
      const std::size_t begin = at;
      const std::string_view axis = rest_until(",@?+");
      const bool is_name = !axis.empty() && axis.find(' ') == axis.npos && axis_name::fits(axis);
      if (!is_name || axes(dim) == named_sharding::most_axes) error = begin;
      else sharding.add(axis, dim);
    };
    do {
      const std::size_t begin = at;
      const std::string_view dim = rest_until(",@?+");
      if (!is_name(dim) || sharding.rank == max_rank) error = begin;
      if (!is_valid()) return;
      const bool is_open = next_is('?');
      while (!is_open && is_valid() && next_is('@')) add_axis(sharding.rank);
      if (is_open) sharding.open |= 1u << sharding.rank;
      add_dim(dim);
    } while (is_valid() && next_is(',') && !(sharding.rank == 1 && at == text.size()));
    if (is_valid() && next_is('+')) {
      do {
        add_axis(-1);
      } while (is_valid() && next_is(','));
    }
    if (is_valid() && at < text.size()) error = at;
  }
  static constexpr bool is_name(std::string_view dim) {
    for (const char c : dim)
      if (!is_letter(c) && !(c >= '0' && c <= '9')) return false;
    return !dim.empty();
  }
  constexpr void add_dim(std::string_view dim) {
    const bool one = dim.size() == 1 && is_letter(dim[0]);
    letters.append(one ? dim : "#");
    all_letters_ = all_letters_ && one;
    ++sharding.rank;
  }
};

}}  // namespace gshard::v0
