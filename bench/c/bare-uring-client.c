/* Yardstick: the least an HTTP load generator can do over io_uring. One thread sends fixed bytes, counts bytes, and checks
 * nothing. One io_uring_enter(2) submits the sends and receives that are due and waits for what completes.
 *
 * Usage: bare-uring-client ADDRESS:PORT PATH USERS SECONDS prints `requests BYTES_IN`. Without arguments it tries only
 * whether the system lets it have a ring.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = 4096, BUFFER = 1 << 20, WAIT_NS = 100000000 };

/* Added to a user's number, for what is told of a send. */
static const uint64_t SENT = UINT64_C(1) << 32;

static struct {
    int fd;
    /* Shared with the kernel. */
    unsigned *submissions_head, *submissions_tail, *completions_head, *completions_tail;
    struct io_uring_sqe *submissions;
    struct io_uring_cqe *completions;
    unsigned submissions_mask, completions_mask, places;
    /* Where the next submission goes; the kernel is told with the next call. */
    unsigned next;
} ring;

static struct sockaddr_in server = {.sin_family = AF_INET};
static char request[HEAD];
static unsigned request_length;
/* Bodies are discarded in the kernel, as nstar does, without a copy: all users share the buffer. */
static char buffer[BUFFER];

static _Noreturn void fail(const char *what) {
    perror(what);
    exit(1);
}

static void *mapped(size_t bytes, off_t offset) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, offset);
    if (memory == MAP_FAILED) fail("mmap");
    return memory;
}

/* The best set-up that the kernel has: completions wait for the call that asks for them (6.1), or at least interrupt
 * nothing (5.19). Older kernels have neither, and lack flags that are used below. */
static struct io_uring_params set_up(unsigned places) {
    static const unsigned kinds[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, IORING_SETUP_COOP_TASKRUN};
    struct io_uring_params params;
    for (size_t at = 0; at < sizeof kinds / sizeof *kinds; at++) {
        memset(&params, 0, sizeof params);
        params.flags = kinds[at] | IORING_SETUP_CLAMP;
        ring.fd = (int)syscall(__NR_io_uring_setup, places, &params);
        if (ring.fd >= 0 || errno != EINVAL) break;
    }
    if (ring.fd < 0) fail("io_uring_setup");
    return params;
}

static void make_ring(unsigned places) {
    struct io_uring_params params = set_up(places);
    size_t one = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    size_t other = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    char *shared = mapped(one > other ? one : other, IORING_OFF_SQ_RING);
    ring.submissions = mapped(params.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    ring.submissions_head = (unsigned *)(shared + params.sq_off.head);
    ring.submissions_tail = (unsigned *)(shared + params.sq_off.tail);
    ring.submissions_mask = *(unsigned *)(shared + params.sq_off.ring_mask);
    ring.completions_head = (unsigned *)(shared + params.cq_off.head);
    ring.completions_tail = (unsigned *)(shared + params.cq_off.tail);
    ring.completions_mask = *(unsigned *)(shared + params.cq_off.ring_mask);
    ring.completions = (struct io_uring_cqe *)(shared + params.cq_off.cqes);
    ring.places = params.sq_entries;
    unsigned *order = (unsigned *)(shared + params.sq_off.array);
    for (unsigned at = 0; at < params.sq_entries; at++) order[at] = at;
}

/* Submits what is due and waits for so many completions, for a tenth of a second at most. */
static void enter(unsigned completions) {
    static const struct __kernel_timespec limit = {.tv_nsec = WAIT_NS};
    struct io_uring_getevents_arg how = {.ts = (uintptr_t)&limit};
    __atomic_store_n(ring.submissions_tail, ring.next, __ATOMIC_RELEASE);
    unsigned due = ring.next - __atomic_load_n(ring.submissions_head, __ATOMIC_ACQUIRE);
    unsigned flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
    long done = syscall(__NR_io_uring_enter, ring.fd, due, completions, flags, &how, sizeof how);
    if (done < 0 && errno != ETIME && errno != EINTR && errno != EAGAIN && errno != EBUSY) fail("io_uring_enter");
}

/* A place for an operation on a user's socket. */
static struct io_uring_sqe *place(unsigned user, unsigned char operation) {
    if (ring.next - __atomic_load_n(ring.submissions_head, __ATOMIC_ACQUIRE) == ring.places) enter(0);
    if (ring.next - __atomic_load_n(ring.submissions_head, __ATOMIC_ACQUIRE) == ring.places) {
        fprintf(stderr, "io_uring: no place is free\n");
        exit(1);
    }
    struct io_uring_sqe *entry = &ring.submissions[ring.next++ & ring.submissions_mask];
    memset(entry, 0, sizeof *entry);
    entry->opcode = operation;
    entry->flags = IOSQE_FIXED_FILE;
    entry->fd = (int)user;
    entry->user_data = user;
    return entry;
}

/* `at_once`: without a wait for the socket first, because there may be something to receive. */
static void receive(unsigned user, int at_once) {
    struct io_uring_sqe *entry = place(user, IORING_OP_RECV);
    entry->ioprio = at_once ? 0 : IORING_RECVSEND_POLL_FIRST;
    entry->addr = (uintptr_t)buffer;
    entry->len = BUFFER;
    entry->msg_flags = MSG_TRUNC;
}

static void ask(unsigned user) {
    struct io_uring_sqe *entry = place(user, IORING_OP_SEND);
    /* Of a send, only that it failed or was cut short is told. */
    entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
    entry->user_data |= SENT;
    entry->addr = (uintptr_t)request;
    entry->len = request_length;
    entry->msg_flags = MSG_NOSIGNAL | MSG_WAITALL;
    receive(user, 0);
}

static int connected(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&server, sizeof server)) fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return fd;
}

