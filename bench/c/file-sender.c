/* Yardstick: ways to send a file. A thread for each connection; whatever one read brings is answered with the file.
 *
 * usage: file-sender sendfile|send|map-send|send-zc ADDRESS:PORT FILE
 *
 * send and send-zc send from a mapping of the file that stays, map-send from one made for each part; send-zc through an
 * io_uring of each thread, which waits until the kernel has let go of the pages (IORING_CQE_F_NOTIF) before it goes on.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "listen.h"

static int file;
static char *mapping;
static size_t length;
static int (*send_file)(int fd);

struct ring {
    int fd;
    struct io_uring_params params;
    unsigned char *queue;
    struct io_uring_sqe *entries;
};

static __thread struct ring ring;

struct done {
    int result;
    unsigned flags;
};

static int by_sendfile(int fd) {
    for (off_t offset = 0; offset < (off_t)length;)
        if (sendfile(fd, file, &offset, length - offset) <= 0) return 0;
    return 1;
}

static int by_send(int fd) {
    for (size_t sent = 0; sent < length;) {
        ssize_t count = send(fd, mapping + sent, length - sent, MSG_NOSIGNAL);
        if (count <= 0) return 0;
        sent += count;
    }
    return 1;
}

static int by_map_send(int fd) {
    enum { PART = 1 << 20 };
    for (size_t sent = 0; sent < length;) {
        size_t part = length - sent < PART ? length - sent : PART, done = 0;
        char *mapped = mmap(NULL, part, PROT_READ, MAP_SHARED, file, sent);
        if (mapped == MAP_FAILED) return 0;
        while (done < part) {
            ssize_t count = send(fd, mapped + done, part - done, MSG_NOSIGNAL);
            if (count <= 0) break;
            done += count;
        }
        munmap(mapped, part);
        if (done < part) return 0;
        sent += part;
    }
    return 1;
}

static int make_ring(void) {
    memset(&ring.params, 0, sizeof ring.params);
    ring.params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    ring.fd = syscall(SYS_io_uring_setup, 8, &ring.params);
    if (ring.fd < 0 || !(ring.params.features & IORING_FEAT_SINGLE_MMAP)) return 0;
    struct io_cqring_offsets *completions = &ring.params.cq_off;
    size_t size = completions->cqes + ring.params.cq_entries * sizeof(struct io_uring_cqe);
    size_t submissions = ring.params.sq_off.array + ring.params.sq_entries * sizeof(unsigned);
    if (submissions > size) size = submissions;
    ring.queue = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
    ring.entries = mmap(NULL, ring.params.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED,
                        ring.fd, IORING_OFF_SQES);
    return ring.queue != MAP_FAILED && (void *)ring.entries != MAP_FAILED;
}

/* The next completion, waited for. */
static struct done next_completion(void) {
    unsigned *head = (unsigned *)(ring.queue + ring.params.cq_off.head);
    unsigned *tail = (unsigned *)(ring.queue + ring.params.cq_off.tail);
    unsigned mask = *(unsigned *)(ring.queue + ring.params.cq_off.ring_mask);
    struct io_uring_cqe *all = (struct io_uring_cqe *)(ring.queue + ring.params.cq_off.cqes);
    while (*head == __atomic_load_n(tail, __ATOMIC_ACQUIRE))
        syscall(SYS_io_uring_enter, ring.fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    struct io_uring_cqe *completion = &all[*head & mask];
    struct done done = {completion->res, completion->flags};
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return done;
}

static int by_send_zc(int fd) {
    if (!ring.queue && !make_ring()) return perror("io_uring"), 0;
    unsigned *tail = (unsigned *)(ring.queue + ring.params.sq_off.tail);
    unsigned mask = *(unsigned *)(ring.queue + ring.params.sq_off.ring_mask);
    unsigned *array = (unsigned *)(ring.queue + ring.params.sq_off.array);
    for (size_t sent = 0; sent < length;) {
        unsigned at = *tail & mask;
        struct io_uring_sqe *entry = &ring.entries[at];
        memset(entry, 0, sizeof *entry);
        entry->opcode = IORING_OP_SEND_ZC;
        entry->fd = fd;
        entry->addr = (uintptr_t)(mapping + sent);
        entry->len = length - sent;
        entry->msg_flags = MSG_NOSIGNAL | MSG_WAITALL;
        array[at] = at;
        __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
        syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
        struct done done = next_completion();
        int result = done.result;
        while (done.flags & IORING_CQE_F_MORE) done = next_completion();
        if (result <= 0) return 0;
        sent += result;
    }
    return 1;
}

static void *serve(void *argument) {
    int fd = (int)(intptr_t)argument;
    char request[4096], head[100];
    int head_length = sprintf(head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", length);
    while (read(fd, request, sizeof request) > 0)
        if (send(fd, head, head_length, MSG_MORE | MSG_NOSIGNAL) != head_length || !send_file(fd)) break;
    if (ring.queue) close(ring.fd);
    close(fd);
    return NULL;
}

static int open_file(const char *path) {
    struct stat status;
    file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &status)) return 0;
    length = status.st_size;
    mapping = mmap(NULL, length, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
    return mapping != MAP_FAILED;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*send_file)(int);
    } ways[] = {{"sendfile", by_sendfile}, {"send", by_send}, {"map-send", by_map_send}, {"send-zc", by_send_zc}};
    if (argc != 4) return fprintf(stderr, "usage: file-sender sendfile|send|map-send|send-zc ADDRESS:PORT FILE\n"), 2;
    for (size_t at = 0; at < sizeof ways / sizeof *ways; at++)
        if (!strcmp(argv[1], ways[at].name)) send_file = ways[at].send_file;
    signal(SIGPIPE, SIG_IGN); /* sendfile has no flag for it */
    int listener = listen_at(argv[2]);
    if (!send_file || listener < 0 || !open_file(argv[3])) return perror("file-sender"), 1;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        pthread_t thread;
        if (!pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd)) pthread_detach(thread);
    }
}
