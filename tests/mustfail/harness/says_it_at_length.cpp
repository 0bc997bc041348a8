// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gshard: the sentence
#if defined(MUST_FAIL)
static_assert(false, "gshard: the sentence");
#pragma message "and a note"
#pragma message "and a note"
#pragma message "and a note"
#pragma message "and a note"
#pragma message "and a note"
#pragma message "and a note"
#pragma message "and a note"
#pragma message "and a note"
#pragma message "and a note"
#pragma message "and a note"
#pragma message "and a note"
#pragma message "and a note"
#endif
int main() {}