/* The length of a whole response, by asking once. */
static int64_t response_length(void) {
    char head[HEAD];
    size_t filled = 0;
    char *end = NULL;
    int fd = connected();
    if (send(fd, request, request_length, MSG_NOSIGNAL) != (ssize_t)request_length) fail("send");
    while (!end) {
        ssize_t count = recv(fd, head + filled, sizeof head - 1 - filled, 0);
        /* Closed, or longer than there is room for. */
        if (count == 0) errno = EPROTO;
        if (count <= 0) fail("no head of a response");
        filled += (size_t)count;
        head[filled] = 0;
        end = strstr(head, "\r\n\r\n");
    }
    close(fd);
    char *length = strcasestr(head, "content-length:");
    if (!length || length > end) {
        fprintf(stderr, "the response has no Content-Length\n");
        exit(1);
    }
    return end + 4 - head + atoll(length + 15);
}

static void connect_all(unsigned users) {
    int *sockets = malloc(users * sizeof *sockets);
    if (!sockets) fail("malloc");
    for (unsigned user = 0; user < users; user++) sockets[user] = connected();
    if (syscall(__NR_io_uring_register, ring.fd, IORING_REGISTER_FILES, sockets, users)) fail("io_uring_register");
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void drive(unsigned users, int64_t length, double seconds) {
    int64_t *left = malloc(users * sizeof *left);
    if (!left) fail("malloc");
    unsigned long long requests = 0, bytes = 0;
    for (unsigned user = 0; user < users; user++) {
        left[user] = length;
        ask(user);
    }
    for (double end = now() + seconds; now() < end;) {
        enter(1);
        unsigned head = *ring.completions_head, tail = __atomic_load_n(ring.completions_tail, __ATOMIC_ACQUIRE);
        for (; head != tail; head++) {
            const struct io_uring_cqe *completion = &ring.completions[head & ring.completions_mask];
            unsigned user = (unsigned)completion->user_data;
            errno = completion->res < 0 ? -completion->res : ECONNRESET;
            if (completion->res <= 0 || completion->user_data & SENT) fail("a request");
            bytes += (unsigned)completion->res;
            left[user] -= completion->res;
            if (left[user] > 0) {
                receive(user, 1);
                continue;
            }
            requests++;
            left[user] = length;
            ask(user);
        }
        __atomic_store_n(ring.completions_head, head, __ATOMIC_RELEASE);
    }
    printf("%llu %llu\n", requests, bytes);
}

int main(int argc, char **argv) {
    if (argc == 1) return make_ring(2), 0;
    char host[64] = "";
    int port = 0;
    if (argc != 5 || sscanf(argv[1], "%63[^:]:%d", host, &port) != 2)
        return fprintf(stderr, "usage: bare-uring-client ADDRESS:PORT PATH USERS SECONDS\n"), 2;
    server.sin_port = htons((uint16_t)port);
    unsigned users = (unsigned)strtoul(argv[3], NULL, 10);
    int printed = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", argv[2], argv[1]);
    if (inet_pton(AF_INET, host, &server.sin_addr) != 1 || users < 1 || printed < 0 || printed >= HEAD)
        return fprintf(stderr, "bare-uring-client: bad arguments\n"), 2;
    request_length = (unsigned)printed;
    int64_t length = response_length();
    /* A send and a receive for each user. */
    make_ring(2 * users);
    connect_all(users);
    drive(users, length, strtod(argv[4], NULL));
    return 0;
}
