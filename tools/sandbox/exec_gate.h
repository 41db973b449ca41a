// Lets exactly one execve through a seccomp filter: the one that turns the launcher's child into the
// confined program. The filter alone cannot tell the first call from a later one, so the child hands
// a notification listener to its supervisor, which answers once and closes it; from then on the
// kernel itself fails every execve with ENOSYS. Needs Linux 5.5 (SECCOMP_USER_NOTIF_FLAG_CONTINUE).
#pragma once

#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace kopt_sandbox {

struct DescriptorMessage {
    char byte = 0;
    iovec part{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};

    DescriptorMessage() {
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
    }
    DescriptorMessage(const DescriptorMessage&) = delete;  // it holds pointers into itself
};

// In the child: sends the listener over a unix socket and closes it.
inline bool hand_over_listener(int channel, int listener) {
    DescriptorMessage packet;
    cmsghdr* header = CMSG_FIRSTHDR(&packet.message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &listener, sizeof listener);
    const bool sent = sendmsg(channel, &packet.message, 0) == 1;
    close(listener);
    return sent;
}

// In the supervisor: approves one execve. A child that ends before it, or a reader of `status_fd`
// that has gone, ends the wait too. False if the kernel lacks the interface.
inline bool admit_one_exec(int channel, int status_fd) {
    DescriptorMessage packet;
    if (recvmsg(channel, &packet.message, MSG_CMSG_CLOEXEC) != 1) return true;
    int listener;
    memcpy(&listener, CMSG_DATA(CMSG_FIRSTHDR(&packet.message)), sizeof listener);
    pollfd events[2] = {{listener, POLLIN, 0}, {status_fd, 0, 0}};
    bool ok = true;
    if (poll(events, 2, -1) > 0 && (events[0].revents & POLLIN) != 0) {
        seccomp_notif request{};
        seccomp_notif_resp response{};
        ok = ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) == 0;
        response.id = request.id;
        response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        ok = ok && ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) == 0;
    }
    close(listener);
    return ok;
}

}  // namespace kopt_sandbox
