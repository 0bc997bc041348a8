// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/process/callback.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <utility>

using gshard::callback;

TEST_CASE("callback: empty until a function object is assigned, and after null is") {
  callback<int(int)> twice;
  CHECK(!twice);
  twice = [](int x) { return 2 * x; };
  CHECK(twice);
  CHECK(twice(4) == 8);
  twice = nullptr;
  CHECK(!twice);
}

TEST_CASE("callback: passes references and objects that only move, and keeps what it captures") {
  const auto alive = std::make_shared<int>(0);
  callback<void(std::string&, std::unique_ptr<int>)> append = [alive](std::string& to, std::unique_ptr<int> n) { to += std::to_string(*n); };
  CHECK(alive.use_count() == 2);
  std::string text;
  append(text, std::make_unique<int>(7));
  CHECK(text == "7");
  append = {};
  CHECK(alive.use_count() == 1);
}

TEST_CASE("callback: copies share one function object") {
  const callback<int()> first = [n = 0]() mutable { return ++n; };
  const auto second = first;
  CHECK(first() == 1);
  CHECK(second() == 2);
  auto third = std::move(second);
  CHECK(third() == 3);
}

TEST_CASE("callback: takes no function object of another signature") {
  CHECK(!std::constructible_from<callback<int(int)>, std::string>);
  CHECK(!std::constructible_from<callback<int(int)>, void (*)(int)>);
  CHECK(std::constructible_from<callback<int(int)>, long (*)(int)>);
}

namespace {
int doubled(int x) { return 2 * x; }
}  // namespace

TEST_CASE("callback: takes the name of a function, and is empty after a move") {
  callback<int(int)> twice = doubled;
  CHECK(twice(4) == 8);
  const callback<int(int)> other = std::move(twice);
  CHECK(other(5) == 10);
  CHECK(!twice);  // NOLINT(bugprone-use-after-move)
}

TEST_CASE("callback: a null pointer to a function and an empty std::function are no function objects") {
  int (*const none)(int) = nullptr;
  CHECK(!callback<int(int)>(none));
  CHECK(!callback<int(int)>(std::function<int(int)>()));
  CHECK(!callback<int(int)>(callback<long(int)>()));
  CHECK(callback<int(int)>(std::function<int(int)>(doubled))(3) == 6);
}

TEST_CASE("callback: may assign to itself while it runs") {
  callback<int()> once;
  const auto alive = std::make_shared<int>(5);
  once = [&once, kept = alive] {
    once = nullptr;
    return *kept;
  };
  CHECK(once() == 5);
  CHECK(!once);
  CHECK(alive.use_count() == 1);
}
