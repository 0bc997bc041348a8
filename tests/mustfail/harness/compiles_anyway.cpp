// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: anything
#if defined(MUST_FAIL)
int main() {}
#else
int main() {}
#endif
