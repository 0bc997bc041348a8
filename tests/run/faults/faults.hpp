// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace faults {
/// Instead of an errno: a write or a read transfers half of its bytes.
inline constexpr int short_write = -1;
}  // namespace faults

extern "C" {
/// The nth call from now on fails with this errno, or is short; with `later`, all after it too. 0: none.
void gshard_fail(int nth, int how, int later);
/// The calls since then.
int gshard_calls();
}
