// Starts one program confined and ends with it: at every level of the sandbox ladder this is the
// process between kopt and the program. It is a tiny init: it forks the program, waits, and leaves
// nothing behind, whatever the program forked. It decides nothing: kopt's Python side gives every
// path and number. It is not a shell: it looks nothing up in PATH.
//
//   launcher abi                         prints the Landlock ABI (0: none)
//   launcher run OPTION... -- PROGRAM ARGUMENT...
//     status-fd=N      pipe to kopt: "error TEXT", "exit N", "signal N", or "memory N" where the
//                      processes together held more than tree-bytes; its reader's end is ours
//     parent-pid=N     end at once if this is no longer the parent; 0 under a pid namespace
//     file-bytes=N processes=N cpu-s=N memory-bytes=N tree-bytes=N (the last three: 0 is no limit)
//     exec=0|1         0: only PROGRAM itself is executed, later execve calls fail
//     sockets=0|1|2    local sockets (AF_UNIX): none; to listen at, as the CUDA driver must; all
//     landlock=ABI     0: no Landlock rules
//     read=PATH write=PATH device=PATH (any number)
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "exec_gate.h"
#include "landlock_rules.h"
#include "process_limits.h"
#include "seccomp_filter.h"

extern char** environ;

namespace {

using namespace kopt_sandbox;

constexpr int max_paths = 512;
constexpr int watch_interval_ms = 50;
constexpr int memory_interval_ms = 20;

struct Options {
    int status_fd = -1;
    pid_t parent_pid = 0;
    ProcessLimits limits;
    bool allow_exec = true;
    SocketRule sockets = SocketRule::none;
    int landlock_abi = 0;
    const char* readable[max_paths];
    int readable_count = 0;
    const char* writable[max_paths];
    int writable_count = 0;
    const char* devices[max_paths];
    int device_count = 0;
    char** command = nullptr;
};

Options options;

void tell(const char* word, const char* text, const char* detail) {
    char line[512];
    const int length = snprintf(line, sizeof line, "%s %s%s\n", word, text, detail);
    const size_t size = length < static_cast<int>(sizeof line) ? static_cast<size_t>(length)
                                                                : sizeof line - 1;
    if (write(options.status_fd, line, size) < 0) _exit(125);  // nobody reads any more
}

[[noreturn]] void fail(const char* what) {
    char text[256];
    snprintf(text, sizeof text, "%s: ", what);
    tell("error", text, strerror(errno));
    _exit(125);
}

void add_path(const char** paths, int& count, const char* path) {
    if (count == max_paths) {
        errno = E2BIG;
        fail("more paths than the launcher takes");
    }
    paths[count++] = path;
}

void read_option(const char* text) {
    const char* equals = strchr(text, '=');
    const size_t name_size = equals ? static_cast<size_t>(equals - text) : 0;
    const char* value = equals ? equals + 1 : "";
    const auto is = [&](const char* name) {
        return strlen(name) == name_size && strncmp(name, text, name_size) == 0;
    };
    const unsigned long number = strtoul(value, nullptr, 10);
    if (is("status-fd")) options.status_fd = static_cast<int>(number);
    else if (is("parent-pid")) options.parent_pid = static_cast<pid_t>(number);
    else if (is("file-bytes")) options.limits.file_bytes = number;
    else if (is("cpu-s")) options.limits.cpu_s = number;
    else if (is("processes")) options.limits.processes = number;
    else if (is("memory-bytes")) options.limits.memory_bytes = number;
    else if (is("tree-bytes")) options.limits.tree_bytes = number;
    else if (is("exec")) options.allow_exec = number != 0;
    else if (is("sockets")) options.sockets = static_cast<SocketRule>(number);
    else if (is("landlock")) options.landlock_abi = static_cast<int>(number);
    else if (is("read")) add_path(options.readable, options.readable_count, value);
    else if (is("write")) add_path(options.writable, options.writable_count, value);
    else if (is("device")) add_path(options.devices, options.device_count, value);
    else {
        errno = EINVAL;
        fail(text);
    }
}

void restrict_files() {
    LandlockRules rules;
    if (!rules.create(options.landlock_abi)) fail("landlock_create_ruleset");
    for (int i = 0; i < options.readable_count; ++i)
        if (!rules.allow_reading(options.readable[i])) fail(options.readable[i]);
    for (int i = 0; i < options.writable_count; ++i)
        if (!rules.allow_writing(options.writable[i])) fail(options.writable[i]);
    for (int i = 0; i < options.device_count; ++i)
        if (!rules.allow_device(options.devices[i])) fail(options.devices[i]);
    if (options.device_count > 0 && !rules.allow_own_proc()) fail("/proc/self");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !rules.restrict())
        fail("landlock_restrict_self");
}

