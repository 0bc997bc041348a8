// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "targets.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// The bytes of a line in a corpus: printable characters, others as \xHH.
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

/// The inputs of a target: hand-written ones, if there are any, and those that fuzzing has found.
std::vector<std::string> inputs_of(const std::string& target, const std::vector<std::string>& files = {".seeds.txt", ".txt"}) {
  std::vector<std::string> inputs;
  for (const std::string& file : files) {
    std::ifstream corpus("fuzz/corpus/" + target + file);
    for (std::string line; std::getline(corpus, line);) inputs.push_back(bytes_of(line));
  }
  return inputs;
}

}  // namespace

TEST_CASE("the inputs that fuzzing has found still do no harm") {
  struct target {
    const char* name;
    void (*run)(std::string_view);
  };
  const std::vector<target> targets {
    {"equation", fuzz::equation}, {"header", fuzz::header}, {"plan", fuzz::plan},
#if __has_include(<openssl/evp.h>)
    {"manifest", fuzz::manifest},
#endif
#if __has_include(<protozero/pbf_reader.hpp>)
    {"onnx", fuzz::onnx},
#endif
  };
  for (const target& t : targets) {
    CAPTURE(t.name);
    CHECK(inputs_of(t.name, {".txt"}).size() > 20);
    for (const std::string& input : inputs_of(t.name)) {
      CAPTURE(input);
      CHECK_NOTHROW(t.run(input));
      for (std::size_t n = 0; n < input.size() && n < 200; ++n) CHECK_NOTHROW(t.run(input.substr(0, n)));  // and their prefixes
    }
  }
}

#if __has_include(<openssl/evp.h>)
TEST_CASE("the inputs of the manifest's parser reach every part of it") {
  const std::vector<std::string> refusals{"is nested too deep",
                                          "for a number",
                                          "no list, or too long a list of",
                                          "is of a newer format",
                                          "with an unknown element type",
                                          "with too many dims",
                                          "is too large to be counted",
                                          "twice, or out of order",
                                          "has no SHA-256 for a part",
                                          "is not as gshard writes it",
                                          "is not base64",
                                          "parse error",
                                          "cannot use at()",
                                          "type must be string"};
  std::set<std::string> missing(refusals.begin(), refusals.end());
  int accepted = 0;
  for (const std::string& input : inputs_of("manifest")) {
    try {
      const gshard::manifest m = gshard::detail::parse_manifest(fuzz::sealed(input));
      accepted += m.tensors.empty() || m.parts.empty() ? 0 : 1;
    } catch (const gshard::error& e) {
      std::erase_if(missing, [&](const std::string& text) { return std::string_view(e.what()).find(text) != std::string_view::npos; });
    }
  }
  for (const std::string& text : missing) FAIL_CHECK("no input is refused with '" << text << "'");
  CHECK(accepted > 0);
  const std::vector<std::string> found = inputs_of("manifest", {".txt"});
  const auto is_deep = [](const std::string& input) { return input.starts_with("\"gshard.manifest\":1,\"library\":"); };
  CHECK(std::ranges::count_if(found, is_deep) > 50);
}
#endif
