// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compile-time faults of programs, specs and equations, and the diagnostic that reports the first one.

#include <gshard/base/name.hpp>

#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// The faults of a program, a spec or an equation at compile time. The sentence of each is in ir/fault.def.
enum class fault : std::uint8_t {
  nothing,
  refused_call,  // a verb was called wrongly; the compiler has printed the error (trace/wrong_calls.hpp)
#define GSHARD_FAULT(kind, ...) kind,
#include <gshard/ir/fault.def>
};

/// The first fault of a program, with the words of its sentence.
struct diagnostic {
  fault what = fault::nothing;
  tensor_name subject;  // tensor, operation or equation
  tensor_name word;     // axis, index letter or options
  int first = -1;       // column, expected number, ...
  int second = -1;
  int line = 0;  // of the program, of the verb or the operation
  tensor_name scope;    // the named_scope around it

  constexpr explicit operator bool() const { return what != fault::nothing; }
  constexpr void report(fault f, std::string_view about, std::string_view w = {}, int a = -1, int b = -1) {
    if (what != fault::nothing) return;
    what = f;
    subject = tensor_name(about);
    word = tensor_name(w);
    first = a;
    second = b;
  }
  /// The line and the scope of the operation at which a pass found the fault, unless a verb has found it.
  constexpr void name_place(std::uint32_t of_operation, const char* around_it) {
    if (what == fault::nothing || line != 0) return;
    line = int(of_operation);
    if (around_it) scope = around_it;
  }
};

}}  // namespace gshard::v0
