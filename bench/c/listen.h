/* Shared by the baselines. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

/* Opens a listening socket at ADDRESS:PORT; negative on failure. */
static int listen_at(const char *where) {
    char host[64] = "";
    int port = 0, yes = 1;
    if (sscanf(where, "%63[^:]:%d", host, &port) != 2) return -1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, host, &address.sin_addr);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) return -1;
    return listener;
}
