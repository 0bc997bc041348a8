// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/checkpoint/manifest.hpp>

#include "../../complaint.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gs = gshard;
namespace detail = gs::detail;

namespace {

gs::manifest usual() {
  gs::manifest m{"0.1.0",    "Eigen", 120, 0xffffffffffffffffu, {{"data", 2}, {"model", 4}}, {{"rate", "0.1"}, {"", "sch\u00f6n"}}, {},
                 {{"events-00000.jsonl", 7, std::string(64, 'e')}}, {}, {}};
  for (int c = 0; c < 256; ++c) m.states["all bytes"] += char(c);
  m.states["empty"] = "";
  m.states["one"] = "x";
  m.tensors = {
      {"bias", gs::dtype::f32, {7}, true}, {"moment \"m\"", gs::dtype::bf16, {3, 0, 5}, false}, {"scalar", gs::dtype::c128, {}, true}};
  m.parts = {{1000, std::string(64, 'a')}, {std::int64_t(1) << 60, std::string(64, '0')}};
  return m;
}
/// With a right digest, as an attacker writes it.
std::string sealed(const std::string& rest) {
  std::string text = std::string(detail::manifest_begin) + std::string(64, '0') + "\"," + rest;
  text.replace(detail::manifest_begin.size(), 64, gs::sha256_of(text));
  return text;
}
std::string refused(const std::string& text) {
  return complaint([&] { detail::parse_manifest(text); });
}

}  // namespace

TEST_CASE("manifest: what is written is read") {
  CHECK(detail::parse_manifest(detail::text_of(usual())) == usual());
  CHECK(detail::parse_manifest(detail::text_of(gs::manifest())) == gs::manifest());
  gs::manifest bad = usual();
  bad.settings["x"] = "\xff";
  CHECK(contains(complaint([&] { detail::text_of(bad); }), "is not UTF-8"));
}

TEST_CASE("manifest: every flipped bit, every truncation, and anything appended is refused") {
  const std::string good = detail::text_of(usual());
  for (std::size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = char(bad[i] ^ (1 << bit));
      if (refused(bad).empty()) FAIL_CHECK("bit " << bit << " of byte " << i << " may change");
    }
  for (std::size_t i = 0; i < good.size(); ++i)
    if (refused(good.substr(0, i)).empty()) FAIL_CHECK("the text may end at byte " << i);
  for (const char* more : {"x", " ", "\n"}) CHECK_FALSE(refused(good + more).empty());
}

TEST_CASE("manifest: hostile ones with a right digest are refused") {
  const std::string good = detail::text_of(usual());
  const std::string rest = good.substr(detail::manifest_begin.size() + 66);
  REQUIRE(sealed(rest) == good);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = rest;
    const std::size_t at = text.find(from);
    REQUIRE(at != text.npos);
    return refused(sealed(text.replace(at, from.size(), to)));
  };
  CHECK(contains(changed("part-00000.bin", "../../etc/passwd"), "is not as gshard writes it"));
  CHECK(contains(changed("part-00000.bin", "part-00001.bin"), "is not as gshard writes it"));
  CHECK(contains(changed("\"bias\"", "\"scalar\""), "twice, or out of order"));
  CHECK(contains(changed("moment \\\"m\\\"", "bias"), "twice, or out of order"));
  CHECK(contains(changed("[7]", "[9223372036854775807]"), "is too large to be counted"));
  CHECK(contains(changed("[7]", "[9223372036854775808]"), "for a number"));
  CHECK(contains(changed("[7]", "[4294967296,4294967296]"), "is too large to be counted"));
  CHECK(contains(changed("[7]", "[0,9223372036854775807,2]"), "is too large to be counted"));
  CHECK(contains(changed("[7]", "[-1]"), "for a number"));
  CHECK(contains(changed("[7]", "[7.0]"), "for a number"));
  CHECK(contains(changed("[7]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"), "with too many dims"));
  CHECK(contains(changed("\"f32\"", "\"f31\""), "unknown element type"));
  CHECK(contains(changed("\"step\":120", "\"step\":4294967296"), "for a number"));
  CHECK(contains(changed("\"step\":120", "\"step\":120,\"step\":120"), "is not as gshard writes it"));
  CHECK(contains(changed("\"step\":120", "\"step\":120,\"more\":1"), "is not as gshard writes it"));
  CHECK(contains(changed("\"step\":120", "\"step\": 120"), "is not as gshard writes it"));
  CHECK(contains(changed("\"gshard.manifest\":1", "\"gshard.manifest\":2"), "newer format"));
  CHECK(contains(changed("\"bytes\":1000", "\"bytes\":-1000"), "for a number"));
  CHECK(contains(changed(std::string(64, 'a'), std::string(64, 'A')), "has no SHA-256 for a part"));
  CHECK(contains(changed(std::string(64, 'a'), "aa"), "has no SHA-256 for a part"));
  CHECK_FALSE(changed("\"eA==\"", "\"eA=\"").empty());
  CHECK_FALSE(changed("\"eA==\"", "\"e!==\"").empty());
  CHECK(contains(refused(sealed("\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}")), "nested too deep"));
  CHECK(contains(refused(sealed("\"a\":" + std::string(100000, '['))), "nested too deep"));
  CHECK_FALSE(refused(sealed("\"a\":1}")).empty());
  CHECK_FALSE(refused(sealed(rest + rest)).empty());
}
