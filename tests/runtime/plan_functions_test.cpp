// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/runtime/plan_functions.hpp>

#include <gshard/all_functions.hpp>
#include <gshard/core/base/dual.hpp>
#include <gshard/core/trace/map.hpp>

#include "../complaint.hpp"

#include <doctest/doctest.h>

#include <string>

namespace gs = gshard;

namespace {
inline constexpr auto cubed = [](auto v) { return v * v * v; };
}

TEST_CASE("functions are found by name, and names by function") {
  const gs::plan_functions library;
  CHECK(library.find("softmax.exponential") != nullptr);
  CHECK(library.name_of(gs::pointwise_add) == "add");
  CHECK(library.name_of(gs::pointwise_identity) == "identity");
  CHECK(library.find_custom("slots_of_chunk") != nullptr);
  CHECK(library.find("cubed") == nullptr);
  const gs::plan_functions mine = gs::plan_functions().map<cubed, 1>("cubed");
  CHECK(mine.find("cubed") == &gs::pointwise_of<cubed, 1>);
  CHECK(mine.name_of(gs::pointwise_of<cubed, 1>.derivative(0)) == "cubed'0");
  CHECK(contains(complaint([] { gs::plan_functions().map<cubed, 1>("add"); }), "\"add\" is empty or taken"));
}

TEST_CASE("every function of the library keeps its name") {
  const gs::plan_functions library;
  for (const gs::detail::named_function& f : gs::all_functions) {
    CAPTURE(f.name);
    CHECK(library.name_of(*f.function) == f.name);
    for (int i = 0; f.function->differentiable && i < f.function->arity; ++i)
      CHECK(library.name_of(f.function->derivative(i)) == std::string(f.name) + "'" + std::to_string(i));
  }
}

TEST_CASE("any name stands for a function that cannot run") {
  const gs::plan_functions any = gs::plan_functions::of_any_name();
  const gs::pointwise* const f = any.find("theirs");
  REQUIRE(f != nullptr);
  CHECK(any.find("theirs") == f);
  CHECK(any.name_of(*f) == "theirs");
  CHECK(any.find("ours") != f);
  CHECK(any.find_custom("op")->name == "op");
  CHECK(contains(complaint([&] { f->f32(nullptr, nullptr, 0); }), "cannot run"));
}
