// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/files/sha256.hpp>

#include <doctest/doctest.h>

#include <string>

namespace gs = gshard;

TEST_CASE("SHA-256: the vectors of FIPS 180-4") {
  CHECK(gs::sha256_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(gs::sha256_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(gs::sha256_of(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256: a stream in parts, and a digest in the middle of it") {
  gs::sha256 hash;
  hash.add("a");
  CHECK(hash.hex() == gs::sha256_of("a"));
  hash.add("bc");
  CHECK(hash.hex() == gs::sha256_of("abc"));
}
