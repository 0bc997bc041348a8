// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/process/function_ref.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <utility>

namespace gs = gshard;

namespace {
template <class Signature>
using ref = gs::detail::function_ref<Signature>;

int twice(ref<int(int)> f, int x) { return f(f(x)); }
}  // namespace

TEST_CASE("function_ref: calls the object that it refers to, which may change") {
  int calls = 0;
  const auto add = [&](int x) {
    ++calls;
    return x + 3;
  };
  CHECK(twice(add, 1) == 7);
  CHECK(calls == 2);
  auto count = [n = 0]() mutable { return ++n; };
  const ref<int()> counts = count;
  CHECK(counts() == 1);
  CHECK(count() == 2);
  const ref<int()> copy = counts;
  CHECK(copy() == 3);
  const ref<void()> ignores = count;
  ignores();
  CHECK(count() == 5);
}

TEST_CASE("function_ref: arguments are forwarded") {
  const auto take = [](std::unique_ptr<int> p, int& x) -> int& {
    x = *p;
    return x;
  };
  const ref<int&(std::unique_ptr<int>, int&)> f = take;
  int x = 0;
  CHECK(&f(std::make_unique<int>(4), x) == &x);
  CHECK(x == 4);
}

static_assert(!std::is_constructible_v<ref<int(int)>, int>);
static_assert(!std::is_constructible_v<ref<int(int)>, decltype([](const char*) { return 0; })>);
