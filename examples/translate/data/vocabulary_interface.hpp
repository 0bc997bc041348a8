// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace translate {

/// The ids that every vocabulary gives the same meaning.
namespace token {
inline constexpr std::int32_t padding = 0;
inline constexpr std::int32_t begin = 1;
inline constexpr std::int32_t end = 2;
inline constexpr std::int32_t unknown = 3;
inline constexpr std::int32_t specials = 4;
}  // namespace token

/// What an unknown piece reads as: U+FFFD, the replacement character.
inline constexpr std::string_view unknown_text = "\xef\xbf\xbd";

/// Splits text into pieces, each with an id in [0, size()).
class vocabulary {
 public:
  virtual ~vocabulary() = default;

  /// The ids of the pieces of UTF-8 text, without begin and end.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;

  /// The text of the ids up to the first end; padding, begin and ids outside the vocabulary say nothing.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;

  virtual std::int32_t size() const = 0;

  /// Bytes that load_vocabulary() reads.
  virtual std::string serialize() const = 0;

 protected:
  vocabulary() = default;
  vocabulary(const vocabulary&) = default;
  vocabulary& operator=(const vocabulary&) = default;
};

}  // namespace translate
