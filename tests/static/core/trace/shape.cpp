// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/rows/layer_norm.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/convolution.hpp>
#include <gshard/ops/window/slice.hpp>

#include "../../tracing.hpp"

#include <array>
#include <string_view>

namespace gs = gshard;
using gs::builder, gs::fault, gs::none, gs::P, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "GBTM"), y = gs::merge_dims<1>(x);
  const gs::sharding_rule r = b.program.nodes.back().rule;
  // The second of two merged dims is not sharded. The others may be sharded.
  const bool rule = tracing::reads(r.in[0], {0, 1, 2, 3}) && tracing::reads(r.out[0], {0, 1, 3}) && r.blocked == 4;
  return has_dims(y, "G*M") && rule && has_dims(gs::split_dim<1>(y), "GBTM") &&
         gs::split_dim<1>(y).get().dims == x.get().dims;
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "ABC");
  return has_dims(gs::merge_dims<0>(gs::merge_dims<1>(x)), "*") &&
         has_dims(gs::split_dim<1>(gs::split_dim<0>(gs::merge_dims<0>(gs::merge_dims<1>(x)))), "ABC");
}));
static_assert(fails(fault::no_such_dim, "merge_dims",
                    [](builder& b, auto&) { gs::merge_dims<1>(input(b, "AB")); }));
static_assert(fails(fault::no_such_dim, "split_dim",
                    [](builder& b, auto&) { gs::split_dim<2>(input(b, "AB")); }));
static_assert(fails(fault::dims_differ, "split_dim",
                    [](builder& b, auto&) { gs::split_dim<0>(input(b, "AB")); }));
// Eight dims are the maximum.
static_assert(fails(fault::rank_mismatch, "split_dim", [](builder& b, auto&) {
  const symbol pair = gs::merge_dims<0>(input(b, "AB"));
  gs::dim_list wide = input(b, "CDEFGHI").get().dims;
  wide.insert(0, pair.get().dims[0]);
  gs::split_dim<0>(symbol{&b, b.add_value(wide, gs::dtype::f32)});
}));

// Any dim can be split into two named dims. Dims of extent 1 can be added and removed. The others may be sharded.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::split_dim<0>(input(b, "AB"), "CD");
  const gs::sharding_rule r = b.program.nodes.back().rule;
  return has_dims(y, "CDB") && tracing::reads(r.in[0], {0, 2}) && tracing::reads(r.out[0], {0, 1, 2}) && r.blocked == 2;
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::expand_dims<1>(input(b, "AB"));
  const gs::sharding_rule before = b.program.nodes.back().rule;
  const symbol z = gs::squeeze<1>(y);
  const gs::sharding_rule after = b.program.nodes.back().rule;
  return has_dims(y, "A#B") && has_dims(z, "AB") && tracing::reads(before.out[0], {0, 1, 2}) && before.blocked == 2 &&
         tracing::reads(after.in[0], {0, 1, 2}) && after.blocked == 2 && has_dims(gs::expand_dims<2>(z), "AB#") &&
         has_dims(gs::squeeze<0>(input(b, "A")), "");
}));
static_assert(fails(fault::rank_mismatch, "split_dim", [](builder& b, auto&) { gs::split_dim<0>(input(b, "AB"), "CDE"); }));
static_assert(fails(fault::no_such_dim, "expand_dims", [](builder& b, auto&) { gs::expand_dims<3>(input(b, "AB")); }));
static_assert(fails(fault::rank_mismatch, "expand_dims", [](builder& b, auto&) { gs::expand_dims<0>(input(b, "ABCDEFGH")); }));
static_assert(fails(fault::no_such_dim, "squeeze", [](builder& b, auto&) { gs::squeeze<2>(input(b, "AB")); }));

