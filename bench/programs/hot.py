"""A server that spends its time in one function.

Usage: hot.py HOST:PORT swap|divide. `swap` is a loop in Python, `divide` a function of the interpreter in C.
"""

import itertools
import math
import socket
import sys
import threading

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
A, B = 3**20000, 7**12000


def swap():
    a, b = 1, 2
    for _ in itertools.repeat(None, 20_000):
        a, b = b, a
        a, b = b, a
        a, b = b, a
        a, b = b, a
    return a


def divide():
    return math.gcd(A, B)


def answer(connection, work):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        for line in connection.makefile("rb"):
            if not line.strip():
                work()
                connection.sendall(ANSWER)
    except OSError:
        pass  # The client has gone.


def main(address, name):
    host, port = address.split(":")
    work = {"swap": swap, "divide": divide}[name]
    listener = socket.create_server((host, int(port)), backlog=1024)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection, work), daemon=True).start()


main(*sys.argv[1:])
