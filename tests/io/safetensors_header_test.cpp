// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/safetensors_header.hpp>

#include "scratch.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

/// A header of one tensor "a".
std::string one(const std::string& fields) {
  return R"({"a":{)" + fields + "}}";
}
std::string shaped(const std::string& shape, const std::string& offsets) {
  return one(R"("dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets);
}
/// `"name":{...}` of bytes [begin, end).
std::string bytes(const std::string& name, int begin, int end) {
  return '"' + name + R"(":{"dtype":"U8","shape":[)" + std::to_string(end - begin) + R"(],"data_offsets":[)" +
         std::to_string(begin) + ',' + std::to_string(end) + "]}";
}
std::string refusal(const std::string& text, std::int64_t data_bytes = 0) {
  return complaint([&] { gs::parse_safetensors_header(text, data_bytes); });
}

}  // namespace

TEST_CASE("safetensors_header: what is written is what is read") {
  const std::vector<gs::array_info> arrays{{"z\"\\\n\u00e9", gs::array_type::f32, {2, 3}},
                                           {"a", gs::array_type::u8, {3}},
                                           {"nothing", gs::array_type::f64, {0, 5}},
                                           {"scalar", gs::array_type::i32, {}},
                                           {"", gs::array_type::f64, {1, 1, 1, 1, 1, 1, 1, 1}}};
  const std::map<std::string, std::string> metadata{
      {"", "x"}, {"key", "text\twith \"everything\" \u6587"}, {"z", ""}};
  const std::string text = gs::safetensors_header_text(arrays, metadata);
  CHECK(text.size() % 8 == 0);
  CHECK(text.starts_with(gs::safetensors_header::digest_prefix));
  const gs::safetensors_header header = gs::parse_safetensors_header(text, 24 + 3 + 0 + 4 + 8);
  CHECK(header.arrays == arrays);
  CHECK(header.metadata == metadata);
  CHECK(header.begin == std::vector<std::int64_t>{0, 24, 27, 27, 31});
  for (std::size_t i = 0; i < arrays.size(); ++i) CHECK(header.find(arrays[i].name) == i);
  CHECK(header.find("b") == arrays.size());
}

TEST_CASE("safetensors_header: as other tools write it") {
  const gs::safetensors_header header = gs::parse_safetensors_header(
      "{ \"b\": {\"data_offsets\":[4, 8], \"shape\": [1], \"dtype\": \"I32\"},\n\t" + bytes("a", 0, 4) +
          "}   ",
      8);
  REQUIRE(header.arrays.size() == 2);
  CHECK(header.arrays[0].name == "a");
  CHECK(header.arrays[1] == gs::array_info{"b", gs::array_type::i32, {1}});
  CHECK(gs::parse_safetensors_header("{}", 0).arrays.empty());
  CHECK(gs::parse_safetensors_header(R"({"__metadata__":{}})", 0).metadata.empty());
  // Tensors without elements between others, also several at one offset.
  CHECK(gs::parse_safetensors_header(
            '{' + bytes("y", 4, 4) + ',' + bytes("a", 0, 4) + ',' + bytes("x", 4, 4) + '}', 4)
            .arrays.size() == 3);
}

