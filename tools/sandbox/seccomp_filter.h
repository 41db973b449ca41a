// The seccomp-BPF filter of every sandboxed process (x86_64 Linux), shared by the launcher and by
// programs that tighten themselves later. It refuses what neither a compiler nor a kernel running
// on the CPU needs: network, tracing, namespaces, mounts, keys, modules, new kernel interfaces with
// a history of escapes. It is a deny list, not an allow list: file access is the job of bubblewrap
// or Landlock, and a filter that breaks the next glibc would be switched off by its users.
//
// Filters stack: the strictest answer of all installed filters counts, and none can be removed.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace kopt_sandbox {

enum class ExecRule {
    allowed,
    refused,  // EPERM
    asked,    // each execve waits for the holder of the listener; ENOSYS once it is closed
};

// The CUDA driver does not start without a local socket of its own to listen at; it gets no answer
// there, since nobody may connect or accept. A profiler talks to the driver's library through one.
// Sockets of this machine, or none: every other family is refused at its creation.
enum class SocketRule {
    none,
    local_listener,  // AF_UNIX: made, bound and listened at. The CUDA driver does not start without
                     // one; it hears nothing there, since nobody may connect or accept
    local,           // AF_UNIX, all of it
};

struct FilterRules {
    ExecRule exec = ExecRule::refused;
    SocketRule sockets = SocketRule::none;
};

// Processes that may not be signalled: the supervisor and its parent. 0 protects nobody.
struct ProtectedPids {
    pid_t supervisor = 0;
    pid_t parent = 0;
};

namespace detail {

// Numbers since Linux 5.1 are the same on every architecture; older headers do not name them.
// Source: arch/x86/entry/syscalls/syscall_64.tbl.
constexpr uint32_t refused_calls[] = {
    // other processes
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, 424 /* pidfd_send_signal */,
    438 /* pidfd_getfd */, 440 /* process_madvise */, 448 /* process_mrelease */,
    SYS_migrate_pages, SYS_move_pages,
    // leaving the process group, which is what a time-out kills in one step; setpgid: see below
    SYS_setsid,
    // namespaces, mounts, handles
    SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot,
    428 /* open_tree */, 429 /* move_mount */, 430 /* fsopen */, 431 /* fsconfig */,
    432 /* fsmount */, 433 /* fspick */, 442 /* mount_setattr */, 457 /* statmount */,
    458 /* listmount */, 467 /* open_tree_attr */, SYS_name_to_handle_at, SYS_open_by_handle_at,
    SYS_fanotify_init, SYS_quotactl, 443 /* quotactl_fd */, SYS_swapon, SYS_swapoff, SYS_acct,
    // keys, which outlive the process, and System V and POSIX objects, which do too
    SYS_add_key, SYS_request_key, SYS_keyctl, SYS_shmget, SYS_msgget, SYS_semget, SYS_mq_open,
    // kernel code and the machine
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, 425 /* io_uring_setup */,
    426 /* io_uring_enter */, 427 /* io_uring_register */, SYS_kexec_load, SYS_kexec_file_load,
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_reboot, SYS_iopl, SYS_ioperm,
    SYS_modify_ldt, SYS_syslog, SYS_vhangup, SYS_sethostname, SYS_setdomainname,
    SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime, SYS_uselib,
};

// Network: without a socket the other calls of the family have nothing to work on.
constexpr uint32_t socket_making_calls[] = {SYS_socket, SYS_socketpair};
constexpr uint32_t listening_calls[] = {SYS_bind, SYS_listen};
constexpr uint32_t connecting_calls[] = {SYS_connect, SYS_accept, SYS_accept4};

constexpr uint32_t signal_calls[] = {
    SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
};

constexpr uint32_t new_namespace_flags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                         CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr uint32_t x32_bit = 0x40000000;
constexpr uint32_t refuse = SECCOMP_RET_ERRNO | EPERM;

struct Filter {
    sock_filter code[256];
    unsigned short size = 0;

