// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Facts about a collective call that must be equal on all processes, and the error that names the first difference.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/hash.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Processes compare their calls before they communicate, so a mismatch is an error on every process, not a hang or a wrong result.
namespace gshard { inline namespace v0 {

/// A property of a collective call that must be equal on all processes.
struct fact {
  std::string what;      ///< "the extent of dim 'A'"
  std::string value;     ///< "8"
  std::string place{};   ///< A source line, shown with the value. It may differ.
};

/// The hash of facts, without their places.
std::uint64_t hash_of(const std::vector<fact>& facts);

namespace detail {
/// The facts of both lists.
std::vector<fact> joined(std::vector<fact> first, const std::vector<fact>& second);
}  // namespace detail

/// A collective call of this process: a hash of its facts, and a function that returns them. The first fact is the call itself. Processes
/// exchange hashes, and facts only if hashes differ. Keeps a reference to the facts or the function, which must outlive it.
class collective_call {
 public:
  collective_call() = default;  ///< A call without facts; it equals other calls without facts.
  collective_call(const std::vector<fact>& facts) : collective_call(hash_of(facts), facts) {}
  template <class Facts>
  collective_call(std::uint64_t hash, const Facts& facts)
      : hash_(hash), facts_(&facts), give_([](const void* f) -> std::vector<fact> {
          if constexpr (std::invocable<const Facts&>) return (*static_cast<const Facts*>(f))();
          else return *static_cast<const Facts*>(f);
        }) {}

  std::uint64_t hash() const { return hash_; }
  std::vector<fact> facts() const { return give_ ? give_(facts_) : std::vector<fact>(); }

  /// The number of the call on its cluster, from 1; 0 if it has none. The same on all processes.
  std::uint64_t number = 0;

 private:
  std::uint64_t hash_ = 0;
  const void* facts_ = nullptr;
  std::vector<fact> (*give_)(const void*) = nullptr;
};

namespace detail {

/// A number with enough digits to distinguish it from all others of its type, or "true".
template <class T>
  requires std::is_arithmetic_v<T>
std::string number_text(T x) {
  if constexpr (std::is_same_v<T, bool>) return x ? "true" : "false";
  else {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, x).ptr};
  }
}
std::string extents_text(std::span<const std::int64_t> extents);

/// A hash of the bytes of an array, nearly as fast as reading them.
std::uint64_t hash_of_bytes(std::span<const std::byte> data);

/// "rank 3", "ranks 0 to 2 and 5"
std::string ranks_text(const std::vector<int>& ranks);

/// "rank 0 has 8, ranks 1 to 3 have 9": the value of each group of ranks.
std::string groups_text(const std::vector<std::string>& by_rank);

/// The error text of processes whose calls differ. `call`: the first fact of this process. `first`: true if that fact differs. `by_rank`:
/// the first fact that differs.
std::string disagreement(const fact& call, std::uint64_t number, bool first, const std::vector<fact>& by_rank);

}  // namespace detail

#if GSHARD_HAS_BODIES

GSHARD_INLINE std::uint64_t hash_of(const std::vector<fact>& facts) {
  fnv1a<std::uint64_t> h;
  for (const fact& f : facts) h.add(f.what).add(f.what.size()).add(f.value).add(f.value.size());
  return h.value();
}

namespace detail {

GSHARD_INLINE std::string extents_text(std::span<const std::int64_t> extents) {
  std::string s = "[";
  for (std::size_t d = 0; d < extents.size(); ++d) s.append(d ? "," : "").append(std::to_string(extents[d]));
  return s + "]";
}

GSHARD_INLINE std::uint64_t hash_of_bytes(std::span<const std::byte> data) {
  std::array<fnv1a<std::uint64_t>, 4> lanes;
  std::array<std::uint64_t, lanes.size()> words;
  const std::size_t size = data.size();
  for (; !data.empty(); data = data.subspan(std::min(sizeof words, data.size()))) {
    if (data.size() < sizeof words) words.fill(0);
    std::memcpy(words.data(), data.data(), std::min(sizeof words, data.size()));
    for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i].add(words[i]);
  }
  fnv1a<std::uint64_t> all;
  for (const auto& lane : lanes) all.add(lane.value());
  return all.add(std::uint64_t(size)).value();
}

GSHARD_INLINE std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t most = 8;
  std::vector<std::string> items;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < ranks.size() && items.size() < most; shown = i) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - i < 3) end = i + 1;
    items.push_back(std::to_string(ranks[i]));
    if (end - i > 1) items.back().append(" to ").append(std::to_string(ranks[end - 1]));
    i = end;
  }
  if (shown < ranks.size()) items.push_back(std::to_string(ranks.size() - shown) + " more");
  std::string s = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < items.size(); ++i) s.append(i == 0 ? "" : i + 1 == items.size() ? " and " : ", ").append(items[i]);
  return s;
}

GSHARD_INLINE std::string groups_text(const std::vector<std::string>& by_rank) {
  constexpr std::size_t most = 8;
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    auto known = std::ranges::find(groups, by_rank[rank], [](const auto& g) { return g.first; });
    if (known == groups.end()) known = groups.insert(known, {by_rank[rank], {}});
    known->second.push_back(int(rank));
  }
  std::string s;
  for (std::size_t i = 0; i < std::min(most, groups.size()); ++i)
    s.append(i ? ", " : "") += ranks_text(groups[i].second) + (groups[i].second.size() == 1 ? " has " : " have ") + groups[i].first;
  if (groups.size() > most) s.append(", and others have ").append(std::to_string(groups.size() - most)).append(" other values");
  return s;
}

GSHARD_INLINE std::string disagreement(const fact& call, std::uint64_t number, bool first, const std::vector<fact>& by_rank) {
  const auto same_what = [&](const fact& f) { return f.what == by_rank[0].what; };
  const bool one_property = std::all_of(by_rank.begin(), by_rank.end(), same_what);
  std::vector<std::string> values;
  for (const fact& f : by_rank)
    values.push_back((one_property ? "" : f.what + " ") + f.value + (f.place.empty() ? "" : " (" + f.place + ")"));
  const std::string numbered = number == 0 ? "" : "call " + std::to_string(number) + " on their cluster: ";
  if (first) return numbered + "the processes make different calls: " + groups_text(values);
  return numbered + call.value + (call.place.empty() ? "" : " (" + call.place + ")") + ": the processes disagree" +
         (one_property ? " on " + by_rank[0].what : "") + ": " + groups_text(values);
}

GSHARD_INLINE std::vector<fact> joined(std::vector<fact> first, const std::vector<fact>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace detail

#endif
}}  // namespace gshard::v0
