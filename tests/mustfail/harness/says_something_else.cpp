// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: nothing.* was not declared|use of undeclared identifier .*nothing
// expect: a quoted line does not count
#if defined(MUST_FAIL)
int main() { return nothing; }  // a quoted line does not count
#else
int main() {}
#endif
