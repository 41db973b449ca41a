#include "lockdown.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace kopt_sim {

namespace {

constexpr unsigned kAllowed[] = {
    SYS_exit_group, SYS_exit, SYS_rt_sigreturn, SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap,
    SYS_madvise, SYS_futex, SYS_rt_sigprocmask,
};
constexpr unsigned kCount = sizeof kAllowed / sizeof kAllowed[0];

}  // namespace

void lock_down() {
  sock_filter filter[kCount + 8];
  unsigned n = 0;
  const auto statement = [&](unsigned short code, unsigned value) {
    filter[n++] = BPF_STMT(code, value);
  };
  const auto jump = [&](unsigned value, unsigned char yes, unsigned char no) {
    filter[n++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no);
  };
  statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  jump(AUDIT_ARCH_X86_64, 1, 0);
  statement(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (unsigned i = 0; i < kCount; ++i)
    jump(kAllowed[i], static_cast<unsigned char>(kCount - i), 0);
  statement(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
  statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  sock_fprog program{static_cast<unsigned short>(n), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::perror("kopt-sim: cannot lock down");
    std::exit(71);
  }
}

}  // namespace kopt_sim
