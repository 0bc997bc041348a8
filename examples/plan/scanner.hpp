// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "refusal.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

namespace planning {

/// Reads a text from left to right. Refuses unexpected text, with the column (from 0).
class scanner {
 public:
  /// what: the kind of text, such as "mesh"; example: a valid text.
  scanner(std::string_view what, std::string_view text, std::string_view example) : what_(what), text_(text), example_(example) {}

  bool done() const { return at_ == text_.size(); }
  bool accept(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail("expected '" + std::string(token) + "'");
  }
  void expect_end() const {
    if (!done()) fail("expected its end");
  }
  std::string_view axis() {
    std::size_t n = at_;
    while (n < text_.size() && is_word(text_[n])) ++n;
    const std::string_view name = text_.substr(at_, n - at_);
    if (name.empty() || is_digit(name[0])) fail("expected the name of an axis");
    if (!gs::axis_name::fits(name)) fail("expected a name of at most 23 characters");
    at_ = n;
    return name;
  }
  std::int64_t extent(std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    std::int64_t value = 0;
    const char* const end = text_.data() + text_.size();
    const auto [next, problem] = std::from_chars(text_.data() + at_, end, value);
    if (problem == std::errc::invalid_argument || (problem == std::errc() && value < 1)) fail("expected an extent of at least 1");
    if (problem != std::errc() || value > most) fail("expected a smaller extent");
    at_ = std::size_t(next - text_.data());
    return value;
  }
  /// An integer of absolute value `most` or less.
  std::int64_t integer(std::int64_t most = 1'000'000'000'000) {
    std::int64_t value = 0;
    accept("+");
    const auto [next, problem] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (problem == std::errc::invalid_argument) fail("expected a whole number");
    if (problem != std::errc() || value > most || value < -most) fail("expected a smaller number");
    at_ = std::size_t(next - text_.data());
    return value;
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw refusal("malformed " + what_ + " \"" + std::string(text_) + "\" at column " + std::to_string(at_) + ": " + expected +
                  ", as in " + example_);
  }

 private:
  std::string what_;
  std::string_view text_;
  std::string example_;
  std::size_t at_ = 0;

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_word(char c) { return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
};

}  // namespace planning
