// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/ir/dims_text.hpp>

#include <cstddef>
#include <string_view>
#include <type_traits>

namespace gs = gshard;
using gs::any, gs::axes, gs::none, gs::P, gs::partial, gs::dims_text;

namespace {

// Letters alone leave the sharding to propagation.
static_assert(dims_text("GSM").letters.view() == "GSM" && !dims_text("GSM").is_sharded && dims_text("GSM").sharding.rank == 3);
static_assert(dims_text("").is_valid() && dims_text("").sharding.rank == 0 && !dims_text("").is_sharded);
// Commas state it, as plans do.
constexpr dims_text sharded("G@data@expert,S?,M+model,pipe");
static_assert(sharded.is_valid() && sharded.has_letters() && sharded.letters.view() == "GSM" && sharded.is_sharded);
static_assert(sharded.axes(0) == 2 && sharded.axis(0, 0) == "data" && sharded.axis(0, 1) == "expert");
static_assert(sharded.axes(1) == 0 && sharded.sharding.open == 0b010 && sharded.axes(2) == 0);
static_assert(sharded.axes(-1) == 2 && sharded.axis(-1, 0) == "model" && sharded.axis(-1, 1) == "pipe");
constexpr dims_text one_dim("M,");  // a dim that is not sharded
static_assert(dims_text("G,S").is_sharded && dims_text("G,S").sharding.count == 0);
static_assert(one_dim.is_valid() && one_dim.is_sharded && one_dim.letters.view() == "M" && one_dim.sharding.rank == 1);
// Dims of plans may be products of dims, and numbers. They are not letters.
static_assert(dims_text("BT@x,2").is_valid() && !dims_text("BT@x,2").has_letters() && dims_text("BT@x,2").sharding.rank == 2);

constexpr std::size_t wrong_at(std::string_view text) { return dims_text(text).error; }
static_assert(wrong_at("GS M") == 2 && wrong_at("G1") == 1 && wrong_at("ABCDEFGHI") == 8);
static_assert(wrong_at("G,,M") == 2 && wrong_at("G,S,") == 4 && wrong_at(",G") == 0 && wrong_at("G@x, S") == 4);
static_assert(wrong_at("G@,S") == 2 && wrong_at("G@x@") == 4 && wrong_at("@x") == 0 && wrong_at("G@x?") == 3 && wrong_at("G?@x") == 2);
static_assert(wrong_at("G+") == 2 && wrong_at("G+x@y") == 3 && wrong_at("G+x,") == 4);
static_assert(wrong_at("G@an_axis_of_24_characters,S") == 2 && wrong_at("G@an_axis_of_23_character,S") == dims_text::valid);
static_assert(wrong_at("G@a@b@c@d") == dims_text::valid && wrong_at("G@a@b@c@d@e") == 10);
static_assert(wrong_at("A,B,C,D,E,F,G,H,I") == 16 && wrong_at("G@x y") == 2);

// The most axes of a text.
constexpr dims_text full("A@a@b@c@d,B@a@b@c@d,C@a@b@c@d,D@a@b@c@d,E@a@b@c@d,F@a@b@c@d,G@a@b@c@d,H@a@b@c@d+a,b,c,d");
static_assert(full.is_valid() && full.sharding.count == 36 && full.axes(7) == 4 && full.axes(-1) == 4);

// A spec may be one text.
static_assert(std::is_same_v<P<"G@expert,S,M">, P<"expert", none, none>>);
static_assert(std::is_same_v<P<"G@data@expert,S?,M+model,pipe">, P<axes<"data", "expert">, any, none, partial<"model", "pipe">>>);
static_assert(std::is_same_v<P<"M@x">, P<"x">> && std::is_same_v<P<"M?">, P<any>> && std::is_same_v<P<"M,">, P<none>> && std::is_same_v<P<"M+x">, P<none, partial<"x">>>);
static_assert(std::is_same_v<P<"BT@x,2">, P<"x", none>>);
static_assert(std::is_same_v<P<"GSM">, gs::spec<gs::shard<"GSM">>>);  // the name of an axis

}  // namespace
