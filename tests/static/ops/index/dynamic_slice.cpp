// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/index/dynamic_slice.hpp>

#include "../../tracing.hpp"

#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::builder, gs::dtype, gs::fault, gs::in, gs::none, gs::P, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "ABC"), start = input(b, "", dtype::i32);
  return has_dims(gs::dynamic_slice(x, 1, start, 3), "A#C") && has_dims(gs::dynamic_update_slice(x, input(b, "AUC"), 1, start), "ABC") &&
         has_dims(gs::dynamic_update_slice(x, gs::dynamic_slice(x, 2, start, 1), 2, start), "ABC");
}));
static_assert(fails(fault::no_such_dim, "dynamic_slice",
                    [](builder& b, auto&) { gs::dynamic_slice(input(b, "AB"), 2, input(b, "", dtype::i32), 1); }));
static_assert(fails(fault::not_a_scalar, "dynamic_slice",
                    [](builder& b, auto&) { gs::dynamic_slice(input(b, "AB"), 0, input(b, "A", dtype::i32), 1); }));
static_assert(tracing::wrong_type("dynamic_slice", "start", "f32", "i32",
                                  [](builder& b, auto&) { gs::dynamic_slice(input(b, "AB"), 0, input(b, ""), 1); }));
static_assert(tracing::out_of_range("dynamic_slice", "size", {0},
                                    [](builder& b, auto&) { gs::dynamic_slice(input(b, "AB"), 0, input(b, "", dtype::i32), 0); }));
static_assert(tracing::out_of_range("dynamic_slice", "size, extent of x", {3, 2}, [](builder& b, auto&) {
  b.options.known.set('A', 2);
  gs::dynamic_slice(input(b, "AB"), 0, input(b, "", dtype::i32), 3);
}));
constexpr bool update_fails(fault expected, const char* update, dtype type = dtype::f32, dtype of_x = dtype::f32) {
  return tracing::problem_of([&](builder& b, auto&) {
           gs::dynamic_update_slice(input(b, "AB", of_x), input(b, update, type), 1, input(b, "", dtype::i32));
         }).what == expected;
}
static_assert(update_fails(fault::nothing, "AU") && update_fails(fault::dims_differ, "CU") && update_fails(fault::rank_mismatch, "U") &&
              update_fails(fault::wrong_type, "AU", dtype::f64) && update_fails(fault::wrong_type, "AU", dtype::f32, dtype::bf16));
static_assert([] {
  for (int t = 0; t < gs::element_types; ++t)
    if (!update_fails(fault::nothing, "AU", dtype(t), dtype(t))) return false;
  return true;
}());

// A cache of keys: updated in place, and nothing moves, with its batch or its positions sharded.
template <class Spec, class Keys, dtype Stored>
inline constexpr auto decode = [](auto& m, auto key, auto at) {
  auto cache = m.variable("cache", "BTM", Spec{}, gs::init::zeros(), Stored);
  m.update(cache, gs::dynamic_update_slice(cache, Stored == dtype::f32 ? key : gs::cast(key, Stored), 1, at));
  return gs::sum<"BTM->BM">(gs::cast<float>(m.updated(cache)));
};
template <class Spec, class Keys, dtype Stored = dtype::f32>
inline constexpr auto& plan = gs::program<decode<Spec, Keys, Stored>, gs::mesh<gs::axis<"x">>, in<"BUM", Keys>, in<"", void, std::int32_t>>::plan;
constexpr bool is_in_place(const gs::plan_view& p) {
  const gs::parameter& cache = *p.find("cache");
  return p.lifetimes[std::size_t(cache.updated)].root == cache.value;
}
using by_batch = P<"x", none, none>;
using by_position = P<none, "x", none>;
using whole = P<none, none, none>;
static_assert(is_in_place(plan<by_batch, by_batch>) && plan<by_batch, by_batch>.collectives() == 0);
static_assert(is_in_place(plan<by_position, whole>) && plan<by_position, whole>.collectives() == 1);  // the sum over positions
static_assert(is_in_place(plan<by_batch, by_batch, dtype::bf16>) && plan<by_batch, by_batch, dtype::bf16>.collectives() == 0);
static_assert(is_in_place(plan<by_position, whole, dtype::bf16>) && plan<by_position, whole, dtype::bf16>.collectives() == 1);

}  // namespace
