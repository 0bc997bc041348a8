// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#if defined(MUST_FAIL)
int main() { return nothing; }
#else
int main() {}
#endif