// Dims that are given at run time give the same nodes.
static_assert(tracing::alike(
    [](builder& b) {
      const symbol x = input(b, "ABC");
      gs::split_dim<1>(gs::merge_dims<1>(x)), gs::squeeze<2>(gs::expand_dims<2>(x));
    },
    [](builder& b) {
      const symbol x = input(b, "ABC");
      gs::split_dim(gs::merge_dims(x, 1), 1), gs::squeeze(gs::expand_dims(x, 2), 2);
    }));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::split_dim(input(b, "AB"), 0, 3, 5);
  return has_dims(y, "##B") && b.known_extent(y.get().dims[0]) == 3 && b.known_extent(y.get().dims[1]) == 5;
}));
static_assert(fails(fault::no_such_dim, "merge_dims", [](builder& b, auto&) { gs::merge_dims(input(b, "AB"), 1); }));
static_assert(fails(fault::no_such_dim, "merge_dims", [](builder& b, auto&) { gs::merge_dims(input(b, "AB"), -1); }));
static_assert(fails(fault::no_such_dim, "split_dim", [](builder& b, auto&) { gs::split_dim(input(b, "AB"), 2, 1, 1); }));
// Known extents must have the product of the split dim, for letters and derived dims as well.
constexpr bool splits(std::int64_t first, std::int64_t second) {
  builder b;
  b.options.known = {{'A', 4}, {'B', 6}, {'C', 3}};
  gs::split_dim(input(b, "AB"), 1, first, second);
  if (!b.failed()) gs::split_dim(gs::merge_dims(input(b, "AB"), 0), 0, 4 * first, second);
  return !b.failed();
}
static_assert(splits(2, 3) && splits(1, 6) && splits(6, 1));
static_assert(!splits(2, 4) && !splits(0, 3) && !splits(INT64_MAX, 2));
constexpr auto in_letters = [](std::string_view letters) {
  return [letters](builder& b, auto&) {
    b.options.known = {{'A', 4}, {'B', 6}, {'C', 3}};
    gs::split_dim<1>(input(b, "AB"), letters);
  };
};
static_assert(fails(fault::not_the_product, "split_dim", in_letters("AC")) && !fails(fault::not_the_product, "split_dim", in_letters("CD")));
static_assert(tracing::out_of_range("split_dim", "first", {-1}, [](builder& b, auto&) { gs::split_dim(input(b, "AB"), 0, -1, 2); }));
static_assert(tracing::out_of_range("split_dim", "second", {-2}, [](builder& b, auto&) { gs::split_dim(input(b, "AB"), 0, 2, -2); }));
// The names of dims in the text of an annotation are its own.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = gs::annotate<"A@x,B?">(input(b, "AB")), y = gs::annotate<"G,2@y">(input(b, "AB"), 3);
  return x.get().layout.dim_of(0) == 0 && x.get().layout.open == 0b10 && y.get().layout.dim_of(1) == 1 && y.get().layout.open == 0 &&
         y.get().priority == 3;
}));
static_assert(fails(fault::rank_mismatch, "annotate", [](builder& b, auto&) { gs::annotate<"A@x,B,C">(input(b, "AB")); }));
static_assert(fails(fault::incomplete_output, "annotate", [](builder& b, auto&) { gs::annotate<"A,B+x">(input(b, "AB")); }));
static_assert(fails(fault::unknown_axis, "annotate", [](builder& b, auto&) { gs::annotate<"A@z,B">(input(b, "AB")); }));
static_assert(tracing::out_of_range("annotate", "priority", {256}, [](builder& b, auto&) {
  gs::annotate(input(b, "AB"), gs::P<"x", gs::none>::named, 256);
}));
static_assert(fails(fault::dims_differ, "split_dim", [](builder& b, auto&) { gs::split_dim(input(b, "AB"), 0); }));
static_assert(fails(fault::no_such_dim, "expand_dims", [](builder& b, auto&) { gs::expand_dims(input(b, "AB"), 3); }));
static_assert(fails(fault::no_such_dim, "squeeze", [](builder& b, auto&) { gs::squeeze(input(b, "AB"), -1); }));

