// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "targets.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// A line of a corpus: printable characters, others as \xHH.
std::string bytes_of(const std::string& line) {
  std::string bytes;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 3 < line.size()) {
      bytes += char(std::stoi(line.substr(i + 2, 2), nullptr, 16));
      i += 3;
    } else {
      bytes += line[i];
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("the inputs that fuzzing has found still do no harm") {
  struct target {
    const char* name;
    void (*run)(std::string_view);
  };
  const std::vector<target> targets{{"equation", fuzz::equation},
                                    {"header", fuzz::header},
#if __has_include(<openssl/evp.h>)
                                    {"manifest", fuzz::manifest}
#endif
  };
  for (const target& t : targets) {
    CAPTURE(t.name);
    std::ifstream corpus(std::string("fuzz/corpus/") + t.name + ".txt");
    REQUIRE(corpus);
    std::size_t lines = 0;
    for (std::string line; std::getline(corpus, line); ++lines) {
      CAPTURE(line);
      CHECK_NOTHROW(t.run(bytes_of(line)));
      for (std::size_t n = 0; n < line.size() && n < 200; ++n) CHECK_NOTHROW(t.run(bytes_of(line.substr(0, n))));  // and their beginnings
    }
    CHECK(lines > 20);
  }
}
