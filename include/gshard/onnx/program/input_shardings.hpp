// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Lists the shardings of the inputs of a program as texts, for checks that sweep over them.

#include <gshard/core/base/compiler.hpp>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

/// Every sharding of a tensor of `rank` dims over mesh axes with these names: "A@x,B". An axis shards one dim or none.
inline std::vector<std::string> all_sharding_texts(int rank, const std::vector<std::string>& axes) {
  using per_dim = std::vector<std::vector<std::string>>;  // the axes of each dim, major to minor
  std::vector<per_dim> made{per_dim(std::size_t(rank))};
  for (const std::string& axis : axes) {
    const std::vector<per_dim> before = made;
    for (const per_dim& s : before)
      for (std::size_t d = 0; d < s.size(); ++d)
        for (std::size_t at = 0; at <= s[d].size(); ++at) {
          per_dim t = s;
          t[d].insert(t[d].begin() + std::ptrdiff_t(at), axis);
          made.push_back(t);
        }
  }
  std::vector<std::string> texts;
  for (const per_dim& s : made) {
    std::string text;
    for (std::size_t d = 0; d < s.size(); ++d) {
      text += char('A' + int(d));
      for (const std::string& axis : s[d]) text += "@" + axis;
      if (d + 1 < s.size() || s.size() == 1) text += ",";
    }
    texts.push_back(text);
  }
  return texts;
}

/// Combinations of one choice of each list: all of them, or a sample of `most`, in which every choice occurs early.
inline std::vector<std::vector<std::string>> combinations(const std::vector<std::vector<std::string>>& choices, std::size_t most) {
  std::size_t all = 1;
  for (const auto& c : choices) all = all > most ? all : all * c.size();
  std::mt19937 gen(7);
  std::vector<std::vector<std::size_t>> decks(choices.size());
  std::vector<std::vector<std::string>> made;
  for (std::size_t n = 0; n < std::min(all, most); ++n) {
    std::vector<std::string> one;
    std::size_t rest = n;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      std::size_t k = rest % choices[i].size();
      rest /= choices[i].size();
      if (all > most) {
        if (decks[i].empty()) {
          for (std::size_t c = 0; c < choices[i].size(); ++c) decks[i].push_back(c);
          std::shuffle(decks[i].begin(), decks[i].end(), gen);
        }
        k = decks[i].back();
        decks[i].pop_back();
      }
      one.push_back(choices[i][k]);
    }
    made.push_back(std::move(one));
  }
  return made;
}

}}}  // namespace gshard::v0::onnx
