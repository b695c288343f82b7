// What the benchmarks need of glibc and its Swift module leaves out. epoll's packed event would not import well either.

#ifndef CEPOLL_SHIM_H
#define CEPOLL_SHIM_H

#include <sys/epoll.h>
#include <sys/types.h>

static inline int poll_set_make(void) { return epoll_create1(EPOLL_CLOEXEC); }

// `tag` is what poll_set_wait gives.
static inline int poll_set_watch(int set, int descriptor, int tag, int writing, int is_new) {
    struct epoll_event event = { .events = writing ? EPOLLOUT : EPOLLIN, .data = { .fd = tag } };
    return epoll_ctl(set, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event);
}

// The tags of at most 256 descriptors that are ready.
static inline int poll_set_wait(int set, int *ready, int milliseconds) {
    struct epoll_event events[256];
    int count = epoll_wait(set, events, 256, milliseconds);
    for (int index = 0; index < count; index++) ready[index] = events[index].data.fd;
    return count;
}

// Both are in glibc for everybody, and in its headers only under _GNU_SOURCE, which must not differ from one module to the next.
extern int sched_setaffinity(pid_t, size_t, const void *);
extern void *memmem(const void *, size_t, const void *, size_t);

// The calling thread and those it starts from now on run on this core only.
static inline int pin_to_core(int core) {
    unsigned long mask = 1ul << core;
    return sched_setaffinity(0, sizeof mask, &mask);
}

// Where the word begins first, or -1.
static inline long find_bytes(const void *bytes, size_t count, const void *word, size_t length) {
    const char *found = count > 0 ? memmem(bytes, count, word, length) : 0;
    return found ? found - (const char *)bytes : -1;
}

#endif
