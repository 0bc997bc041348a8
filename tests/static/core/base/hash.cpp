// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/hash.hpp>

namespace gs = gshard;
using hash32 = gs::fnv1a<std::uint32_t>;
using hash64 = gs::fnv1a<std::uint64_t>;

// The authors' test vectors.
static_assert(hash32().value() == 0x811c9dc5u);
static_assert(hash32().add("a").value() == 0xe40c292cu);
static_assert(hash32().add("foobar").value() == 0xbf9cf968u);
static_assert(hash64().value() == 0xcbf29ce484222325u);
static_assert(hash64().add("a").value() == 0xaf63dc4c8601ec8cu);
static_assert(hash64().add("foobar").value() == 0x85944171f73967e8u);

// Text may come in pieces. Numbers and their order change the hash.
static_assert(hash64().add("foo").add("bar").value() == hash64().add("foobar").value());
static_assert(hash64().add(std::uint64_t{1}).add(std::uint64_t{2}).value() != hash64().add(std::uint64_t{2}).add(std::uint64_t{1}).value());
static_assert(hash64().add(std::uint64_t{0}).value() != hash64().value());

// Every bit of a number reaches the low half.
static_assert([] {
  for (int bit = 0; bit < 64; ++bit)
    if (std::uint32_t(hash64().add(std::uint64_t{1} << bit).value()) == std::uint32_t(hash64().add(std::uint64_t{0}).value())) return false;
  return true;
}());
