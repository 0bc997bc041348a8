// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/ir/fault.hpp>

#include <string_view>

namespace gs = gshard;
using gs::fault;

namespace {

static_assert(!gs::diagnostic{});

// The first fault is kept: most later ones are its consequences.
static_assert([] {
  gs::diagnostic d;
  d.report(fault::unknown_axis, "wi", "exprt");
  d.report(fault::rank_mismatch, "wo", {}, 3, 2);
  return d && d.what == fault::unknown_axis && d.subject.view() == "wi" && d.word.view() == "exprt" &&
         d.first == gs::diagnostic::no_number && d.second == gs::diagnostic::no_number;
}());
// Texts that are too long are truncated, not lost.
static_assert([] {
  gs::diagnostic d;
  d.report(fault::malformed_equation,
           "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", {}, 3);
  return d.subject.view().size() == 63 && d.first == 3;
}());

}  // namespace
