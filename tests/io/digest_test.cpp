// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/digest.hpp>

#include <doctest/doctest.h>

#include <string>

namespace gs = gshard;

TEST_CASE("digest: XXH3-128 in the usual notation") {
  CHECK(gs::digest().hex() == "99aa06d3014798d86001c324468d497f");
}

TEST_CASE("digest: how a stream is split into pieces does not matter, every byte does") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += char(i * 7 + i / 256);
  gs::digest whole;
  whole.add(text);
  CHECK(whole.hex().size() == gs::digest::hex_digits);
  for (std::size_t piece = 1; piece < text.size(); piece = piece * 2 + 1) {
    gs::digest d;
    for (std::size_t at = 0; at < text.size(); at += piece) d.add(text.substr(at, piece));
    CHECK(d.hex() == whole.hex());
    CHECK(d.hex() == whole.hex());  // hex() changes nothing
    std::string other = text;
    other[piece] = char(other[piece] ^ 1);
    gs::digest changed;
    changed.add(other);
    CHECK(changed.hex() != whole.hex());
  }
}
