// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "data/catalogue.hpp"
#include "data/script.hpp"
#include "data/text.hpp"

namespace translate {

/// A text of a locale, its English translation, and the script of the text.
struct pair {
  std::string locale;
  std::string source;
  std::string target;
  std::string script;

  bool operator==(const pair&) const = default;
};

/// The directory of the catalogues of the package iso-codes, and the ones to read. Subdivisions (iso_3166-2) and all languages (iso_639-3)
/// are left out, because most of their names are not translated. Small locales that vary another one are left out as well.
struct corpus_options {
  std::filesystem::path directory = "/usr/share/locale";
  std::vector<std::string> domains = {"iso_15924", "iso_3166-1", "iso_3166-3",
                                      "iso_4217",  "iso_639-2",  "iso_639-5"};
  std::vector<std::string> excluded_locales = {"mo", "nb_NO", "ro_MD", "zh_Hans", "zh_Hant"};
};

namespace detail {

inline void append_catalogue(std::vector<pair>& corpus, const std::string& locale,
                             const std::filesystem::path& path) {
  for (const message& m : read_catalogue(path)) {
    if (!try_code_points(m.id) || !try_code_points(m.text)) {
      throw std::runtime_error(
          path.string() + ": the entry '" + m.id +
          "' is not UTF-8. Reinstall the package iso-codes, or name another directory (--data DIR)");
    }
    pair p{locale, trimmed(nfc(m.text)), trimmed(nfc(m.id)), {}};
    if (p.source.empty() || p.target.empty()) continue;
    p.script = script_of(p.source);
    corpus.push_back(std::move(p));
  }
}

}  // namespace detail

/// Keeps one pair of each (locale, source): the one with the shortest target. Several English terms with one translation (a country's
/// names, or a country and its language) cannot be distinguished. Sorts the pairs by locale and source.
inline void sort_and_deduplicate(std::vector<pair>& corpus) {
  std::sort(corpus.begin(), corpus.end(), [](const pair& a, const pair& b) {
    const auto a_length = a.target.size(), b_length = b.target.size();
    return std::tie(a.locale, a.source, a_length, a.target) <
           std::tie(b.locale, b.source, b_length, b.target);
  });
  const auto same_source = [](const pair& a, const pair& b) {
    return a.locale == b.locale && a.source == b.source;
  };
  corpus.erase(std::unique(corpus.begin(), corpus.end(), same_source), corpus.end());
}

/// All translations into English in the catalogues in `options.directory`, in normal form C. Their order depends only on the files. Throws
/// std::runtime_error if there are none, or if one is damaged.
inline std::vector<pair> read_corpus(const corpus_options& options = {}) {
  namespace fs = std::filesystem;
  std::error_code unreadable;
  std::vector<pair> corpus;
  for (const fs::directory_entry& entry : fs::directory_iterator(options.directory, unreadable)) {
    const std::string locale = entry.path().filename().string();
    if (std::count(options.excluded_locales.begin(), options.excluded_locales.end(), locale) != 0) continue;
    for (const std::string& domain : options.domains) {
      const fs::path path = entry.path() / "LC_MESSAGES" / (domain + ".mo");
      std::error_code absent;
      if (fs::is_regular_file(path, absent)) detail::append_catalogue(corpus, locale, path);
    }
  }
  if (corpus.empty()) {
    throw std::runtime_error(
        options.directory.string() +
        (unreadable ? ": " + unreadable.message() : ": holds no catalogues of iso-codes") +
        "; install the package iso-codes (apt-get install iso-codes) or give --data DIR");
  }
  sort_and_deduplicate(corpus);
  return corpus;
}

}  // namespace translate
