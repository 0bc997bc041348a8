// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/models/ring_attention.hpp>

#include "../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::fault, gs::symbol;
using tracing::input;

namespace {

constexpr gs::mesh_shape ring = gs::mesh<gs::axis<"seq", 3>, gs::axis<"many">>::shape;

/// The fault of f(builder).
template <class F>
constexpr fault fault_of(F f) {
  builder b = tracing::on(ring);
  f(b);
  return b.program.problem.what;
}

static_assert(fault_of([](builder& b) {
                const symbol y = gs::nn::ring_attention<"seq">(input(b, "BTHRD"), input(b, "BTHD"), input(b, "BTHD"), {.causal = true});
                if (!tracing::has_dims(y, "BTHRD")) b.fail(fault::dims_differ, "test");
              }) == fault::nothing);
static_assert(fault_of([](builder& b) { gs::nn::ring_attention<"many">(input(b, "THD"), input(b, "THD"), input(b, "THD")); }) ==
              fault::axis_not_static);
static_assert(fault_of([](builder& b) { gs::nn::ring_attention<"sq">(input(b, "THD"), input(b, "THD"), input(b, "THD")); }) ==
              fault::unknown_axis);
static_assert(fault_of([](builder& b) { gs::nn::ring_attention<"seq">(input(b, "HD"), input(b, "HD"), input(b, "HD")); }) ==
              fault::rank_mismatch);
static_assert(fault_of([](builder& b) { gs::nn::ring_attention<"seq">(input(b, "QHD"), input(b, "THD"), input(b, "THD")); }) ==
              fault::dims_differ);
static_assert(fault_of([](builder& b) {
                gs::nn::ring_attention<"seq">(input(b, "BTHD"), input(b, "BTHD"), input(b, "BTHD"), {.mask = input(b, "T")});
              }) == fault::rank_mismatch);

}  // namespace
