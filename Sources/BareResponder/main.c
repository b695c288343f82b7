// The barest possible server, the unit of docs/benchmarks.md: one thread, epoll, read, writev. It parses nothing and answers
// whatever it reads with one fixed response, so what it costs is the kernel's part of a request.
//
//     BareResponder PORT BODY-BYTES [counting | closing | holding | twice | relaying ORIGIN-PORT]
//
// With `counting` it looks for the ends of request heads, as pipelining needs it, and answers those that came together in one write. With
// `closing` it says so and closes after each answer. With `holding` those who ask for `/s/…` wait until nobody has come for 400 ms; then each
// gets half of the body, and 300 ms later the rest: the kernel's part of a crowd that waits for one fetch; those who ask for `/w/…` get all of
// it at once. With `twice` two processes serve, each with a listener of its own, and count. With `relaying` each client has a connection to the origin,
// and what comes on one is written to the other: the kernel's part of a pass or a miss.
//
// Of a large body 128 KiB are queued at a time, as coalesced does on loopback: on the sockets of those who get one.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_DESCRIPTORS = 65536, MOST_EVENTS = 256, BUFFER = 16384, QUIET = 400, PAUSE = 300 };
enum { MOST_TOGETHER = 16, LARGE_BODY = 262144, LARGE_QUEUE = 131072 };

// Responses owed and how much of the first is written, by descriptor.
static struct { int owed; size_t written; } connections[MOST_DESCRIPTORS];
static char buffer[BUFFER];
static char head[256];
static char *body;
static size_t head_length, body_length;
static int poll_set;
// Those who wait, in the order in which they came; whether they have their first half.
static int held[MOST_DESCRIPTORS];
static size_t held_count;
static int half_sent;
static int held_for_whole;
// With `relaying`: the other end, by descriptor.
static int other_end[MOST_DESCRIPTORS];
static in_port_t origin_port;

static void arm(int descriptor, unsigned events, int operation) {
    struct epoll_event event = { .events = events, .data.fd = descriptor };
    epoll_ctl(poll_set, operation, descriptor, &event);
}

// 1 when all is written, 0 when the kernel takes no more, -1 when the connection is gone.
static int answer(int descriptor) {
    size_t total = head_length + body_length;
    while (connections[descriptor].owed > 0) {
        struct iovec parts[2 * MOST_TOGETHER];
        int together = 0;
        for (; together < connections[descriptor].owed && together < MOST_TOGETHER; together++) {
            size_t written = together == 0 ? connections[descriptor].written : 0;
            size_t from_head = written < head_length ? written : head_length;
            parts[2 * together] = (struct iovec) { head + from_head, head_length - from_head };
            parts[2 * together + 1] = (struct iovec) { body + (written - from_head), body_length - (written - from_head) };
        }
        ssize_t count = writev(descriptor, parts, 2 * together);
        if (count < 0) return errno == EAGAIN ? 0 : -1;
        size_t sent = connections[descriptor].written + (size_t)count;
        connections[descriptor].owed -= (int)(sent / total);
        connections[descriptor].written = sent % total;
    }
    return 1;
}

static int requests(ssize_t length, int counting) {
    if (!counting) return 1;
    int found = 0;
    for (char *at = buffer; (at = memmem(at, (size_t)(buffer + length - at), "\r\n\r\n", 4)); at += 4) found++;
    return found;
}

// The next half for all who wait. One that takes only part of it would get the rest never: halves are small.
static void serve_held(void) {
    size_t half = held_for_whole ? 0 : body_length / 2;
    for (size_t index = 0; index < held_count; index++) {
        struct iovec first[2] = { { head, head_length }, { body, body_length - half } };
        ssize_t count = half_sent ? write(held[index], body, half) : writev(held[index], first, 2);
        if (count < 0 && errno != EAGAIN) close(held[index]);
    }
    half_sent = !half_sent && !held_for_whole;
    if (!half_sent) held_count = 0;
}

// What one end sends goes to the other. One that takes only part of it is closed: what is relayed here is small.
static void relay(int descriptor) {
    ssize_t length = read(descriptor, buffer, sizeof buffer);
    if (length < 0 && errno == EAGAIN) return;
    if (length > 0 && write(other_end[descriptor], buffer, (size_t)length) == length) return;
    close(other_end[descriptor]);
    close(descriptor);
}

