// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/binder.hpp>
#include <gshard/kernel_headers.hpp>

#include "../bound_product.hpp"

#include <gshard/exec/backend/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace gs = gshard;

// A header-only program compiles the collectives of its plan only.
constexpr const auto& made = gs::kernels_of<bound_product::program>.collectives->make;
static_assert(made[std::size_t(gs::detail::move_kind::all_reduce)] != nullptr);
static_assert(made[std::size_t(gs::detail::move_kind::ragged)] == nullptr);

TEST_CASE("binder: every step has its collective, or its kernels on all devices") {
  const gs::any_cluster on = gs::simulate<bound_product::program::mesh>(2);
  gs::parameter_store store(on);
  const auto p = bound_product::unbound(on, store);
  gs::detail::binder(*p, bound_product::sizes, {}, {});
  REQUIRE(p->steps.size() == p->plan.steps.size());
  for (std::size_t i = 0; i < p->steps.size(); ++i) {
    const bool collective = p->plan.steps[i].kind->collective;
    CHECK((p->steps[i].moves || p->early.has(i)) == collective);
    CHECK(p->steps[i].actions.size() == (p->plan.steps[i].kind == gs::op::einsum ? 2 : 0));
  }
  REQUIRE(p->arena.size() == 2);
  for (const gs::port& output : p->plan.outputs)
    for (std::size_t d = 0; d < 2; ++d) {
      CHECK(p->value(output.value).data[d] >= p->arena[d].data());
      CHECK(p->value(output.value).data[d] + p->value(output.value).bytes(d) <= p->arena[d].data() + p->arena[d].size());
    }
  REQUIRE(store.find("w") != nullptr);
  CHECK(p->value(p->plan.parameters[0].value).data == store.find("w")->value.data);
  CHECK(store.number() == p->number);
  CHECK(p->agreements.begin < p->steps.size());
}

TEST_CASE("binder: inputs and outputs in memory of the caller need no other memory") {
  const gs::any_cluster on = gs::simulate<bound_product::program::mesh>(2);
  std::vector<float> x(6), more(6), y(6), other(6);
  const auto bytes = [](std::vector<float>& v) { return reinterpret_cast<std::byte*>(v.data()); };
  const auto p = bound_product::unbound(on, gs::parameter_store(on),
                                        {{"input 0", bound_product::program::plan.inputs[0].value, false, {bytes(x), bytes(more)}},
                                         {"output 0", bound_product::program::plan.outputs[0].value, true, {bytes(y), bytes(other)}}});
  gs::detail::binder(*p, bound_product::sizes, {}, {});
  CHECK(p->value(p->plan.inputs[0].value).data == std::vector{bytes(x), bytes(more)});
  CHECK(p->value(p->plan.outputs[0].value).data == std::vector{bytes(y), bytes(other)});
  CHECK(p->lent_copies.empty());
}

TEST_CASE("binder: after an error the store is as before") {
  const gs::any_cluster on = gs::simulate<bound_product::program::mesh>(2), other = gs::simulate<bound_product::program::mesh>(2);
  gs::parameter_store store(on);
  const auto p = bound_product::unbound(on, store);
  CHECK_THROWS_WITH_AS(gs::detail::binder(*p, bound_product::sizes, "no input", {}), "no input", gs::error);
  const auto q = bound_product::unbound(on, store);
  CHECK_THROWS_WITH_AS(gs::detail::binder(*q, {{'B', 2}, {'M', 6}}, {}, {}), "program: dim 'H' is given no extent", gs::error);
  CHECK(store.find("w") == nullptr);
  CHECK(store.number() == 0);
  const auto elsewhere = bound_product::unbound(other, store);
  CHECK_THROWS_WITH_AS(gs::detail::binder(*elsewhere, bound_product::sizes, {}, {}),
                       "program: its parameter store belongs to another cluster", gs::error);
}
