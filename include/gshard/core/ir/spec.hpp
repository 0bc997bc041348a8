// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Partition specs: P<"data", none> names the mesh axes that shard each dim of a tensor. P<"B@data,M"> is the same spec as text.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/ir/dims_text.hpp>
#include <gshard/core/ir/fault.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/sharding.hpp>

#include <cstddef>
#include <string_view>
#include <utility>

namespace gshard { inline namespace v0 {

// The entries of a spec, one per dim, as types: compilers print `spec<shard<"data">, replicated>` readably.

/// These mesh axes shard the dim, major to minor.
template <fixed_string... Axes>
struct shard {};
/// The dim is replicated.
struct replicated {};
/// The dim is replicated unless propagation shards it.
struct unconstrained {};
/// Not a dim: the tensor is a partial sum over these mesh axes.
template <fixed_string... Axes>
struct pending {};

/// Not a dim: the device order of the tensor, in place of the mesh's.
template <int... Devices>
struct on_devices {
  static constexpr int list[sizeof...(Devices)]{Devices...};
};

/// One entry of `P<...>` as a value. String literals, `none`, `any`, `axes<...>`, `partial<...>` and `device_order<...>` convert to it. A
/// literal is the name of a mesh axis, or the text of a complete spec. @see dims_text
struct label {
  enum class kind { shard, replicated, any, partial, order, text };
  static constexpr std::size_t longest = 23, most = 4, longest_text = most * longest;

  kind what = kind::shard;
  std::size_t count = 0;
  char text[most][longest]{};
  std::size_t length[most]{};

  template <std::size_t N>
  consteval label(const char (&axis)[N]) {
    static_assert(N - 1 <= longest_text, "gshard: the text of a spec has at most 92 characters");
    if (N - 1 > longest || dims_text::names_shardings({axis, N - 1})) set_text({axis, N - 1});
    else add({axis, N - 1});
  }
  template <std::size_t N>
  constexpr explicit label(const fixed_string<N>& axis) {
    static_assert(N - 1 <= longest, "gshard: the name of a mesh axis has at most 23 characters");
    add(axis.view());
  }
  constexpr explicit label(kind k) : what(k) {}
  constexpr void add(std::string_view axis) {
    for (std::size_t i = 0; i < axis.size(); ++i) text[count][i] = axis[i];
    length[count++] = axis.size();
  }
  constexpr std::string_view axis(std::size_t i) const { return {text[i], length[i]}; }

  constexpr void set_text(std::string_view whole) {
    what = kind::text;
    count = whole.size();
    for (std::size_t i = 0; i < count; ++i) text[i / longest][i % longest] = whole[i];
  }
  constexpr char character(std::size_t i) const { return text[i / longest][i % longest]; }

  // For an order: one character per device, which holds the number of the device.
  static constexpr std::size_t most_devices = longest_text;
  constexpr void add_device(int device) {
    text[count / longest][count % longest] = char(device);
    ++count;
  }
  constexpr int device(std::size_t i) const { return text[i / longest][i % longest]; }
};

namespace detail {
template <fixed_string... Axes>
constexpr label make_label(label::kind k) {
  static_assert(sizeof...(Axes) <= label::most, "gshard: at most 4 mesh axes in one entry of a spec");
  static_assert(((Axes.view().size() <= label::longest) && ...), "gshard: the name of a mesh axis has at most 23 characters");
  label l(k);
  (l.add(Axes.view()), ...);
  return l;
}

template <label L, template <fixed_string...> class Entry, std::size_t... I>
constexpr auto entry_of_axes(std::index_sequence<I...>) {
  return Entry<word<L.length[I]>(L.axis(I))...>{};
}
template <int... Devices>
constexpr label make_order() {
  static_assert(sizeof...(Devices) > 0 && sizeof...(Devices) <= label::most_devices,
                "gshard: a spec orders at most 92 devices; assign orders any number");
  static_assert(((Devices >= 0 && Devices < int(sizeof...(Devices))) && ...),
                "gshard: an order of devices has each device of the mesh once");
  label l(label::kind::order);
  (l.add_device(Devices), ...);
  return l;
}
template <label L, std::size_t... I>
constexpr auto entry_of_devices(std::index_sequence<I...>) {
  return on_devices<L.device(I)...>{};
}
template <label L>
constexpr auto entry_of() {
  if constexpr (L.what == label::kind::order) return entry_of_devices<L>(std::make_index_sequence<L.count>{});
  else if constexpr (L.what == label::kind::replicated || L.what == label::kind::text) return replicated{};  // spec_from refuses texts
  else if constexpr (L.what == label::kind::any) return unconstrained{};
  else if constexpr (L.what == label::kind::partial) return entry_of_axes<L, pending>(std::make_index_sequence<L.count>{});
  else return entry_of_axes<L, shard>(std::make_index_sequence<L.count>{});
}
}  // namespace detail

inline constexpr label none{label::kind::replicated};
/// Propagation may shard the dim.
inline constexpr label any{label::kind::any};
/// `P<axes<"data", "expert">, none>`: several axes shard one dim, major to minor. Each axis divides the blocks of the axes before it, and
/// rounds up: 13 rows over axes of 2 and 2 are 4, 3, 3, 3, where one axis of 4 has 4, 4, 4, 1.
template <fixed_string... Axes>
inline constexpr label axes = detail::make_label<Axes...>(label::kind::shard);
/// `P<none, none, partial<"expert">>`: a tensor of two dims that is a partial sum over "expert".
template <fixed_string... Axes>
inline constexpr label partial = detail::make_label<Axes...>(label::kind::partial);

/// `P<"x", none, device_order<0, 2, 1, 3>>`: a tensor of two dims whose shards are placed on the devices in this order, instead of the
/// mesh's. For meshes with their own device ids. All mesh extents must be static. If a dim is `any`, another one must be sharded. Only
/// programs take it: operations on tensors outside of them (`reshard`, `einsum`, ...) use the mesh's order.
template <int... Devices>
inline constexpr label device_order = detail::make_order<Devices...>();

namespace detail {
template <fixed_string... Axes>
constexpr void add_entry(named_sharding& s, shard<Axes...>) {
  (s.add(Axes.view(), s.rank), ...);
  ++s.rank;
}
constexpr void add_entry(named_sharding& s, replicated) { ++s.rank; }
template <int... Devices>
constexpr void add_entry(named_sharding& s, on_devices<Devices...>) {
  s.order = {on_devices<Devices...>::list, sizeof...(Devices)};
}
constexpr void add_entry(named_sharding& s, unconstrained) { s.open |= 1u << s.rank++; }
template <fixed_string... Axes>
constexpr void add_entry(named_sharding& s, pending<Axes...>) {
  (s.add(Axes.view(), -1), ...);
}
}  // namespace detail

/// A partition spec as a type; users write it with `P`.
template <class... Entries>
struct spec {
  static constexpr named_sharding named = [] {
    named_sharding s;
    (detail::add_entry(s, Entries{}), ...);
    return s;
  }();
  static constexpr int rank = named.rank;
  static_assert(rank <= max_rank, "gshard: tensors have at most 8 dims");
  // Replicas are the same in every order. Axes that propagation adds would not be part of it.
  static_assert(named.order.empty() || named.open == 0 || named.count > 0,
                "gshard: an order of devices needs a sharded dim: name its axis in place of any");
};

namespace detail {
template <class T>
inline constexpr bool is_spec = false;
template <class... Entries>
inline constexpr bool is_spec<spec<Entries...>> = true;

/// The spec that a text states.
template <fixed_string Text>
struct spec_of_text {
  static constexpr dims_text parsed{Text.view()};

