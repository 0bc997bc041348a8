// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "settings.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace tr = translate;

namespace {

using metadata = std::map<std::string, std::string>;

std::vector<std::int64_t> shape(const tr::settings& s) {
  return {s.model, s.heads, s.head, s.hidden, s.experts, s.positions, s.groups};
}

tr::settings odd() {
  tr::settings s;
  s.model = 11, s.heads = 12, s.head = 13, s.hidden = 14, s.experts = 15, s.positions = 16;
  s.groups = std::int64_t{1} << 40;
  return s;
}

}  // namespace

TEST_CASE("settings: what a model file keeps gives the same model back, whatever was set before") {
  for (const tr::settings& s : {tr::settings(), tr::settings::quick(), odd()}) {
    const metadata kept = s.to_metadata();
    for (tr::settings read : {tr::settings(), tr::settings::quick(), odd()}) {
      const double minutes = read.minutes;
      read.read_metadata(kept);
      CHECK(shape(read) == shape(s));
      CHECK(read.to_metadata() == kept);
      CHECK(read.minutes == minutes);  // the file does not contain training options
    }
  }
}

TEST_CASE("settings: a file may say more, but a setting that it lacks is named") {
  metadata more = odd().to_metadata();
  more["vocabulary"] = "characters";
  tr::settings s;
  s.read_metadata(more);
  CHECK(shape(s) == shape(odd()));
  for (const auto& [name, value] : odd().to_metadata()) {
    metadata less = more;
    less.erase(name);
    const std::string quoted = "'" + name + "'";
    CHECK_THROWS_WITH_AS(s.read_metadata(less), doctest::Contains(quoted.c_str()), std::runtime_error);
  }
}

TEST_CASE("settings: a kept count is a whole number of at least 1, or an error that names it") {
  CHECK(tr::kept_count({{"source_length", "24"}}, "source_length") == 24);
  for (const char* text : {"", "0", "-4", "16x", " 16", "1.5", "sixteen", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(tr::kept_count({{"source_length", text}}, "source_length"), doctest::Contains("'source_length'"),
                         std::runtime_error);
  }
  CHECK_THROWS_WITH_AS(tr::kept_count({}, "source_length"), doctest::Contains("'source_length'"), std::runtime_error);
}

TEST_CASE("settings: the dims hold a batch of the bucket, group by group") {
  const tr::settings s = tr::settings::quick();
  const tr::bucket b{12, 10, 5 * s.groups};
  const auto extent = [dims = s.dims(b, 777)](char name) { return dims.find(name); };
  CHECK(extent('G') * extent('B') == b.sequences);
  CHECK(extent('S') == b.source_length);
  CHECK(extent('T') == b.target_length);
  CHECK(extent('V') == 777);
}
