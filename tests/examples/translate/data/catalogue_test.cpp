// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "data/catalogue.hpp"

#include <doctest/doctest.h>

#include <random>

#include "fixture.hpp"

namespace tr = translate;

namespace {

const std::vector<tr::message> messages = {
    {"Estonia", "Eesti"}, {"Finland", "Soome"}, {"Åland Islands", "Ahvenamaa"}};

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A damaged file is either read, or refused with a text that names it.
void read_or_refuse(const std::string& bytes) {
  const std::string error = fixture::error_of([&] { tr::parse_catalogue(bytes, "et.mo"); });
  CHECK((error.empty() || (mentions(error, "et.mo: ") && mentions(error, "--data DIR"))));
}

TEST_CASE("catalogue: both byte orders give the messages in order, without the header entry") {
  for (const auto order : {fixture::byte_order::little, fixture::byte_order::big}) {
    CHECK(tr::parse_catalogue(fixture::catalogue(messages, order), "et.mo") == messages);
  }
}

TEST_CASE("catalogue: contexts, plurals and untranslated messages are left out") {
  using namespace std::string_literals;
  auto all = messages;
  all.insert(all.begin() + 1, {{"country\4Chad", "Tšaad"}, {"coin\0coins"s, "münt\0mündid"s}, {"Peru", ""}});
  CHECK(tr::parse_catalogue(fixture::catalogue(all), "et.mo") == messages);
}

TEST_CASE("catalogue: every truncation is refused") {
  for (const auto order : {fixture::byte_order::little, fixture::byte_order::big}) {
    const std::string bytes = fixture::catalogue(messages, order);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      CAPTURE(length);
      CHECK_THROWS_AS(tr::parse_catalogue(bytes.substr(0, length), "et.mo"), std::runtime_error);
      read_or_refuse(bytes.substr(0, length));
    }
  }
}

TEST_CASE("catalogue: every single changed bit, and random bytes, are read or refused") {
  const std::string bytes = fixture::catalogue(messages);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    read_or_refuse(damaged);
  }
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = bytes;
    for (unsigned n = random() % 8 + 1; n > 0; --n) {
      // Mostly in the header and the tables, which matter most.
      const std::size_t at = random() % (random() % 4 == 0 ? bytes.size() : 92);
      damaged[at] = static_cast<char>(static_cast<unsigned char>(random()));
    }
    read_or_refuse(damaged);
  }
}

TEST_CASE("catalogue: the error says what is wrong") {
  const auto error = [](const std::string& bytes) {
    return fixture::error_of([&] { tr::parse_catalogue(bytes, "et.mo"); });
  };
  CHECK(mentions(error("short"), "ends within its header"));
  CHECK(mentions(error(std::string(100, 'x')), "magic number"));
  std::string later = fixture::catalogue(messages);
  later[6] = 2;
  CHECK(mentions(error(later), "revision 2"));
  std::string count = fixture::catalogue(messages);
  count[11] = 127;
  CHECK(mentions(error(count), "table of strings lies outside"));
  std::string offset = fixture::catalogue(messages);
  offset[28 + 8 + 7] = 127;
  CHECK(mentions(error(offset), "a string lies outside"));
  std::string unterminated = fixture::catalogue(messages);
  unterminated.back() = 'x';
  CHECK(mentions(error(unterminated), "zero byte"));
}

TEST_CASE("catalogue: strings that overlap do not ask for more memory than the file has") {
  std::string bytes = fixture::catalogue(std::vector<tr::message>(64, {"a", std::string(64, 'b')}));
  for (std::size_t i = 0; i < 65; ++i) bytes.replace(28 + 8 * i, 8, bytes.substr(28 + 8 * 65 + 8, 8));
  CHECK(mentions(fixture::error_of([&] { tr::parse_catalogue(bytes, "et.mo"); }), "overlap"));
}

TEST_CASE("catalogue: a file that is not there is named") {
  const std::string error = fixture::error_of([] { tr::read_catalogue("/nonexistent/et.mo"); });
  CHECK(mentions(error, "/nonexistent/et.mo: cannot be read"));
}

}  // namespace