// Two dims are equal by their extents, if one of them is no letter and the extents are known. They are also equal if one was split into the
// factors of the other.
constexpr bool matches(gs::dims known, auto make) {
  return tracing::holds([=](builder& b, auto&) {
    b.options.known = known;
    const symbol x = input(b, "BK"), other = input(b, "BK"), w = input(b, "KN"), y = make(x);
    return has_dims(gs::einsum<"bk,kn->bn">(y, w), "BN") && (y + other).rank() == 2 && (other + y).rank() == 2 && (y + x).rank() == 2 &&
           gs::concat({y, x}, 0).rank() == 2 && gs::layer_norm(y, input(b, "K"), input(b, "K")).rank() == 2 &&
           gs::select(other, y, x).rank() == 2 && gs::gradients(gs::sum(y * other), std::array{x})[0].rank() == 2;
  });
}
constexpr auto split_and_merged = [](symbol x) { return gs::merge_dims(gs::split_dim(x, 1, 32, 4), 1); };
static_assert(matches({}, split_and_merged));
static_assert(matches({{'K', 128}}, split_and_merged));
static_assert(matches({{'K', 8}, {'L', 6}}, [](symbol x) { return gs::slice(gs::concat({x, x}, 1), 1, 4, 12); }));
static_assert(matches({}, [](symbol x) { return gs::merge_dims(gs::split_dim<1>(x, "ST"), 1); }));
static_assert(tracing::holds([](builder& b, auto&) {
  b.options.known = {{'K', 128}};
  return gs::conv<"BXI,xIO->BXO">(gs::merge_dims(gs::split_dim(input(b, "BXK"), 2, 32, 4), 2), input(b, "PKO")).rank() == 3;
}));
// Not by unknown extents, and not two letters.
static_assert(fails(fault::dims_differ, "bk,kn->bn", [](builder& b, auto&) {
  gs::einsum<"bk,kn->bn">(gs::merge_dims(input(b, "BST"), 1), input(b, "KN"));
}));
static_assert(fails(fault::dims_differ, "bk,kn->bn", [](builder& b, auto&) {
  b.options.known = {{'K', 4}, {'L', 4}};
  gs::einsum<"bk,kn->bn">(input(b, "BL"), input(b, "KN"));
}));
static_assert(fails(fault::dims_do_not_broadcast, "map", [](builder& b, auto&) {
  b.options.known = {{'K', 5}};
  static_cast<void>(gs::merge_dims(gs::split_dim(input(b, "BL"), 1, 2, 2), 1) + input(b, "BK"));
}));
// Names have priority: [4,H] + [H] is not ambiguous if H is 4.
static_assert(tracing::holds([](builder& b, auto&) {
  b.options.known = {{'H', 4}};
  const symbol x = gs::split_dim(input(b, "KH"), 0, 2, 4), y = input(b, "H");
  static_cast<void>(x + y);
  return tracing::reads(b.program.nodes.back().rule.in[1], {2});
}));

// rename_dims states that two dims are equal.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "BM"), y = gs::rename_dims<"_K">(x);
  return has_dims(y, "BK") && has_dims(gs::einsum<"bk,kn->bn">(y, input(b, "KN")), "BN") && has_dims(gs::rename_dims(x, "MB"), "MB") &&
         has_dims(gs::gradients(gs::sum(y * y), std::array{x})[0], "BM");
}));
static_assert(fails(fault::rank_mismatch, "rename_dims", [](builder& b, auto&) { gs::rename_dims<"K">(input(b, "BM")); }));
static_assert(fails(fault::unknown_letter, "rename_dims", [](builder& b, auto&) { gs::rename_dims<"B1">(input(b, "BM")); }));
static_assert(fails(fault::dims_differ, "rename_dims", [](builder& b, auto&) {
  b.options.known = {{'K', 4}, {'M', 5}};
  gs::rename_dims<"BK">(input(b, "BM"));
}));

// Shardings that are given at run time also give the same nodes.
constexpr gs::named_sharding named(int rank, std::string_view axis, int dim) {
  gs::named_sharding s;
  s.rank = rank;
  s.add(axis, dim);
  return s;
}
static_assert(tracing::alike([](builder& b) { gs::annotate<P<none, "x">>(input(b, "AB"), {}, 7); },
                             [](builder& b) { gs::annotate(input(b, "AB"), named(2, "x", 1), 7); }));
static_assert(fails(fault::unknown_axis, "annotate", [](builder& b, auto&) { gs::annotate(input(b, "AB"), named(2, "z", 1)); }));
static_assert(fails(fault::rank_mismatch, "annotate", [](builder& b, auto&) { gs::annotate(input(b, "AB"), named(1, "x", 0)); }));
static_assert(fails(fault::rank_mismatch, "annotate", [](builder& b, auto&) { gs::annotate(input(b, "AB"), named(2, "x", 2)); }));
static_assert(fails(fault::incomplete_output, "annotate", [](builder& b, auto&) { gs::annotate(input(b, "AB"), named(2, "x", -1)); }));

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol y = gs::annotate<P<"x", none, gs::any>>(input(b, "ABC"));
  const gs::sharding& s = y.get().layout;
  return has_dims(y, "ABC") && s.dim_of(0) == 0 && s.open == 0b100 &&
         gs::annotate(input(b, "AB"), P<none, "y">{}).get().layout.dim_of(1) == 1;
}));
static_assert(fails(fault::unknown_axis, "annotate",
                    [](builder& b, auto&) { gs::annotate<P<"z", none>>(input(b, "AB")); }));
static_assert(fails(fault::axis_used_twice, "annotate",
                    [](builder& b, auto&) { gs::annotate<P<"x", "x">>(input(b, "AB")); }));
static_assert(fails(fault::rank_mismatch, "annotate",
                    [](builder& b, auto&) { gs::annotate<P<"x">>(input(b, "AB")); }));
static_assert(fails(fault::incomplete_output, "annotate",
                    [](builder& b, auto&) { gs::annotate<P<none, gs::partial<"x">>>(input(b, "A")); }));

}  // namespace
