// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/safetensors.hpp>

#include <gshard/core/base/hash.hpp>

#include "scratch.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

const std::vector<gs::array_info> arrays{{"w", gs::array_type::f32, {3, 2}},
                                         {"d", gs::array_type::f64, {2}},
                                         {"none", gs::array_type::f32, {0}},
                                         {"bytes", gs::array_type::u8, {5}},
                                         {"i", gs::array_type::i32, {}}};
const std::map<std::string, std::string> metadata{{"step", "12"}, {"author", "\u00c9va"}};

std::string random_text(std::uint64_t seed, std::int64_t n) {
  std::mt19937_64 random(seed);
  std::string text;
  for (std::int64_t i = 0; i < n; ++i) text += char(random());
  return text;
}
std::string data_of(const gs::array_info& a) {
  return random_text(gs::fnv1a<std::uint64_t>().add(a.name).value(), a.bytes());
}
std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

void write(const std::string& path) {
  gs::safetensors_writer file(path, arrays, metadata);
  for (const gs::array_info& a : arrays) file.write(bytes(data_of(a)));
  file.commit();
}
std::string read(const gs::safetensors_reader& file, const gs::array_info& a) {
  std::string text(std::size_t(a.bytes()), ' ');
  file.read(a.name, std::as_writable_bytes(std::span(text)));
  return text;
}
std::string refusal(const std::string& path, const gs::safetensors_options& options = {}) {
  return complaint([&] { gs::safetensors_reader(path, options); });
}

}  // namespace

TEST_CASE("safetensors: what is written is what is read") {
  const scratch dir;
  write(dir / "f");
  CHECK(dir.entries() == 1);
  const gs::safetensors_reader file(dir / "f");
  CHECK(file.arrays() == arrays);
  CHECK(file.metadata() == metadata);
  for (const gs::array_info& a : arrays) {
    CHECK(*file.find(a.name) == a);
    CHECK(read(file, a) == data_of(a));
    for (std::int64_t from = 0; from <= a.bytes(); ++from) {
      std::string part(std::size_t(a.bytes() - from) / 2, ' ');
      file.read(a.name, std::as_writable_bytes(std::span(part)), from);
      CHECK(part == data_of(a).substr(std::size_t(from), part.size()));
    }
  }
  CHECK(file.find("x") == nullptr);
  std::byte more[7];
  CHECK(contains(complaint([&] { file.read("x", more); }), "has no tensor \"x\""));
  CHECK(contains(complaint([&] { file.read("bytes", more); }), "\"bytes\" has 5 bytes, but 7 from byte 0"));
  CHECK(contains(complaint([&] { file.read("bytes", std::span(more, 1), 5); }), "but 1 from byte 5"));
  CHECK(contains(complaint([&] { file.read("bytes", std::span(more, 0), -1); }), "from byte -1"));
}

TEST_CASE("safetensors: the bytes do not depend on how the data came") {
  const scratch dir;
  write(dir / "f");
  std::string data;
  for (const gs::array_info& a : arrays) data += data_of(a);
  for (const std::size_t piece : {1u, 3u, 1000u}) {
    gs::safetensors_writer file(dir / "g", arrays, metadata);
    for (std::size_t at = 0; at < data.size(); at += piece) file.write(bytes(data.substr(at, piece)));
    file.commit();
    CHECK(content_of(dir / "g") == content_of(dir / "f"));
  }
}

TEST_CASE("safetensors: too much or too little data is an error, and no file") {
  const scratch dir;
  write(dir / "f");
  const std::string before = content_of(dir / "f");
  {
    gs::safetensors_writer file(dir / "f", arrays);
    CHECK(contains(complaint([&] { file.commit(); }), "49 bytes of data were not written"));
    file.write(bytes(random_text(1, 48)));
    CHECK(contains(complaint([&] { file.commit(); }), "1 bytes of data were not written"));
    CHECK(contains(complaint([&] { file.write(bytes("12")); }), "2 bytes given, 1 of data to come"));
  }
  CHECK(contains(complaint([&] {
                   gs::safetensors_writer(dir / "f", {arrays[0], arrays[0]});
                 }),
                 (dir / "f") + ": cannot be written: the header: \"w\" occurs twice"));
  CHECK(content_of(dir / "f") == before);
  CHECK(dir.entries() == 1);
}

TEST_CASE("safetensors: every bit counts") {
  const scratch dir;
  write(dir / "f");
  const std::string good = content_of(dir / "f");
  REQUIRE(refusal(dir / "f").empty());
  for (std::size_t at = 0; at < good.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = char(bad[at] ^ (1 << bit));
      set_content(dir / "bad", bad);
      const std::string said = refusal(dir / "bad");
      CAPTURE(at);
      CAPTURE(bit);
      CHECK(said.starts_with((dir / "bad") + ": "));
      CHECK_FALSE(contains(said, "\n"));
    }
}

