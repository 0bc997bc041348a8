// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/plan.hpp>

#include "../../tracing.hpp"

namespace gs = gshard;
using gs::builder, gs::dtype, gs::fault, gs::symbol;
using tracing::fails, tracing::has_dims, tracing::input;

namespace {

constexpr symbol complex_input(builder& b, std::string_view letters) { return input(b, letters, dtype::c64); }

static_assert(tracing::holds([](builder& b, auto&) {
  const symbol z = gs::complex(input(b, "AB"), input(b, "B"));
  return has_dims(z, "AB") && z.get().type == dtype::c64 && gs::real(z).get().type == dtype::f32 && gs::imag(z).get().type == dtype::f32 &&
         gs::conj(z).get().type == dtype::c64;
}));
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "A", dtype::f64);
  return gs::complex(x, x).get().type == dtype::c128;
}));
// An einsum of the conjugate of a conjugate reads the tensor. Real tensors are their own real parts and conjugates.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol z = complex_input(b, "A"), x = input(b, "A");
  gs::einsum<"a,a->">(gs::conj(gs::conj(z)), z);
  return b.program.nodes.back().input(0) == z.id && gs::conj(x).id == x.id &&
         gs::real(x).id == x.id && gs::imag(x).get().type == dtype::f32;
}));
// Between real and complex tensors, the program must state the part.
static_assert(tracing::wrong_type("cast", 0, "c64", "f32, f64, i32, i64, bool, f16, bf16",
                                  [](builder& b, auto&) { gs::cast(complex_input(b, "A"), dtype::f32); }));
static_assert(tracing::wrong_type("map", 1, "f32", "c64", [](builder& b, auto&) { complex_input(b, "A") + input(b, "A"); }));
static_assert(fails(fault::wrong_type, "complex", [](builder& b, auto&) { gs::complex(complex_input(b, "A"), input(b, "A")); }));
static_assert(tracing::wrong_type("complex", 1, "f64", "f32",
                                  [](builder& b, auto&) { gs::complex(input(b, "A"), input(b, "A", dtype::f64)); }));
static_assert(fails(fault::wrong_type, "conj", [](builder& b, auto&) { gs::conj(input(b, "A", dtype::boolean)); }));
// Complex numbers have no order, and functions of map are real.
static_assert(fails(fault::wrong_type, "map", [](builder& b, auto&) { static_cast<void>(complex_input(b, "A") < complex_input(b, "A")); }));
static_assert(tracing::wrong_type("map", 0, "c64", "f32, f64", [](builder& b, auto&) { gs::relu(complex_input(b, "A")); }));
static_assert(fails(fault::wrong_type, "A->", [](builder& b, auto&) { gs::reduce_max<"A->">(complex_input(b, "A")); }));
static_assert(fails(fault::wrong_type, "softmax", [](builder& b, auto&) { gs::softmax(complex_input(b, "AB")); }));
// A loss is real.
static_assert(tracing::wrong_type("gradients", 0, "c64", "f32, f64", [](builder& b, auto&) {
  const symbol z = complex_input(b, "A");
  gs::gradients(gs::sum(z), gs::list<symbol>{z});
}));
// Half precision is stored and moved, and cast before computing.
static_assert(tracing::holds([](builder& b, auto&) {
  const symbol x = input(b, "AB", dtype::bf16);
  return gs::einsum<"ab->ba">(x).get().type == dtype::bf16 && gs::cast<float>(x).get().type == dtype::f32;
}));
static_assert(tracing::wrong_type("ab->a", 0, "f16", "f32, f64, i32, i64, c64, c128",
                                  [](builder& b, auto&) { gs::einsum<"ab->a">(input(b, "AB", dtype::f16)); }));
static_assert(fails(fault::wrong_type, "map", [](builder& b, auto&) { input(b, "A", dtype::f16) + input(b, "A", dtype::f16); }));
static_assert(fails(fault::wrong_type, "a,a->",
                    [](builder& b, auto&) { gs::einsum<"a,a->">(input(b, "A", dtype::boolean), input(b, "A", dtype::boolean)); }));
// Integers are scaled by integers. They have no quotient.
static_assert(tracing::holds([](builder& b, auto&) { return (3 * input(b, "A", dtype::i64) + 1).get().type == dtype::i64; }));
static_assert(tracing::wrong_type("scale", 0, "i64", "f32, f64, c64, c128", [](builder& b, auto&) { 0.5 * input(b, "A", dtype::i64); }));
static_assert(tracing::wrong_type("scale", 0, "i32", "f32, f64, i64, c64, c128",
                                  [](builder& b, auto&) { 3e9 * input(b, "A", dtype::i32); }));
static_assert(tracing::wrong_type("pad", 0, "i32", "f32, f64, c64, c128, f16, bf16",
                                  [](builder& b, auto&) { gs::pad(input(b, "A", dtype::i32), 0, 1, 1, 0, 1.5); }));
static_assert(tracing::wrong_type("gradients", 1, "i64", "f32, f64, c64, c128, f16, bf16", [](builder& b, auto&) {
  const symbol n = input(b, "A", dtype::i64);
  gs::gradients(gs::sum(gs::cast<float>(n)), gs::list<symbol>{n});
}));
static_assert(fails(fault::wrong_type, "map", [](builder& b, auto&) { input(b, "A", dtype::i64) / input(b, "A", dtype::i64); }));
// Logic accepts only masks.
static_assert(tracing::wrong_type("map", 0, "f32", "bool", [](builder& b, auto&) { gs::logical_and(input(b, "A"), input(b, "A")); }));
static_assert(fails(fault::wrong_type, "map", [](builder& b, auto&) { input(b, "A", dtype::boolean) + input(b, "A", dtype::boolean); }));

}  // namespace
