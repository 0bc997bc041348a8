// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compile-time faults of programs, specs and equations, and the diagnostic that reports the first one.

#include <gshard/core/base/name.hpp>
#include <gshard/core/ir/dtype.hpp>

#include <cstdint>
#include <limits>
#include <string_view>

namespace gshard { inline namespace v0 {

/// The faults of a program, a spec or an equation at compile time. Their messages are in core/ir/fault.def.
enum class fault : std::uint8_t {
  nothing,
  refused_call,  // a verb was called wrongly; the compiler has printed the error (core/trace/call.hpp)
#define GSHARD_FAULT(kind, ...) kind,
#include <gshard/core/ir/fault.def>
};

/// The first fault of a program, with the words of its message.
struct diagnostic {
  /// In place of a number that the fault does not have. Options may be -1.
  static constexpr int no_number = std::numeric_limits<int>::min();

  fault what = fault::nothing;
  tensor_name subject;    // tensor, operation or equation
  tensor_name word;       // axis, index letter, options, or the name of an operand
  int first = no_number;  // column, operand, expected number, ...
  int second = no_number;
  dtype given{};          // for wrong_type: the element type of the operand
  element_set taken = 0;  // for wrong_type: the types that the operation takes
  int line = 0;           // the program's line of the verb or the operation
  tensor_name scope;      // the named_scope around it

  constexpr explicit operator bool() const { return what != fault::nothing; }
  /// The nearest number that a diagnostic can have.
  static constexpr int nearest(std::int64_t n) {
    constexpr int most = std::numeric_limits<int>::max();
    return n > most ? most : n < no_number ? no_number : int(n);
  }
  constexpr void report(fault f, std::string_view about, std::string_view w = {}, int a = no_number, int b = no_number) {
    if (what != fault::nothing) return;
    what = f;
    subject = tensor_name(about);
    word = tensor_name(w);
    first = a;
    second = b;
  }
  /// Sets the line and the scope of the operation at which a pass found the fault, unless a verb has set them.
  constexpr void name_place(std::uint32_t of_operation, const char* around_it) {
    if (what == fault::nothing || line != 0) return;
    line = int(of_operation);
    if (around_it) scope = around_it;
  }
};

}}  // namespace gshard::v0
