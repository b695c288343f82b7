#ifndef COALESCED_CLIBEVENT_SHIM_H
#define COALESCED_CLIBEVENT_SHIM_H

// First: event2/event-config.h defines _GNU_SOURCE, and `fd_set` would then differ from the one Glibc's module has.
#include <sys/types.h>
#include <sys/socket.h>

#include <event2/event.h>
#include <event2/util.h>

// Not in Swift's Glibc module.
#include <malloc.h>
#include <signal.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// Swift does not import variadic functions, nor those that glibc declares only under _GNU_SOURCE.
static inline void coalesced_name_thread(const char *_Nonnull name) {
    prctl(PR_SET_NAME, name, 0, 0, 0);
}

static inline int coalesced_accept(int listener, struct sockaddr *_Nonnull address, socklen_t *_Nonnull length) {
    extern int accept4(int, struct sockaddr *, socklen_t *, int);
    return accept4(listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

// The process that made the socket pair of which `descriptor` is an end; 0 if it is no such end. Also if that process has ended (unix(7)).
static inline pid_t coalesced_peer_process(int descriptor) {
    struct { pid_t process; uid_t user; gid_t group; } peer = {0, 0, 0};
    socklen_t length = sizeof peer;
    return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.process : 0;
}

// Starts a program that the kernel kills when the calling thread ends, in a process group of its own. -1 and `errno` if there is no process
// for it. Between `fork` and `execve` only calls that are safe in a program with threads.
static inline pid_t coalesced_start_child(const char *_Nonnull path, char *_Nullable const *_Nonnull arguments,
                                          char *_Nullable const *_Nonnull variables) {
    pid_t parent = getpid();
    pid_t child = fork();
    if (child != 0) return child;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    // The parent may have ended before it could be watched.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent) execve(path, arguments, variables);
    _exit(127);
}

// In a program with threads those of glibc make each call a point where the thread can be cancelled, in two atomic instructions. Nobody cancels ours.
extern long syscall(long number, ...);

// Gives how many bytes the kernel wrote; that of glibc does not.
static inline long coalesced_affinity(void *_Nonnull mask, size_t size) {
    return syscall(SYS_sched_getaffinity, 0, size, mask);
}

static inline ssize_t coalesced_receive(int descriptor, void *_Nonnull bytes, size_t count) {
    return syscall(SYS_recvfrom, descriptor, bytes, count, 0, NULL, NULL);
}

static inline ssize_t coalesced_send(int descriptor, const void *_Nullable bytes, size_t count) {
    return syscall(SYS_sendto, descriptor, bytes, count, MSG_NOSIGNAL, NULL, 0);
}

static inline ssize_t coalesced_send_message(int descriptor, const struct msghdr *_Nonnull message) {
    return syscall(SYS_sendmsg, descriptor, message, MSG_NOSIGNAL);
}

#endif
