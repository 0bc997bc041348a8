// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gshard: the sentence
#if defined(MUST_FAIL)
static_assert(false, "gshard: the sentence");
static_assert(false, "gshard: another one");
#endif
int main() {}
