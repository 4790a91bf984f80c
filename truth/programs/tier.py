"""A tier in Python: a thread for each connection.

Usage: tier.py HOST:PORT UPSTREAM|- [forward=N] [idle=N] [body=N] STAGE .., with times in microseconds, such as
pool=4x20000us.
"""

import os
import queue
import socket
import sys
import threading
import time

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
FAILURE = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"


def seconds(text):
    return int(text.removesuffix("us")) / 1e6


def pool(workers, hold):
    """Each token is the time at which a worker became free: late sleeps do not add up."""
    tokens = queue.SimpleQueue()
    for _ in range(workers):
        tokens.put(time.monotonic())

    def serve():
        arrived = time.monotonic()
        free = max(arrived, tokens.get()) + hold
        time.sleep(max(0, free - time.monotonic()))
        tokens.put(free)

    return serve


def lock(hold):
    mutex, free = threading.Lock(), [time.monotonic()]

    def serve():
        arrived = time.monotonic()
        with mutex:
            free[0] = max(arrived, free[0]) + hold
            time.sleep(max(0, free[0] - time.monotonic()))

    return serve


def burn(busy):
    def serve():
        end = time.thread_time() + busy
        while time.thread_time() < end:
            sum(range(200))

    return serve


def stage(word):
    name, value = word.split("=")
    if name == "delay":
        return lambda: time.sleep(seconds(value))
    if name == "pool":
        workers, hold = value.split("x")
        return pool(int(workers), seconds(hold))
    if name == "lock":
        return lock(seconds(value))
    if name == "burn":
        return burn(seconds(value))
    sys.exit(f"'{word}' is no stage")


class Http:
    """A connection to the next tier, if that speaks HTTP."""

    def __init__(self, address):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def request(self):
        self.socket.sendall(b"GET / HTTP/1.1\r\nHost: next\r\n\r\n")
        status, length = self.file.readline(), 0
        while (line := self.file.readline().strip().lower()):
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        self.file.read(length)
        if b" 200 " not in status:
            raise OSError(status)


class Database:
    """A session of a database."""

    def __init__(self, address):
        import pymysql

        _, host, port, self.what, us, size, file = address.split(":", 6)
        self.asked = f"SELECT SLEEP({int(us) / 1e6}), REPEAT('x', {int(size)})"
        with open(file) as password:
            self.session = pymysql.connect(
                host=host, port=int(port), user="nstar", password=password.read(), database="nstar"
            )

    def request(self):
        cursor = self.session.cursor()
        if self.what == "row":
            cursor.execute("SELECT value FROM counters WHERE id = 1 FOR UPDATE")
        cursor.execute(self.asked)
        self.session.commit()


class Upstream:
    """The next tier, over a connection for each thread or over so many for all."""

    def __init__(self, address, most):
        self.connect = lambda: (Database if address.startswith("mysql:") else Http)(address)
        self.own = threading.local()
        self.shared = queue.SimpleQueue() if most else None
        for _ in range(most):
            self.shared.put(None)

    def request(self):
        if self.shared is None:
            self.own.connection = getattr(self.own, "connection", None) or self.connect()
            self.own.connection.request()
            return
        connection = self.shared.get()
        try:
            connection = connection or self.connect()
            connection.request()
        finally:
            self.shared.put(connection)


def answer(connection, stages, upstream, response):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    requests = connection.makefile("rb")
    try:
        while line := requests.readline():
            if line.strip():
                continue
            try:
                for serve in stages:
                    serve()
                if upstream:
                    upstream.request()
                connection.sendall(response)
            except OSError:
                connection.sendall(FAILURE)
    except OSError:
        pass  # The client has gone.


def main(address, upstream, *words):
    if name := os.environ.get("NAME"):
        open("/proc/self/comm", "w").write(name)
    names = ("forward=", "idle=", "body=")
    options = dict(word.split("=") for word in words if word.startswith(names))
    stages = [stage(word) for word in words if not word.startswith(names)]
    size = int(options["body"])
    response = HEAD % size + b"x" * size
    upstream = None if upstream == "-" else Upstream(upstream, int(options.get("forward", 0)))
    for _ in range(int(options["idle"])):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    host, port = address.split(":")
    listener = socket.create_server((host, int(port)), backlog=4096)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection, stages, upstream, response), daemon=True).start()


main(*sys.argv[1:])