TEST_CASE("safetensors: every length but its own is refused") {
  const scratch dir;
  write(dir / "f");
  const std::string good = content_of(dir / "f");
  for (std::size_t length = 0; length < good.size(); ++length) {
    CAPTURE(length);
    set_content(dir / "bad", good.substr(0, length));
    CHECK(refusal(dir / "bad").starts_with((dir / "bad") + ": "));
    CHECK_FALSE(refusal(dir / "bad", {.verify = false}).empty());
  }
  for (const std::size_t more : {1u, 8u, 512u}) {
    set_content(dir / "bad", good + good.substr(0, more));
    CHECK_FALSE(refusal(dir / "bad").empty());
    CHECK_FALSE(refusal(dir / "bad", {.verify = false}).empty());
  }
}

TEST_CASE("safetensors: blocks that were lost, swapped or come from another file are found") {
  const scratch dir;
  const std::vector<gs::array_info> large{{"a", gs::array_type::f32, {1500}},
                                          {"b", gs::array_type::f32, {1500}}};
  for (const std::uint64_t seed : {1u, 2u}) {
    gs::safetensors_writer file(dir / std::to_string(seed), large);
    file.write(bytes(random_text(seed, 12'000)));
    file.commit();
  }
  const std::string good = content_of(dir / "1"), other = content_of(dir / "2");
  REQUIRE(good.size() == other.size());
  constexpr std::size_t block = 512;
  for (std::size_t i = 0; i < good.size() / block; ++i) {
    CAPTURE(i);
    std::string bad = good;
    bad.replace(i * block, block, block, '\0');
    set_content(dir / "bad", bad);
    CHECK_FALSE(refusal(dir / "bad").empty());
    bad = good;
    bad.replace(i * block, block, other, i * block, block);
    set_content(dir / "bad", bad);
    CHECK_FALSE(refusal(dir / "bad").empty());
    for (std::size_t j = 0; j < i; ++j) {
      bad = good;
      std::swap_ranges(bad.begin() + std::ptrdiff_t(i * block), bad.begin() + std::ptrdiff_t((i + 1) * block),
                       bad.begin() + std::ptrdiff_t(j * block));
      set_content(dir / "bad", bad);
      CHECK_FALSE(refusal(dir / "bad").empty());
    }
  }
  // The data of one under the header of the other: shapes fit, the digest does not.
  set_content(dir / "bad", good.substr(0, good.size() - 12'000) + other.substr(other.size() - 12'000));
  CHECK(refusal(dir / "bad") ==
        (dir / "bad") + ": is damaged: its content does not match its digest gshard.xxh3_128");
}

TEST_CASE("safetensors: wrong header lengths") {
  const scratch dir;
  write(dir / "f");
  const std::string good = content_of(dir / "f");
  for (const std::uint64_t length :
       {std::uint64_t(0), std::uint64_t(1), std::uint64_t(good.size() - 8), std::uint64_t(good.size()),
        std::uint64_t(100'000'000), std::uint64_t(100'000'001), std::uint64_t(1) << 63, ~std::uint64_t(0)}) {
    CAPTURE(length);
    std::string bad = good;
    std::memcpy(bad.data(), &length, sizeof length);
    set_content(dir / "bad", bad);
    const std::string said = refusal(dir / "bad", {.verify = false});
    CHECK_FALSE(said.empty());
    if (length > 100'000'000)
      CHECK(contains(said, "more than 100000000"));
    else if (length >= good.size())
      CHECK(contains(said, "is truncated"));
  }
}

TEST_CASE("safetensors: files from other tools are read on request") {
  const scratch dir;
  const std::string header =
      R"({"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"__metadata__":{"format":"pt"}})";
  const std::uint64_t length = header.size();
  std::string content(reinterpret_cast<const char*>(&length), sizeof length);
  content += header + "ab";
  set_content(dir / "f", content);
  CHECK(contains(refusal(dir / "f"), "has no digest gshard.xxh3_128"));
  const gs::safetensors_reader file(dir / "f", {.verify = false});
  CHECK(read(file, file.arrays()[0]) == "ab");
  CHECK(file.metadata() == std::map<std::string, std::string>{{"format", "pt"}});
}

TEST_CASE("safetensors: wherever the disk is full, the old file stays, and nothing else") {
  const scratch dir;
  write(dir / "f");
  const std::string before = content_of(dir / "f");
  for (std::size_t bytes = 0; bytes < before.size(); ++bytes) {
    std::string said;
    {
      const small_disk disk(bytes);
      said = complaint([&] { write(dir / "f"); });
    }
    CAPTURE(bytes);
    CHECK(said == (dir / "f") + ": writing at byte " + std::to_string(bytes) + " failed: File too large");
    CHECK(content_of(dir / "f") == before);
    CHECK(dir.entries() == 1);
  }
}

TEST_CASE("safetensors: 1e5 tiny tensors") {
  const scratch dir;
  std::vector<gs::array_info> many;
  for (int i = 0; i < 100'000; ++i) many.push_back({std::to_string(i), gs::array_type::u8, {1}});
  gs::safetensors_writer file(dir / "f", many);
  file.write(bytes(random_text(7, 100'000)));
  file.commit();
  const gs::safetensors_reader back(dir / "f");
  CHECK(back.arrays() == many);
  CHECK(read(back, many[77'777]) == random_text(7, 100'000).substr(77'777, 1));
}
