// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace faults {
/// Instead of an errno: a write or a read transfers half of its bytes.
inline constexpr int short_write = -1;
}  // namespace faults

extern "C" {
/// The nth call from now on fails with this errno, or is short. With `later`, all calls after it fail as well. 0: none.
void gshard_fail(int nth, int how, int later);
/// The number of calls since then.
int gshard_calls();
/// 1: starts a new journal of successful calls that change files. 0: stops it.
void gshard_keep_journal(int keep);
/// One line per call: "write FILE", "flush FILE", "make FOLDER NAME FILE", "rename FOLDER NAME FOLDER NAME FILE", "remove FOLDER NAME".
/// FILE and FOLDER are numbers of the file system. A flushed directory is a FILE.
const char* gshard_journal();
}
