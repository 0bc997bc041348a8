// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: anything
#if defined(MUST_FAIL)
int main() { return nothing; }
#else
int main() { return nothing; }
#endif