  template <int Dim, std::size_t... I>
  static constexpr auto entry(std::index_sequence<I...>) {
    if constexpr (Dim < 0) return pending<word<parsed.axis(Dim, I).size()>(parsed.axis(Dim, I))...>{};
    else if constexpr (((parsed.sharding.open >> Dim) & 1u) != 0) return unconstrained{};
    else if constexpr (sizeof...(I) == 0) return replicated{};
    else return shard<word<parsed.axis(Dim, I).size()>(parsed.axis(Dim, I))...>{};
  }
  template <int Dim>
  using entry_at = decltype(entry<Dim>(std::make_index_sequence<parsed.axes(Dim)>{}));
  template <std::size_t... Dims>
  static constexpr auto all(std::index_sequence<Dims...>) {
    if constexpr (parsed.axes(-1) > 0) return spec<entry_at<int(Dims)>..., entry_at<-1>>{};
    else return spec<entry_at<int(Dims)>...>{};
  }
  using type = decltype(all(std::make_index_sequence<std::size_t(parsed.sharding.rank)>{}));
};
template <label L, std::size_t... I>
constexpr auto text_of_label(std::index_sequence<I...>) {
  constexpr char text[]{L.character(I)..., '\0'};
  return word<sizeof...(I)>({text, sizeof...(I)});
}

// A class, because g++ 12 crashes on an alias straight to spec if a generic lambda uses `axes<...>`.
template <label... Labels>
struct spec_from {
  static_assert(((Labels.what != label::kind::text) && ...),
                "gshard: a spec is one text, P<\"B@data,M\">, or a list of entries, whose axes have at most 23 characters: "
                "P<\"data\", none>");
  using type = spec<decltype(entry_of<Labels>())...>;
};
template <label L>
  requires(L.what == label::kind::text)
struct spec_from<L> {
  using text = spec_of_text<text_of_label<L>(std::make_index_sequence<L.count>{})>;
  static_assert(text::parsed.is_valid() && text::parsed.is_sharded,
                "gshard: the text of a spec has commas between dims, and mesh axes of at most 23 characters: P<\"G@expert,S,M\">");
  using type = typename text::type;
};
}  // namespace detail

/// The partition spec of a tensor, one entry per dim: an axis name, `none`, `any` or `axes<...>`. `partial<...>` or `device_order<...>` may
/// follow. Or the text of the complete spec: `P<"G@expert,S,M">` is `P<"expert", none, none>`.
/// @see dims_text
template <label... Labels>
using P = typename detail::spec_from<Labels...>::type;

/// Resolves a spec to a sharding on a mesh, in the mesh's device order. Reports, for `tensor`, an axis that the mesh lacks or that occurs
/// twice.
constexpr sharding resolve(const named_sharding& named, const mesh_shape& mesh, std::string_view tensor, diagnostic& problem) {
  sharding s = sharding::replicated(named.rank);
  s.open = std::uint8_t(named.open);
  unsigned seen = 0;
  for (int i = 0; i < named.count; ++i) {
    const auto& item = named.items[std::size_t(i)];
    const int a = mesh.find(item.axis.view());
    if (a < 0 || ((seen >> a) & 1u)) {
      problem.report(a < 0 ? fault::unknown_axis : fault::axis_used_twice, tensor, item.axis.view());
      return s;
    }
    seen |= 1u << a;
    if (item.dim < 0) s.partial = std::uint8_t(s.partial | (1u << a));
    else s[item.dim].push_back(a);
  }
  return s;
}

}}  // namespace gshard::v0
