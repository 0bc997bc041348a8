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
/// 1: from now on, successful calls that change files are noted in a new journal. 0: no longer.
void gshard_keep_journal(int keep);
/// A line for each: "write FILE", "flush FILE", "make FOLDER NAME FILE", "rename FOLDER NAME FOLDER NAME FILE", "remove FOLDER NAME". FILE
/// and FOLDER are numbers of the file system; a directory that is flushed is a FILE.
const char* gshard_journal();
}
