// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A product of bf16 matrices on a processor whose hypervisor hides the tiles of AMX. Its instructions must not be used. CPUID is made to
// fault (Linux on x86-64, if the processor can), and the handler returns an empty leaf 1Dh.
#include <gshard/exec/kernel/gemm/gemm_bf16.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

#if defined(__linux__) && defined(__x86_64__)
#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace {

constexpr unsigned leaf_of_tiles = 0x1d;

long let_cpuid_run(bool may) { return syscall(SYS_arch_prctl, ARCH_SET_CPUID, may ? 1L : 0L); }

void answer_cpuid(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* const code = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
  if (code[0] != 0x0f || code[1] != 0xa2) {  // not CPUID: an ordinary fault
    signal(SIGSEGV, SIG_DFL);
    return;
  }
  unsigned a = 0, b = 0, c = 0, d = 0;
  const auto leaf = static_cast<unsigned>(registers[REG_RAX]), part = static_cast<unsigned>(registers[REG_RCX]);
  let_cpuid_run(true);
  if (leaf != leaf_of_tiles) __cpuid_count(leaf, part, a, b, c, d);
  let_cpuid_run(false);
  registers[REG_RAX] = a;
  registers[REG_RBX] = b;
  registers[REG_RCX] = c;
  registers[REG_RDX] = d;
  registers[REG_RIP] += 2;
}

bool hide_tiles() {
  struct sigaction action {};
  action.sa_sigaction = answer_cpuid;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  return sigaction(SIGSEGV, &action, nullptr) == 0 && let_cpuid_run(false) == 0;
}

}  // namespace
#else
static bool hide_tiles() { return false; }
#endif

int main() {
  if (!hide_tiles()) {
    std::puts("skipped: CPUID cannot be made to fault here");
    return 0;
  }
  constexpr std::int64_t size = 64;
  const std::vector<float> a(size * size, 1.0f), b(size * size, 0.5f);
  std::vector<float> c(size * size);
  gshard::kernel::gemm_bf16(false, false, size, size, size, 1, a.data(), size, b.data(), size, 0, c.data(), size);
  for (const float x : c)
    if (x != 32) return 1;
  return gshard::bf16_unit_in_use() == gshard::bf16_unit::amx ? 1 : 0;
}
