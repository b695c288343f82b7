#ifndef COALESCED_CLIBEVENT_SHIM_H
#define COALESCED_CLIBEVENT_SHIM_H

// First: event2/event-config.h defines _GNU_SOURCE, and `fd_set` would then differ from the one Glibc's module has.
#include <sys/types.h>
#include <sys/socket.h>

#include <event2/event.h>
#include <event2/dns.h>
#include <event2/util.h>

// Not in Swift's Glibc module.
#include <malloc.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

// Swift does not import variadic functions, nor those that glibc declares only under _GNU_SOURCE.
static inline void coalesced_name_thread(const char *_Nonnull name) {
    prctl(PR_SET_NAME, name, 0, 0, 0);
}

static inline int coalesced_accept(int listener, struct sockaddr *_Nonnull address, socklen_t *_Nonnull length) {
    extern int accept4(int, struct sockaddr *, socklen_t *, int);
    return accept4(listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

#endif