[[noreturn]] void become_program(pid_t supervisor, int exec_channel) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != supervisor) _exit(125);
    if (setsid() < 0) fail("setsid");
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // inherited as 0, which closes its own /proc/self to it
    offer_to_oom_killer();
    if (!options.limits.apply()) fail("setrlimit");
    if (!drop_capabilities()) fail("capset");
    if (options.landlock_abi > 0) restrict_files();
    const ExecRule rule = options.allow_exec ? ExecRule::allowed : ExecRule::asked;
    const int listener = install_filter({rule, options.sockets},
                                        ProtectedPids{supervisor, options.parent_pid});
    if (listener < 0) fail("seccomp");
    if (!options.allow_exec && !hand_over_listener(exec_channel, listener)) fail("sendmsg");
    execve(options.command[0], options.command, environ);
    fail(options.command[0]);
}

// As a subreaper this process inherits every orphan below it, so killing its children over and over
// reaches all of them. The program cannot leave its group (the filter refuses setsid), so that the
// first step ends even a fork bomb at once. Returns the wait status of the program.
int end_everything(pid_t program) {
    int program_status = 0;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    for (;;) {
        kill(-program, SIGKILL);
        kill(program, SIGKILL);
        if (FILE* children = fopen(path, "re")) {
            int child;
            while (fscanf(children, "%d", &child) == 1) kill(child, SIGKILL);
            fclose(children);
        }
        int status;
        const pid_t ended = waitpid(-1, &status, __WALL);
        if (ended == program) program_status = status;
        if (ended < 0 && errno == ECHILD) return program_status;
    }
}

// Reaps orphans; true once the program has ended. It stays a zombie, so that its process group
// keeps its number until everything in it is killed.
bool program_has_ended(pid_t program) {
    for (;;) {
        siginfo_t info{};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0) return true;
        if (info.si_pid == 0) return false;
        if (info.si_pid == program) return true;
        waitpid(info.si_pid, nullptr, __WALL);
    }
}

// Returns when the program has ended, kopt is gone or asks for the end, or a limit is broken; true
// if that was the limit on memory.
bool wait_for_end(pid_t program, int signals, const ProcessLimits& limits) {
    pollfd events[2] = {{signals, POLLIN, 0}, {options.status_fd, 0, 0}};
    int interval_ms = getuid() == 0 ? watch_interval_ms : -1;
    if (limits.tree_bytes != 0) interval_ms = memory_interval_ms;
    while (!program_has_ended(program)) {
        if (poll(events, 2, interval_ms) < 0 && errno != EINTR) return false;
        if (events[1].revents != 0) return false;  // the reader has gone
        if (limits.tree_exceeds_memory(program)) return true;
        if (limits.exceeded_by_group(program)) return false;
        signalfd_siginfo signal;
        while (read(signals, &signal, sizeof signal) == sizeof signal)
            if (signal.ssi_signo != SIGCHLD) return false;
    }
    return false;
}

int supervise() {
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);  // handled below: the program must not outlive kopt
    if (options.parent_pid != 0 && getppid() != options.parent_pid) return 125;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // nobody else opens our descriptors through /proc
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) fail("PR_SET_CHILD_SUBREAPER");
    sigset_t watched;
    sigemptyset(&watched);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&watched, signal);
    sigprocmask(SIG_SETMASK, &watched, nullptr);
    const int signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    int channel[2];
    if (signals < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) != 0)
        fail("signalfd or socketpair");
    fcntl(options.status_fd, F_SETFD, FD_CLOEXEC);
    options.limits.count_existing();

    const pid_t supervisor = getpid();
    const pid_t program = fork();
    if (program < 0) fail("fork");
    if (program == 0) become_program(supervisor, channel[1]);
    close(channel[1]);
    if (!options.allow_exec && !admit_one_exec(channel[0], options.status_fd)) fail("exec listener");
    close(channel[0]);

    const bool memory_is_up = wait_for_end(program, signals, options.limits);
    const int status = end_everything(program);
    const bool exited = WIFEXITED(status) && !memory_is_up;
    char number[16];
    snprintf(number, sizeof number, "%d", exited ? WEXITSTATUS(status) : WTERMSIG(status));
    tell(memory_is_up ? "memory" : exited ? "exit" : "signal", number, "");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2 && strcmp(argv[1], "abi") == 0) {
        printf("%d\n", kopt_sandbox::landlock_abi());
        return 0;
    }
    int i = 2;
    for (; i < argc && strcmp(argv[i], "--") != 0; ++i) read_option(argv[i]);
    if (i + 1 >= argc || options.status_fd < 0) return 125;
    options.command = argv + i + 1;
    return supervise();
}
