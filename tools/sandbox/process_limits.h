// Resource limits and privileges of the confined program. There is never a limit on address space
// (RLIMIT_AS): CUDA and sanitizers reserve terabytes that they do not use.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace kopt_sandbox {

struct ProcessLimits {
    unsigned long file_bytes = 0;
    unsigned long cpu_s = 0;  // 0: no limit
    unsigned long processes = 0;
    unsigned long memory_bytes = 0;  // private writable memory of one process; 0: no limit
    unsigned long tree_bytes = 0;    // what all processes hold together; 0: no limit

    // RLIMIT_NPROC counts all threads of the user, so those that exist already are added to it.
    // In a user namespace of its own (bubblewrap without root) nearly none are seen nor counted.
    void count_existing() {
        struct sysinfo machine;
        if (sysinfo(&machine) == 0) machine_threads_before_ = machine.procs;
        DIR* proc = opendir("/proc");
        if (proc == nullptr) return;
        while (const dirent* entry = readdir(proc)) {
            if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
            char path[280];
            snprintf(path, sizeof path, "%s/task", entry->d_name);
            struct stat status;
            if (fstatat(dirfd(proc), path, &status, 0) == 0 && status.st_uid == getuid())
                user_threads_before_ += status.st_nlink - 2;  // one link a thread, and . and ..
        }
        closedir(proc);
    }

    // To be called in the program's own process, before its privileges are dropped.
    bool apply() const {
        const unsigned long threads = user_threads_before_ + processes;
        return set(RLIMIT_CORE, 0, 0) && set(RLIMIT_FSIZE, file_bytes, file_bytes) &&
               // SIGXCPU, a second later SIGKILL
               (cpu_s == 0 || set(RLIMIT_CPU, cpu_s, cpu_s + 1)) &&
               set(RLIMIT_NPROC, threads, threads) &&
               (memory_bytes == 0 ? lift(RLIMIT_DATA) : set(RLIMIT_DATA, memory_bytes, memory_bytes));
    }

    // Root is exempt from RLIMIT_NPROC, so its groups are counted; the cheap test of the machine's
    // thread count comes first.
    bool exceeded_by_group(pid_t group) const {
        struct sysinfo machine;
        if (getuid() != 0 || sysinfo(&machine) != 0) return false;
        return machine.procs > machine_threads_before_ + processes && members(group) > processes;
    }

    // What is shared, such as mapped files, counts once; a page of it that only some processes have
    // touched may count less.
    bool tree_exceeds_memory(pid_t root) const {
        if (tree_bytes == 0) return false;
        Held held;
        add_tree(root, 0, held);
        const unsigned long page = static_cast<unsigned long>(sysconf(_SC_PAGESIZE));
        return (held.own + held.shared) * page > tree_bytes;
    }

private:
    // kopt itself may be under a limit of its own while it starts this process.
    static bool lift(__rlimit_resource resource) {
        rlimit value;
        return getrlimit(resource, &value) == 0 && set(resource, value.rlim_max, value.rlim_max);
    }

    struct Held {
        unsigned long own = 0, shared = 0;  // in pages
    };

    static void add_tree(pid_t process, int depth, Held& held) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/statm", process);
        if (FILE* file = fopen(path, "re")) {
            unsigned long resident = 0, shared = 0;
            if (fscanf(file, "%*u %lu %lu", &resident, &shared) == 2 && resident >= shared) {
                held.own += resident - shared;
                if (shared > held.shared) held.shared = shared;
            }
            fclose(file);
        }
        if (depth == max_depth) return;
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", process, process);
        if (FILE* children = fopen(path, "re")) {
            int child;
            while (fscanf(children, "%d", &child) == 1) add_tree(child, depth + 1, held);
            fclose(children);
        }
    }

    static constexpr int max_depth = 16;

    static bool set(__rlimit_resource resource, unsigned long soft, unsigned long hard) {
        const rlimit value{soft, hard};
        return setrlimit(resource, &value) == 0;
    }

    static unsigned long members(pid_t group) {
        DIR* proc = opendir("/proc");
        if (proc == nullptr) return 0;
        unsigned long count = 0;
        while (const dirent* entry = readdir(proc)) {
            const pid_t pid = atoi(entry->d_name);
            if (pid > 0 && getpgid(pid) == group) ++count;
        }
        closedir(proc);
        return count;
    }

    unsigned long user_threads_before_ = 0;
    unsigned long machine_threads_before_ = 0;
};

// Without capabilities root can neither override file modes nor look into kopt's /proc entries.
inline bool drop_capabilities() {
    for (unsigned long capability = 0; capability < 64; ++capability)
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) break;  // past the last, or not root
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const __user_cap_data_struct none[2] = {};
    return syscall(SYS_capset, &header, none) == 0;
}

// When memory runs out, the kernel ends this process first. Without /proc there is nothing to say.
inline void offer_to_oom_killer() {
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    [[maybe_unused]] const ssize_t written = write(fd, "1000", 4);
    close(fd);
}

}  // namespace kopt_sandbox
