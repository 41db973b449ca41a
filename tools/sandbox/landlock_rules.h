// Landlock rules of the launcher, written against the kernel's numbers and not against
// <linux/landlock.h>, which is often older than the running kernel. Everything the ABI can restrict
// is restricted; what the rules name is given back. Source: include/uapi/linux/landlock.h.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace kopt_sandbox {

namespace landlock {

constexpr long create_ruleset = 444;
constexpr long add_rule = 445;
constexpr long restrict_self = 446;
constexpr uint32_t version_flag = 1;
constexpr int rule_path_beneath = 1;

constexpr uint64_t execute = 1u << 0;
constexpr uint64_t write_file = 1u << 1;
constexpr uint64_t read_file = 1u << 2;
constexpr uint64_t read_dir = 1u << 3;
constexpr uint64_t refer = 1u << 13;      // ABI 2
constexpr uint64_t truncate = 1u << 14;   // ABI 3
constexpr uint64_t ioctl_dev = 1u << 15;  // ABI 5
constexpr uint64_t make_device_nodes = (1u << 6) | (1u << 11);
constexpr uint64_t abi1_rights = (1u << 13) - 1;
constexpr uint64_t file_rights = execute | write_file | read_file | truncate | ioctl_dev;
constexpr uint64_t bind_and_connect_tcp = 3;     // ABI 4
constexpr uint64_t abstract_unix_and_signal = 3;  // ABI 6

struct RulesetAttributes {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

struct __attribute__((packed)) PathBeneathAttributes {
    uint64_t allowed_access;
    int32_t parent_fd;
};

}  // namespace landlock

// The ABI of the running kernel; 0 where Landlock is missing or switched off.
inline int landlock_abi() {
    const long abi = syscall(landlock::create_ruleset, nullptr, 0, landlock::version_flag);
    return abi > 0 ? static_cast<int>(abi) : 0;
}

class LandlockRules {
public:
    // Returns false with errno if the kernel refuses the ruleset.
    bool create(int abi) {
        handled_ = landlock::abi1_rights;
        if (abi >= 2) handled_ |= landlock::refer;
        if (abi >= 3) handled_ |= landlock::truncate;
        if (abi >= 5) handled_ |= landlock::ioctl_dev;
        landlock::RulesetAttributes attributes{handled_, 0, 0};
        size_t size = sizeof(uint64_t);  // an older kernel refuses fields that it does not know
        if (abi >= 4) {
            attributes.handled_access_net = landlock::bind_and_connect_tcp;
            size = 2 * sizeof(uint64_t);
        }
        if (abi >= 6) {
            attributes.scoped = landlock::abstract_unix_and_signal;
            size = 3 * sizeof(uint64_t);
        }
        ruleset_ = static_cast<int>(syscall(landlock::create_ruleset, &attributes, size, 0));
        return ruleset_ >= 0;
    }

    bool allow_reading(const char* path) {
        return allow(path, landlock::execute | landlock::read_file | landlock::read_dir);
    }
    bool allow_writing(const char* path) {
        return allow(path, handled_ & ~landlock::make_device_nodes & ~landlock::ioctl_dev);
    }
    // A character device, or a folder of such: opened both ways, and sent ioctls.
    bool allow_device(const char* path) {
        return allow(path, landlock::read_file | landlock::write_file | landlock::read_dir |
                               landlock::ioctl_dev);
    }
    // The calling process's own entries: cuInit names its threads by writing to task/<tid>/comm and
    // fails (error 304) where it cannot. Children have other numbers and are not covered.
    bool allow_own_proc() {
        return allow("/proc/self", landlock::write_file | landlock::truncate);
    }
    bool restrict() { return syscall(landlock::restrict_self, ruleset_, 0) == 0; }

private:
    // A path that does not exist needs no rule.
    bool allow(const char* path, uint64_t access) {
        const int fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0) return errno == ENOENT || errno == ENOTDIR || errno == EACCES;
        struct stat status;
        if (fstat(fd, &status) != 0) return false;
        if (!S_ISDIR(status.st_mode)) access &= landlock::file_rights;
        const landlock::PathBeneathAttributes rule{access & handled_, fd};
        const bool ok =
            syscall(landlock::add_rule, ruleset_, landlock::rule_path_beneath, &rule, 0) == 0;
        close(fd);
        return ok;
    }

    uint64_t handled_ = 0;
    int ruleset_ = -1;
};

}  // namespace kopt_sandbox
