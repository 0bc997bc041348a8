// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/files/packets.hpp>

#include "../../complaint.hpp"

#include <doctest/doctest.h>

#include <string>

namespace gs = gshard;
using gs::detail::texts;

TEST_CASE("packets: lists of texts, of any bytes") {
  for (const texts& list : {texts{}, texts{""}, texts{"a", "", std::string("\0\xff", 2)}, texts(1000, "x")})
    CHECK(gs::detail::unpacked(gs::detail::packed(list)) == list);
  const std::string good = gs::detail::packed({"abc", "d"});
  for (std::size_t n = 0; n < good.size(); ++n)
    if (n != 0 && n != 11) CHECK(contains(complaint([&] { gs::detail::unpacked(good.substr(0, n)); }), "is damaged"));
  gs::loopback on(1);
  CHECK(gs::detail::gather_texts(on, {"a"}) == std::vector<texts>{{"a"}});
}
