// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "data/catalogue.hpp"
#include "data/corpus.hpp"

namespace fixture {

enum class byte_order { little, big };

/// A .mo file of these messages, after the header entry that every catalogue has.
inline std::string catalogue(std::vector<translate::message> messages,
                             byte_order order = byte_order::little) {
  messages.insert(messages.begin(), {"", "Content-Type: text/plain; charset=UTF-8\n"});
  std::string tables, strings;
  const auto word = [&](std::string& to, std::size_t value) {
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned shift = 8 * (order == byte_order::little ? i : 3 - i);
      to.push_back(static_cast<char>(static_cast<unsigned char>(value >> shift & 0xff)));
    }
  };
  const std::size_t header = 28, table = 8 * messages.size();
  for (const bool text : {false, true}) {
    for (const translate::message& m : messages) {
      const std::string& s = text ? m.text : m.id;
      word(tables, s.size());
      word(tables, header + 2 * table + strings.size());
      strings += s + '\0';
    }
  }
  std::string head;
  for (const std::size_t value : {std::size_t{0x950412de}, std::size_t{0}, messages.size(), header,
                                  header + table, std::size_t{0}, header + 2 * table}) {
    word(head, value);
  }
  return head + tables + strings;
}

/// A directory that is removed after the test.
class directory {
 public:
  directory() {
    std::string name = (std::filesystem::temp_directory_path() / "translate-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp: cannot create " + name);
    path_ = name;
  }
  directory(const directory&) = delete;
  directory& operator=(const directory&) = delete;
  ~directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

  void add(const std::string& locale, const std::string& domain, std::string_view bytes) const {
    const std::filesystem::path folder = path_ / locale / "LC_MESSAGES";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / (domain + ".mo"), std::ios::binary) << bytes;
  }

 private:
  std::filesystem::path path_;
};

/// A language of made-up words for numbered things: sources share pieces, languages differ by an ending.
inline std::vector<translate::pair> toy_corpus(int locales, int terms) {
  const char* const stems[] = {"kala", "mira", "тоно", "sevi", "luno", "Ζακα"};
  std::vector<translate::pair> corpus;
  for (int l = 0; l < locales; ++l) {
    for (int t = 0; t < terms; ++t) {
      const std::string term = "Thing" + std::to_string(t) + " of Ålands (part)";
      std::string word = stems[t % 6] + std::to_string(t);
      if (t % 10 != 0) word += " " + std::string(1, static_cast<char>('a' + l % 26)) + "en";
      corpus.push_back({"l" + std::to_string(l), word, term, std::string(translate::script_of(word))});
    }
  }
  return corpus;
}

/// The text of the error of `run()`; empty if there was none.
template <class Run>
std::string error_of(Run run) {
  try {
    run();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return {};
}

}  // namespace fixture