TEST_CASE("safetensors_header: hostile ones are refused with the reason") {
  struct hostile {
    std::string text;
    std::int64_t data_bytes;
    std::string reason;
  };
  const std::string big = "9223372036854775807";
  const std::vector<hostile> cases{
      {"", 0, "does not start with {"},
      {" {}", 0, "does not start with {"},
      {"\xef\xbb\xbf{}", 0, "does not start with {"},
      {"[]", 0, "does not start with {"},
      {"1", 0, "does not start with {"},
      {"{", 0, "is not JSON: byte 2"},
      {"{}x", 0, "is not JSON"},
      {"{}{}", 0, "is not JSON"},
      {std::string("{}\0PK", 5), 0, "holds a zero byte"},
      {"{'a':1}", 0, "is not JSON"},
      {"{} // comment", 0, "is not JSON"},
      {"{\"\xff\":1}", 0, "is not JSON"},
      {"{\"\xc0\xaf\":1}", 0, "is not JSON"},
      {R"({"a":1})", 0, "\"a\" is a number, not an object"},
      {R"({"a":null})", 0, "\"a\" is null, not an object"},
      {R"({"a":[[[[[[]]]]]]})", 0, "\"a\" is a list, not an object"},
      {R"({"__metadata__":[]})", 0, "\"__metadata__\" is a list, not an object"},
      {R"({"__metadata__":{"k":1}})", 0, "metadata \"k\" is a number, not a text"},
      {R"({"__metadata__":{"k":{}}})", 0, "metadata \"k\" is an object, not a text"},
      {R"({"__metadata__":{"k":"1","k":"2"}})", 0, "metadata \"k\" occurs twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "\"__metadata__\" occurs twice"},
      {one(""), 0, "lacks its dtype, shape or data_offsets"},
      {one(R"("dtype":"F32","shape":[])"), 0, "lacks its dtype, shape or data_offsets"},
      {one(R"("dtype":"F32","dtype":"F32")"), 0, "two fields \"dtype\""},
      {one(R"("shape":[],"shape":[])"), 0, "two fields \"shape\""},
      {one(R"("color":"red")"), 0, "a field \"color\""},
      {one(R"("dtype":"C64","shape":[],"data_offsets":[0,2])"), 2, "dtype \"C64\", which is not one of"},
      {one(R"("dtype":4)"), 0, "a number in its dtype"},
      {one(R"("dtype":["F32"])"), 0, "a list in its dtype"},
      {one(R"("shape":"2,3")"), 0, "a text in its shape"},
      {one(R"("shape":{})"), 0, "an object in its shape"},
      {one(R"("shape":[[2]])"), 0, "a list in its shape"},
      {one(R"("shape":[true])"), 0, "true or false in its shape"},
      {shaped("[-1]", "[0,0]"), 0, "a negative number in its shape"},
      {shaped("[2.0]", "[0,8]"), 8, "the number \"2.0\" in its shape"},
      {shaped("[1e400]", "[0,8]"), 8, "is not JSON"},
      {shaped("[9223372036854775808]", "[0,8]"), 8, "a number of 2^63 or more in its shape"},
      {shaped("[18446744073709551616]", "[0,8]"), 8, "the number \"18446744073709551616\" in its shape"},
      {shaped("[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, "has more than 8 dims"},
      {shaped("[4294967296,4294967296]", "[0,0]"), 0, "too large to be counted"},      // 2^64 elements
      {shaped("[2305843009213693953,2,2]", "[0,16]"), 16, "too large to be counted"},  // 2^63 + 4 elements
      {shaped("[4611686018427387905]", "[0,4]"), 4, "too large to be counted"},        // 2^64 + 4 bytes
      {shaped("[" + big + "," + big + ",0]", "[0,0]"), 0, "too large to be counted"},
      {shaped("[0," + big + "]", "[0,0]"), 0, "too large to be counted"},
      {shaped("[1]", "[0]"), 4, "fewer than two data_offsets"},
      {shaped("[1]", "[0,4,8]"), 4, "more than two data_offsets"},
      {shaped("[1]", "[-4,0]"), 4, "a negative number in its data_offsets"},
      {shaped("[1]", "[0,8]"), 8, "is F32[1], but its data_offsets are 0 and 8"},
      {shaped("[1]", "[4,0]"), 4, "its data_offsets are 4 and 0"},
      {shaped("[1]", "[4,8]"), 8, "begins at byte 4 of the data"},  // a hole before
      {shaped("[1]", "[0,4]"), 5, "have 4 bytes, the file has 5"},  // a hole after
      {shaped("[1]", "[0,4]"), 3, "have 4 bytes, the file has 3"},
      {shaped("[1]", "[" + big + "," + big + "]"), 3, "its data_offsets are"},
      {shaped("[0]", "[" + big + "," + big + "]"), 0, "begins at byte " + big},
      {"{}", 1, "have 0 bytes, the file has 1"},
      {'{' + bytes("a", 0, 4) + ',' + bytes("b", 5, 8) + '}', 8, "\"b\" begins at byte 5"},  // hole
      {'{' + bytes("a", 0, 4) + ',' + bytes("b", 3, 8) + '}', 8, "\"b\" begins at byte 3"},  // overlap
      {'{' + bytes("a", 0, 8) + ',' + bytes("b", 0, 8) + '}', 8, "begins at byte 0"},
      {'{' + bytes("a", 0, 8) + ',' + bytes("b", 4, 4) + '}', 8,
       "\"b\" begins at byte 4"},  // nothing, inside another
      {'{' + bytes("a", 0, 4) + ',' + bytes("a", 4, 8) + '}', 8, "\"a\" occurs twice"},
      {'{' + bytes("a", 0, 0) + ',' + bytes("a", 0, 0) + '}', 0, "\"a\" occurs twice"},
  };
  for (const hostile& h : cases) {
    CAPTURE(h.text);
    const std::string said = refusal(h.text, h.data_bytes);
    CAPTURE(said);
    CHECK(said.starts_with("the header: "));
    CHECK(contains(said, h.reason));
  }
  CHECK(contains(refusal('{' + std::string(100'000'000, ' ')), "has 100000001 bytes, more than 100000000"));
  CHECK(contains(refusal("{\"a\":" + std::string(1'000'000, '[')), "\"a\" is a list"));
  CHECK(refusal(R"({")" + std::string(1'000'000, 'x') + "\u0007\":1}").size() < 300);
}

TEST_CASE("safetensors_header: what cannot be read is not written") {
  const auto refused = [](const std::vector<gs::array_info>& arrays,
                          const std::map<std::string, std::string>& metadata = {}) {
    return complaint([&] {
      const std::string text = gs::safetensors_header_text(arrays, metadata);
      std::int64_t total = 0;
      for (const gs::array_info& a : arrays) total += a.bytes();
      gs::parse_safetensors_header(text, total);
    });
  };
  using enum gs::array_type;
  CHECK(refused({{"a", f32, {1}}}).empty());
  CHECK(contains(refused({{"a", f32, {1}}, {"a", f32, {2}}}), "\"a\" occurs twice"));
  CHECK(contains(refused({{"__metadata__", f32, {1}}}), "\"__metadata__\" occurs twice"));
  CHECK(contains(refused({{"a", f32, {-1}}}), "cannot be counted"));
  CHECK(contains(refused({{"a", f32, {std::int64_t(1) << 62}}}), "cannot be counted"));
  CHECK(contains(refused({{"a", u8, {std::int64_t(1) << 62}}, {"b", u8, {std::int64_t(1) << 62}}}),
                 "cannot be counted"));
  CHECK(contains(refused({{"\xff", f32, {1}}}), "is not UTF-8"));
  CHECK(contains(refused({}, {{"k", "\xff"}}), "is not UTF-8"));
  CHECK(contains(refused({}, {{"gshard.xxh3_128", ""}}), "occurs twice"));
  CHECK(contains(refused({{"a", f32, std::vector<std::int64_t>(9, 1)}}), "more than 8 dims"));
}

TEST_CASE("safetensors_header: whatever random damage leaves is refused, or consistent") {
  const std::string good = gs::safetensors_header_text(
      {{"a", gs::array_type::f32, {2, 3}}, {"b", gs::array_type::u8, {8}}, {"c", gs::array_type::f64, {}}},
      {{"key", "value"}});
  const std::string alphabet = "{}[]\",:0123456789-.eE \\utrueflsnabcF";
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    std::string text = good;
    for (std::uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % text.size(), from = random() % text.size();
      const std::uint64_t any = random();
      switch (random() % 4) {
        case 0:
          text[at] = alphabet[any % alphabet.size()];
          break;
        case 1:
          text[at] = char(any);
          break;
        case 2:
          text.erase(at, 1 + any % 9);
          break;
        default:
          text.insert(at, text.substr(from, any % 40));
      }
      if (text.empty()) text = "{";
    }
    try {
      const gs::safetensors_header header = gs::parse_safetensors_header(text, 40);
      std::int64_t end = 0;
      for (std::size_t i = 0; i < header.arrays.size(); ++i) {
        CHECK(header.begin[i] == end);
        CHECK(header.find(header.arrays[i].name) == i);
        end += header.arrays[i].bytes();
      }
      CHECK(end == 40);
    } catch (const gs::error& e) {
      CHECK(std::string(e.what()).starts_with("the header: "));
      ++refused;
    }
  }
  CHECK(refused > 10'000);
}

TEST_CASE("safetensors_header: 1e5 tiny tensors are read, 1e6 entries are refused") {
  std::vector<gs::array_info> arrays;
  for (int i = 0; i < 100'000; ++i)
    arrays.push_back({"layer." + std::to_string(i * 7919 % 100'000), gs::array_type::u8, {1}});
  const gs::safetensors_header header =
      gs::parse_safetensors_header(gs::safetensors_header_text(arrays, {}), 100'000);
  CHECK(header.arrays == arrays);
  CHECK(header.find("layer.7919") == 1);

  std::string tensors = "{", texts = R"({"__metadata__":{)";
  for (int i = 0; i < 1'000'000; ++i) {
    tensors += (i == 0 ? "" : ",") + bytes(std::to_string(i), i, i + 1);
    texts += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":"")";
  }
  CHECK(refusal(tensors + '}', 1'000'000) == "the header: has more than 262144 entries");
  CHECK(refusal(texts + "}}") == "the header: has more than 262144 entries");
}
