// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The exceptions of the library: gshard::error, and not_finite_error for NaN and infinities that the program checks. Errors between
// processes.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/exceptions.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#if GSHARD_HAS_BODIES
#include <gshard/exec/process/failure_hooks.hpp>

#include <cstring>
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

/// An error of one process, which agreements carry to the others, or none.
struct process_error {
  enum class kind_of : std::uint8_t {
    no_error,
    error,
    not_finite,  ///< A not_finite_error. If all processes with an error have one, all throw the first in the order of the program.
  };

  kind_of kind = kind_of::no_error;
  std::string text{};
  std::uint32_t step = 0;   ///< Of a not_finite_error.
  std::uint64_t place = 0;  ///< The position of its operation in the program: smaller for operations that run earlier.

  process_error() = default;
  /// An error of this text; none if it is empty.
  process_error(std::string what) : kind(what.empty() ? kind_of::no_error : kind_of::error), text(std::move(what)) {}
  process_error(const char* what) : process_error(std::string(what)) {}
  static process_error not_finite(std::string what, std::uint32_t at_step, std::uint64_t at_place);

  bool empty() const { return kind == kind_of::no_error; }
  /// Throws it.
  [[noreturn]] void fail() const;

  /// The form in which processes exchange it. If bytes at the end are missing, the text is shorter. Without a complete head, from_bytes
  /// throws `gshard::error`.
  std::string to_bytes() const;
  static process_error from_bytes(const std::string& bytes);
};

namespace detail {
/// The exception that is being handled.
process_error problem_in_flight();

/// Calls f and returns its exception, or none. For errors that must be reported to other processes.
template <class F>
process_error problem_of(const F& f) {
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

GSHARD_INLINE process_error process_error::not_finite(std::string what, std::uint32_t at_step, std::uint64_t at_place) {
  process_error e(std::move(what));
  e.kind = kind_of::not_finite;
  e.step = at_step;
  e.place = at_place;
  return e;
}

GSHARD_INLINE void process_error::fail() const {
  if (kind != kind_of::not_finite) throw error(text);
  const not_finite_error e(text, step);
  detail::failure_hooks::tell_not_finite(e.what(), e.step);
  throw e;
}

GSHARD_INLINE std::string process_error::to_bytes() const {
  std::string bytes(1 + sizeof step + sizeof place, char(kind));
  std::memcpy(bytes.data() + 1, &step, sizeof step);
  std::memcpy(bytes.data() + 1 + sizeof step, &place, sizeof place);
  return bytes + text;
}

GSHARD_INLINE process_error process_error::from_bytes(const std::string& bytes) {
  process_error e;
  constexpr std::size_t head = 1 + sizeof step + sizeof place;
  if (bytes.size() < head || bytes[0] < 0 || bytes[0] > char(kind_of::not_finite))
    throw error("an agreement of the processes got bytes that are no error");
  e.kind = kind_of(bytes[0]);
  std::memcpy(&e.step, bytes.data() + 1, sizeof step);
  std::memcpy(&e.place, bytes.data() + 1 + sizeof step, sizeof place);
  e.text = bytes.substr(head);
  return e;
}

namespace detail {

GSHARD_INLINE process_error problem_in_flight() {
  std::string text;
  try {
    throw;
  } catch (const not_finite_error& e) {
    return process_error::not_finite(e.what(), e.step, 0);
  } catch (const std::exception& e) {
    text = e.what();
  } catch (...) {
  }
  return text.empty() ? "an exception without a text" : text;
}

}  // namespace detail

#endif

}}  // namespace gshard::v0