// A connection to the origin for the client at `descriptor`.
static int join_ends(int descriptor) {
    struct sockaddr_in origin = { .sin_family = AF_INET, .sin_port = origin_port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (other < 0 || other >= MOST_DESCRIPTORS || connect(other, (struct sockaddr *)&origin, sizeof origin) != 0) return -1;
    fcntl(other, F_SETFL, O_NONBLOCK);
    setsockopt(other, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    other_end[descriptor] = other;
    other_end[other] = descriptor;
    arm(other, EPOLLIN, EPOLL_CTL_ADD);
    return 0;
}

static void serve(struct epoll_event event, int counting, int closing, int holding) {
    int descriptor = event.data.fd;
    int outcome;
    if (origin_port) return relay(descriptor);
    if (event.events & EPOLLOUT) {
        outcome = answer(descriptor);
        if (outcome == 1) arm(descriptor, EPOLLIN, EPOLL_CTL_MOD);
    } else {
        ssize_t length = read(descriptor, buffer, sizeof buffer);
        if (length < 0 && errno == EAGAIN) return;
        if (length > 6 && holding && memcmp(buffer, "GET /", 5) == 0 && (buffer[5] == 's' || buffer[5] == 'w') && buffer[6] == '/') {
            held_for_whole = buffer[5] == 'w';
            if (held_count < MOST_DESCRIPTORS) held[held_count++] = descriptor;
            return;
        }
        if (length > 0) connections[descriptor].owed += requests(length, counting);
        outcome = length > 0 ? answer(descriptor) : -1;
        if (outcome == 0) arm(descriptor, EPOLLOUT, EPOLL_CTL_MOD);
    }
    if (outcome < 0 || (outcome == 1 && closing)) close(descriptor);
}

static void accept_all(int listener) {
    int descriptor, one = 1;
    while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (descriptor >= MOST_DESCRIPTORS || (origin_port && join_ends(descriptor) != 0)) { close(descriptor); continue; }
        connections[descriptor].owed = 0;
        connections[descriptor].written = 0;
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        int most = LARGE_QUEUE;
        if (body_length >= LARGE_BODY) setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &most, sizeof most);
        arm(descriptor, EPOLLIN, EPOLL_CTL_ADD);
    }
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: BareResponder PORT BODY-BYTES [counting | closing | holding | twice | relaying ORIGIN-PORT]\n");
        return 64;
    }
    int twice = count > 3 && strcmp(arguments[3], "twice") == 0;
    int counting = twice || (count > 3 && strcmp(arguments[3], "counting") == 0);
    int closing = count > 3 && strcmp(arguments[3], "closing") == 0;
    int holding = count > 3 && strcmp(arguments[3], "holding") == 0;
    if (count > 4 && strcmp(arguments[3], "relaying") == 0) origin_port = htons((uint16_t)atoi(arguments[4]));
    signal(SIGPIPE, SIG_IGN);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    body_length = strtoul(arguments[2], NULL, 10);
    body = malloc(body_length + 1);
    memset(body, 'x', body_length);
    head_length = (size_t)snprintf(head, sizeof head,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: max-age=3600\r\nContent-Length: %zu\r\n%s\r\n",
        body_length, closing ? "Connection: close\r\n" : "");

    // The second ends with the first.
    if (twice && fork() == 0) prctl(PR_SET_PDEATHSIG, SIGTERM);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (twice) setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arguments[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 4096) != 0) {
        perror("listen");
        return 69;
    }
    poll_set = epoll_create1(EPOLL_CLOEXEC);
    arm(listener, EPOLLIN, EPOLL_CTL_ADD);
    struct epoll_event events[MOST_EVENTS];
    for (;;) {
        int ready = epoll_wait(poll_set, events, MOST_EVENTS, held_count == 0 ? -1 : half_sent ? PAUSE : QUIET);
        if (ready == 0) serve_held();
        for (int index = 0; index < ready; index++) {
            if (events[index].data.fd == listener) accept_all(listener);
            else serve(events[index], counting, closing, holding);
        }
    }
}
