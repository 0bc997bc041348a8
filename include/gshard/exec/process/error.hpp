// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The exceptions of the library: gshard::error, and not_finite_error for NaN and infinities that the program checks.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/exceptions.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

#if GSHARD_HAS_BODIES
#include <gshard/exec/process/failure_hooks.hpp>
#endif

namespace gshard { inline namespace v0 {

/// An error that gshard can only find at run time. The text names the operation, tensor, dims or devices, so that it can be shown to users
/// unchanged.
class error : public std::runtime_error {
 public:
  /// NUL characters become "\\0", because what() would end at them.
  explicit error(const std::string& text);
  explicit error(const char* text) : std::runtime_error(text) {}
};

/// A number is NaN or infinite: in a tensor that check_finite names, a loss, a gradient, a parameter, or a checkpoint. The text names
/// tensor, device, step, index and value. It is the same on every process.
/// @see check_finite, not_finite
class not_finite_error : public error {
 public:
  not_finite_error(const std::string& text, std::uint32_t at_step) : error(text), step(at_step) {}

  std::uint32_t step;  ///< The step of the run, or the number of finished steps of the store.
};

namespace detail {
/// The text of an error that processes exchange. The text of a not_finite_error begins with a mark and two numbers: the step, and the
/// position of its operation in the program.
class problem_text {
 public:
  explicit problem_text(const std::string& problem) : problem_(problem) {}
  static std::string not_finite(const std::string& text, std::uint32_t step, std::size_t place);

  bool is_not_finite() const;
  /// Smaller for operations that run earlier.
  std::uint64_t place() const;
  std::string text() const;
  [[noreturn]] void fail() const;

 private:
  static constexpr const char* mark = "\x01not finite";
  static constexpr std::size_t mark_size = std::char_traits<char>::length(mark), width = 10, begin = mark_size + 2 * width;
  const std::string& problem_;

  static std::string digits(std::size_t n);
};

/// The text of the exception that is being handled.
std::string problem_in_flight();

/// Calls f and returns the text of its exception, or an empty string. For errors that must be reported to other processes.
template <class F>
std::string problem_of(const F& f) {
  try {
    f();
    return {};
  } catch (...) {
    return problem_in_flight();
  }
}
}  // namespace detail

#if GSHARD_HAS_BODIES

GSHARD_INLINE error::error(const std::string& text)
    : std::runtime_error([&] {
        std::string visible;
        for (const char c : text) visible += c == '\0' ? std::string("\\0") : std::string(1, c);
        return visible;
      }()) {}

namespace detail {

GSHARD_INLINE std::string problem_text::not_finite(const std::string& text, std::uint32_t step, std::size_t place) {
  return mark + digits(step) + digits(place) + text;
}

GSHARD_INLINE bool problem_text::is_not_finite() const { return problem_.starts_with(mark) && problem_.size() >= begin; }

GSHARD_INLINE std::uint64_t problem_text::place() const {
  return is_not_finite() ? std::stoull(problem_.substr(mark_size + width, width)) : 0;
}

GSHARD_INLINE std::string problem_text::text() const { return is_not_finite() ? problem_.substr(begin) : problem_; }

GSHARD_INLINE void problem_text::fail() const {
  if (!is_not_finite()) throw error(problem_);
  const not_finite_error e(text(), std::uint32_t(std::stoull(problem_.substr(mark_size, width))));
  failure_hooks::tell_not_finite(e.what(), e.step);
  throw e;
}

GSHARD_INLINE std::string problem_text::digits(std::size_t n) {
  const std::string text = std::to_string(n % 10'000'000'000u);
  return std::string(width - text.size(), '0') + text;
}

GSHARD_INLINE std::string problem_in_flight() {
  std::string text;
  try {
    throw;
  } catch (const not_finite_error& e) {
    text = problem_text::not_finite(e.what(), e.step, 0);
  } catch (const std::exception& e) {
    text = e.what();
  } catch (...) {
  }
  return text.empty() ? "an exception without a text" : text;
}

}  // namespace detail

#endif

}}  // namespace gshard::v0
