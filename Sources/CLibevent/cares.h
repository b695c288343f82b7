#ifndef COALESCED_CLIBEVENT_CARES_H
#define COALESCED_CLIBEVENT_CARES_H

#include <sys/types.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <ares.h>

// A channel that follows these settings and nothing else: it reads no file but a source of random numbers, and nothing of what its environment says
// (RES_OPTIONS, LOCALDOMAIN, HOSTALIASES) has an effect. Its servers are still to be set. `state_changed` is told of each descriptor what to watch it for.
static inline int coalesced_open_channel(ares_channel _Nullable *_Nonnull channel, int timeout, int tries, int rotates,
                                         ares_sock_state_cb _Nonnull state_changed, void *_Nonnull context) {
    struct ares_options options = {0};
    // Names are asked for as they are given: who asks knows the search list.
    options.flags = ARES_FLAG_EDNS | ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES;
    // What passes every network in one piece (the recommendation of DNS flag day 2020).
    options.ednspsz = 1232;
    options.timeout = timeout;
    options.tries = tries;
    options.ndots = 1;
    // Name servers only: the hosts file would be read at each look-up.
    options.lookups = (char *)"b";
    options.resolvconf_path = (char *)"/dev/null";
    options.sock_state_cb = state_changed;
    options.sock_state_cb_data = context;
    int mask = ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS | ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS
             | ARES_OPT_RESOLVCONF | ARES_OPT_SOCK_STATE_CB | (rotates ? ARES_OPT_ROTATE : ARES_OPT_NOROTATE);
#ifdef ARES_OPT_QUERY_CACHE
    // Whoever asks keeps the answers.
    options.qcache_max_ttl = 0;
    mask |= ARES_OPT_QUERY_CACHE;
#endif
    return ares_init_options(channel, &options, mask);
}

// What a status says, as far as it makes a difference here. Newer releases have the statuses in an enum, which Swift would not compare with a number.
enum coalesced_outcome {
    coalesced_found,
    coalesced_not_found,
    coalesced_bad_name,
    coalesced_timed_out,
    coalesced_local_failure,
    coalesced_server_failed
};

static inline enum coalesced_outcome coalesced_outcome_of(int status) {
    switch (status) {
    case ARES_SUCCESS: return coalesced_found;
    case ARES_ENODATA:
    case ARES_ENOTFOUND:
    case ARES_ENONAME: return coalesced_not_found;
    case ARES_EBADNAME: return coalesced_bad_name;
    case ARES_ETIMEOUT: return coalesced_timed_out;
    case ARES_ENOMEM:
    case ARES_ECANCELLED:
    case ARES_EDESTRUCTION: return coalesced_local_failure;
    default: return coalesced_server_failed;
    }
}

#endif
