"""Links that can fail. A link leads from one host to another one's agent, or to a member of etcd;
each direction in which connections are made is a link of its own."""

import asyncio
import os
import socket
import struct
import threading
import time

OPEN, CUT, SWALLOWS = "open", "cut", "swallows"
PULSE, STALL = 0.02, 0.15  # seconds


class Link:
    """Open; cut: connections are reset and refused; or it swallows: connections stay, and what is
    sent arrives when the link is open again, as after a loss of packets."""

    def __init__(self, network, source, target):
        self.network = network
        self.source, self.target = source, target
        self.state = OPEN
        self.delay = 0.0
        self.pipes = set()

    def __str__(self):
        return f"{self.source}>{self.target}"

    def set(self, state, delay=0.0):
        self.network.call(self._set, state, delay)

    def reset(self):
        """Breaks what is connected."""
        self.network.call(self._reset)

    def _set(self, state, delay):
        self.state, self.delay = state, delay
        if state == CUT:
            self._reset()
        if state == OPEN:
            for pipe in list(self.pipes):
                pipe.flush()

    def _reset(self):
        for pipe in list(self.pipes):
            pipe.break_off()


class Pipe:
    """A connection through a link: two ends, and for each what has not been sent yet."""

    def __init__(self, link, port):
        self.link = link
        self.port = port
        self.ends = {}
        self.waiting = {"near": [], "far": []}
        self.is_over = False
        for of in link, link.network:
            of.pipes.add(self)

    async def connect(self):
        try:
            await self.link.network.loop.create_connection(
                lambda: End(self, "far"), "127.0.0.1", self.port)
        except OSError:
            self.break_off()

    def arrived(self, at, data):
        self.waiting[at].append(data)
        if self.link.state == OPEN:
            if self.link.delay:
                self.link.network.loop.call_later(self.link.delay, self.flush)
            else:
                self.flush()

    def flush(self):
        if self.is_over or self.link.state != OPEN:
            return
        for at, other in ("near", "far"), ("far", "near"):
            if other in self.ends and self.waiting[at]:
                self.ends[other].write(b"".join(self.waiting[at]))
                self.waiting[at].clear()

    def end(self):
        self.is_over = True
        for of in self.link, self.link.network:
            of.pipes.discard(self)

    def break_off(self):
        if self.is_over:
            return
        self.end()
        for transport in self.ends.values():
            reset = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, reset)
            transport.abort()


class End(asyncio.Protocol):
    def __init__(self, pipe, at):
        self.pipe, self.at = pipe, at

    def connection_made(self, transport):
        self.pipe.ends[self.at] = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.pipe.is_over:
            transport.abort()
        self.pipe.flush()

    def data_received(self, data):
        self.pipe.arrived(self.at, data)

    def connection_lost(self, error):
        # What a swallowing link has not passed on, an end included, is lost with the process.
        if self.pipe.link.state == OPEN and not self.pipe.link.delay:
            self.pipe.flush()
            for other in self.pipe.ends.values():
                other.close()
            self.pipe.end()
        else:
            self.pipe.break_off()


class Arrival(asyncio.Protocol):
    """A connection from somebody: finds out who it is."""

    def __init__(self, door):
        self.door = door
        self.end = None

    def connection_made(self, transport):
        link = self.door.link_for(transport.get_extra_info("peername")[1])
        if link is None or link.state == CUT:
            transport.abort()
            return
        pipe = Pipe(link, self.door.target_port)
        self.end = End(pipe, "near")
        transport.set_protocol(self.end)
        self.end.connection_made(transport)
        link.network.begin(pipe.connect())


class Door:
    """A port that leads to another one, by the link of the process that connects."""

    def __init__(self, network, target_port, link_for):
        self.target_port = target_port
        self.link_for = link_for
        self.server = network.wait(network.loop.create_server(
            lambda: Arrival(self), "127.0.0.1", 0))
        self.port = self.server.sockets[0].getsockname()[1]
        network.doors.append(self)


class Network:
    """All links, and the thread that carries what goes over them."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.doors, self.pipes, self.tasks = [], set(), set()
        self.is_closing = False
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.stalls = []  # (since, until) in which this thread did not run, as time.monotonic_ns()
        self.call(self.begin, self._watch())

    async def _watch(self):
        """A testbed that gets no processor is a fault of its own."""
        while not self.is_closing:
            before = time.monotonic_ns()
            await asyncio.sleep(PULSE)
            now = time.monotonic_ns()
            if now - before > 1e9 * (PULSE + STALL):
                self.stalls.append((before, now))

    def has_stalled(self, since):
        return any(until > since for _, until in self.stalls)

    def call(self, function, *arguments):
        async def run():
            return function(*arguments)
        return self.wait(run())

    def wait(self, what):
        return asyncio.run_coroutine_threadsafe(what, self.loop).result()

    def begin(self, what):
        """Runs beside the rest. (The loop alone would not keep a task.)"""
        task = self.loop.create_task(what)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _close(self):
        self.is_closing = True
        for door in self.doors:
            door.server.close()
        for pipe in list(self.pipes):
            pipe.break_off()
        await asyncio.gather(*self.tasks)
        await asyncio.sleep(0)

    def close(self):
        self.wait(self._close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


def sender_of(port, to, pids):
    """Which of the processes has the connection from `port` to `to`, both on this machine."""
    wanted = f"0100007F:{port:04X} 0100007F:{to:04X}"
    with open("/proc/net/tcp", encoding="ascii") as table:
        lines = [line.split() for line in table if wanted in line]
    inodes = [f"socket:[{line[9]}]" for line in lines]
    for pid in pids:
        try:
            folder = f"/proc/{pid}/fd"
            if any(os.readlink(f"{folder}/{each}") in inodes for each in os.listdir(folder)):
                return pid
        except OSError:
            continue  # it has ended, or has just closed the file
    return None
