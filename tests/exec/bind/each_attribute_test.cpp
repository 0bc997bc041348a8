// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/each_attribute.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <type_traits>

namespace gs = gshard;

TEST_CASE("every attribute that is a number is listed once, under its own name") {
  std::set<std::string> names;
  gs::attributes a;
  gs::detail::for_each_attribute([&](const char* name, auto member) {
    CHECK(names.insert(name).second);
    using type = std::remove_reference_t<decltype(a.*member)>;
    const type other = type(1) == a.*member ? type(0) : type(1);
    CHECK(a.*member != other);  // no member is listed twice
    a.*member = other;
  });
  CHECK(names.size() == 20);
  CHECK(a.dim == 1);
  CHECK(a.combine == gs::reduction::max);
  CHECK(a.inside);
  CHECK(a.factor == 0);
}
