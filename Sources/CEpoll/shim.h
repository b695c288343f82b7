// epoll for the benchmarks: glibc's Swift module leaves it out, and its packed event does not import well.

#ifndef CEPOLL_SHIM_H
#define CEPOLL_SHIM_H

#include <sys/epoll.h>

static inline int poll_set_make(void) { return epoll_create1(EPOLL_CLOEXEC); }

static inline int poll_set_watch(int set, int descriptor, int writing, int is_new) {
    struct epoll_event event = { .events = writing ? EPOLLOUT : EPOLLIN, .data = { .fd = descriptor } };
    return epoll_ctl(set, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event);
}

// At most 256 descriptors that are ready.
static inline int poll_set_wait(int set, int *ready, int milliseconds) {
    struct epoll_event events[256];
    int count = epoll_wait(set, events, 256, milliseconds);
    for (int index = 0; index < count; index++) ready[index] = events[index].data.fd;
    return count;
}

#endif
