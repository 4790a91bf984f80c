/* Yardstick: the least a server can do, by concurrency model. Descriptors index the connections; nothing is checked.
 *
 * Usage: bare-server threads|select|poll|epoll ADDRESS:PORT CHUNK [BODY [PATH]]
 *
 * Without BODY it is an upload sink: it finds the length of each body, reads it CHUNK bytes at a time, drops it, and
 * responds. With BODY it answers whatever one read returns with a body of so many bytes. With PATH it does what every
 * HTTP server must: it finds the end of the head, looks at the name of every field, and answers a GET of PATH that has one
 * Host and no body, with the date. It closes the connection otherwise.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "listen.h"

enum { HEAD = 4096, CONNECTIONS = 65536 };

#define STATUS "HTTP/1.1 200 OK\r\n"
#define DATE "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
#define DATE_FORM "Date: %a, %d %b %Y %H:%M:%S GMT\r\n"
static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
static size_t chunk;
static char *response; /* to whatever one read returns; none in a sink */
static size_t response_length;
static const char *path; /* the only path answered; none if all are */
static size_t path_length;

struct connection {
    long left; /* bytes of the body to come; -1 while the head is read */
    size_t filled;
    char head[HEAD];
};

static struct connection *connections[CONNECTIONS];

static struct connection *begin(int fd) {
    struct connection *new = connections[fd];
    if (!new) new = connections[fd] = malloc(sizeof *new);
    new->left = -1;
    new->filled = 0;
    return new;
}

/* Whether a field has this name, given in lower case with its colon. */
static int is_named(const char *line, const char *name) {
    return !strncasecmp(line, name, strlen(name));
}

/* Whether these bytes are one request that should be answered. */
static int is_request(char *request, size_t count) {
    static const char version[] = " HTTP/1.1\r\n";
    size_t first = 4 + path_length + sizeof version - 1;
    if (count < first + 2 || memcmp(request + count - 4, "\r\n\r\n", 4)) return 0;
    if (memcmp(request, "GET ", 4) || memcmp(request + 4, path, path_length)) return 0;
    if (memcmp(request + 4 + path_length, version, sizeof version - 1)) return 0;
    int hosts = 0;
    for (char *line = request + first, *last = request + count - 2; line < last;) {
        char *end = memchr(line, '\r', last + 1 - line), *colon = memchr(line, ':', end - line);
        if (!colon || end[1] != '\n' || end == line) return 0;
        hosts += is_named(line, "host:");
        if (is_named(line, "connection:") || is_named(line, "content-length:") || is_named(line, "transfer-encoding:")) return 0;
        line = end + 2;
    }
    return hosts == 1;
}

/* The response with the current date, which each thread renders once a second. */
static const char *dated(void) {
    static __thread char *mine;
    static __thread time_t written;
    time_t now = time(NULL);
    if (!mine) mine = memcpy(malloc(response_length), response, response_length);
    if (now != written) {
        char date[sizeof DATE];
        struct tm parts;
        strftime(date, sizeof date, DATE_FORM, gmtime_r(&now, &parts));
        memcpy(mine + sizeof STATUS - 1, date, sizeof date - 1);
        written = now;
    }
    return mine;
}

/* Reads once. Returns whether the connection continues. */
static int advance(int fd, struct connection *c, char *buffer) {
    ssize_t count = read(fd, buffer, chunk);
    if (count <= 0) return 0;
    if (path) return is_request(buffer, count) && write(fd, dated(), response_length) == (ssize_t)response_length;
    if (response) return write(fd, response, response_length) == (ssize_t)response_length;
    if (c->left < 0) {
        size_t room = HEAD - 1 - c->filled, kept = (size_t)count < room ? (size_t)count : room;
        if (!room) return 0;
        memcpy(c->head + c->filled, buffer, kept);
        c->filled += kept;
        c->head[c->filled] = 0;
        char *end = strstr(c->head, "\r\n\r\n");
        if (!end) return 1;
        char *length = strcasestr(c->head, "content-length:");
        c->left = length ? atol(length + 15) : 0;
        count -= end + 4 - (c->head + c->filled - kept);
    }
    c->left -= count;
    if (c->left <= 0) {
        c->left = -1;
        c->filled = 0;
        return write(fd, answer, sizeof answer - 1) > 0;
    }
    return 1;
}

static void *serve(void *argument) {
    int fd = (int)(intptr_t)argument;
    char *buffer = malloc(chunk);
    struct connection *c = begin(fd);
    while (advance(fd, c, buffer)) {}
    free(buffer);
    close(fd);
    return NULL;
}

static void run_threads(int listener) {
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        pthread_t thread;
        pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd);
        pthread_detach(thread);
    }
}

static void run_select(int listener) {
    char *buffer = malloc(chunk);
    fd_set watched;
    int most = listener;
    FD_ZERO(&watched);
    FD_SET(listener, &watched);
    for (;;) {
        fd_set ready = watched;
        int found = select(most + 1, &ready, NULL, NULL, NULL);
        for (int fd = 0; fd <= most && found > 0; fd++) {
            if (!FD_ISSET(fd, &ready)) continue;
            found--;
            if (fd == listener) {
                int new = accept(listener, NULL, NULL);
                begin(new);
                FD_SET(new, &watched);
                if (new > most) most = new;
            } else if (!advance(fd, connections[fd], buffer)) {
                FD_CLR(fd, &watched);
                close(fd);
            }
        }
    }
}

static void run_poll(int listener) {
    char *buffer = malloc(chunk);
    static struct pollfd watched[CONNECTIONS];
    int count = 1;
    watched[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (;;) {
        int found = poll(watched, count, -1);
        for (int at = count - 1; at >= 0 && found > 0; at--) {
            if (!watched[at].revents) continue;
            found--;
            if (at == 0) {
                int new = accept(listener, NULL, NULL);
                begin(new);
                watched[count++] = (struct pollfd){.fd = new, .events = POLLIN};
            } else if (!advance(watched[at].fd, connections[watched[at].fd], buffer)) {
                close(watched[at].fd);
                watched[at] = watched[--count];
            }
        }
    }
}

static void run_epoll(int listener) {
    char *buffer = malloc(chunk);
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int found = epoll_wait(epoll, events, 256, -1);
        for (int at = 0; at < found; at++) {
            int fd = events[at].data.fd;
            if (fd == listener) {
                event.data.fd = accept(listener, NULL, NULL);
                begin(event.data.fd);
                epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
            } else if (!advance(fd, connections[fd], buffer)) {
                close(fd);
            }
        }
    }
}

static void prepare(size_t body) {
    response = malloc(body + 100);
    const char *date = path ? DATE : "";
    response_length = sprintf(response, STATUS "%sContent-Length: %zu\r\n\r\n", date, body);
    memset(response + response_length, 'x', body);
    response_length += body;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(int);
    } models[] = {{"threads", run_threads}, {"select", run_select}, {"poll", run_poll}, {"epoll", run_epoll}};
    if (argc < 4) return fprintf(stderr, "usage: bare-server threads|select|poll|epoll ADDRESS:PORT CHUNK [BODY [PATH]]\n"), 2;
    chunk = strtoul(argv[3], NULL, 10);
    if (argc > 5) path = argv[5], path_length = strlen(path);
    if (argc > 4) prepare(strtoul(argv[4], NULL, 10));
    int listener = listen_at(argv[2]);
    if (chunk < 1 || listener < 0) return perror("bare-server"), 1;
    for (size_t at = 0; at < sizeof models / sizeof *models; at++)
        if (!strcmp(argv[1], models[at].name)) models[at].run(listener);
    return 2;
}