    void emit(uint16_t op, uint32_t value, uint8_t skip_if_true = 0, uint8_t skip_if_false = 0) {
        code[size++] = sock_filter{op, skip_if_true, skip_if_false, value};
    }
    void load(uint32_t offset) { emit(BPF_LD | BPF_W | BPF_ABS, offset); }
    // Low half of an argument: pids, signals and clone flags of 32 bits.
    void load_argument(unsigned index) {
        load(static_cast<uint32_t>(offsetof(seccomp_data, args) + 8 * index));
    }
    void load_number() { load(offsetof(seccomp_data, nr)); }
    void answer(uint32_t action) { emit(BPF_RET | BPF_K, action); }
    void answer_if_equal(uint32_t value, uint32_t action) {
        emit(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
        answer(action);
    }
};

inline void emit_signal_rules(Filter& filter, const ProtectedPids& pids) {
    // Skip the block of comparisons unless the call sends a signal.
    constexpr uint8_t body = 8;  // a load, three pairs, an answer
    constexpr uint8_t calls = sizeof(signal_calls) / sizeof(signal_calls[0]);
    for (uint8_t i = 0; i < calls; ++i) {
        const bool last = i + 1 == calls;
        filter.emit(BPF_JMP | BPF_JEQ | BPF_K, signal_calls[i],
                    static_cast<uint8_t>(calls - 1 - i), last ? body : 0);
    }
    filter.load_argument(0);
    filter.emit(BPF_JMP | BPF_JSET | BPF_K, 0x80000000u, 0, 1);
    filter.answer(refuse);  // negative: other process groups, or every process of the user
    filter.answer_if_equal(static_cast<uint32_t>(pids.supervisor ? pids.supervisor : -1), refuse);
    filter.answer_if_equal(static_cast<uint32_t>(pids.parent ? pids.parent : -1), refuse);
    filter.answer(SECCOMP_RET_ALLOW);
}

inline void emit_socket_rules(Filter& filter, SocketRule rule) {
    if (rule != SocketRule::local)
        for (const uint32_t call : connecting_calls) filter.answer_if_equal(call, refuse);
    if (rule == SocketRule::none)
        for (const uint32_t call : listening_calls) filter.answer_if_equal(call, refuse);
    for (const uint32_t call : socket_making_calls) {
        const bool pair = call == SYS_socketpair;
        if (rule == SocketRule::none || (pair && rule == SocketRule::local_listener)) {
            filter.answer_if_equal(call, refuse);
            continue;
        }
        filter.emit(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4);
        filter.load_argument(0);
        filter.emit(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0);
        filter.answer(refuse);
        filter.answer(SECCOMP_RET_ALLOW);
    }
}

inline Filter build_filter(const FilterRules& rules, const ProtectedPids& pids) {
    Filter filter;
    filter.load(offsetof(seccomp_data, arch));
    filter.emit(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    filter.answer(SECCOMP_RET_KILL_PROCESS);  // the 32-bit entry has numbers of its own
    filter.load_number();
    filter.emit(BPF_JMP | BPF_JGE | BPF_K, x32_bit, 0, 1);
    filter.answer(SECCOMP_RET_KILL_PROCESS);
    for (const uint32_t call : refused_calls) filter.answer_if_equal(call, refuse);
    emit_socket_rules(filter, rules.sockets);
    // Says that it worked and does nothing: ninja gives up where a compiler it starts cannot have a
    // process group of its own.
    filter.answer_if_equal(SYS_setpgid, SECCOMP_RET_ERRNO | 0);
    if (rules.exec != ExecRule::allowed) {
        const uint32_t action = rules.exec == ExecRule::asked ? SECCOMP_RET_USER_NOTIF : refuse;
        filter.answer_if_equal(SYS_execve, action);
        filter.answer_if_equal(SYS_execveat, action);
    }
    // The flags of clone3 lie in memory, out of a filter's reach; glibc falls back to clone.
    filter.answer_if_equal(435 /* clone3 */, SECCOMP_RET_ERRNO | ENOSYS);
    emit_signal_rules(filter, pids);
    filter.emit(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
    filter.load_argument(0);
    filter.emit(BPF_JMP | BPF_JSET | BPF_K, new_namespace_flags, 0, 1);
    filter.answer(refuse);
    filter.answer(SECCOMP_RET_ALLOW);
    // Only its own limits: prlimit64 names another process by its first argument.
    filter.emit(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 3);
    filter.load_argument(0);
    filter.emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
    filter.answer(refuse);
    filter.answer(SECCOMP_RET_ALLOW);
    return filter;
}

}  // namespace detail

// Sets no_new_privs and installs the filter for the calling thread and its future children; other
// threads that already run are not covered. Returns the listener's descriptor (close-on-exec) for
// ExecRule::asked (Linux 5.5), 0 otherwise, -1 with errno on failure.
inline int install_filter(const FilterRules& rules, const ProtectedPids& pids = ProtectedPids()) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    detail::Filter filter = detail::build_filter(rules, pids);
    const sock_fprog program{filter.size, filter.code};
    const unsigned flags = rules.exec == ExecRule::asked ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
    return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

}  // namespace kopt_sandbox
