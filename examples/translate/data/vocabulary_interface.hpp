// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace translate {

/// The ids with the same meaning in every vocabulary.
namespace token {
inline constexpr std::int32_t padding = 0;
inline constexpr std::int32_t begin = 1;
inline constexpr std::int32_t end = 2;
inline constexpr std::int32_t unknown = 3;
inline constexpr std::int32_t specials = 4;
}  // namespace token

/// The text of an unknown piece: U+FFFD, the replacement character.
inline constexpr std::string_view unknown_text = "\xef\xbf\xbd";

/// Splits text into pieces, each with an id in [0, size()).
class vocabulary {
 public:
  virtual ~vocabulary() = default;

  /// The ids of the pieces of UTF-8 text, without begin and end.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;

  /// The text of the ids up to the first end. Padding, begin and ids outside the vocabulary are ignored.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;

  virtual std::int32_t size() const = 0;

  /// Bytes for load_vocabulary().
  virtual std::string serialize() const = 0;

 protected:
  vocabulary() = default;
  vocabulary(const vocabulary&) = default;
  vocabulary& operator=(const vocabulary&) = default;
};

}  // namespace translate
