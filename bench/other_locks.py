#!/usr/bin/env python3
"""Acquires and releases of locks that Python programs of one machine use, and of lockflight's.

usage: other_locks.py lockflight|filelock|multiprocessing|redis PROCESSES SECONDS

Prints JSON. Redis runs here, without writing to disk, and is reached by a socket in the file system.
"""

import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def lockflight_lock(folder, _inherited):
    import lockflight
    return lockflight.Mutex("lock", domain=domain_of(folder))


def domain_of(folder):
    return "perf-" + os.path.basename(folder)


def filelock_lock(folder, _inherited):
    from filelock import FileLock
    return FileLock(os.path.join(folder, "lock"))


def multiprocessing_lock(_folder, inherited):
    return inherited


def redis_lock(folder, _inherited):
    import redis
    return redis.Redis(unix_socket_path=os.path.join(folder, "socket")).lock("lock", sleep=0.001)


def work(make, folder, inherited, core, seconds, results):
    os.sched_setaffinity(0, {core % os.cpu_count()})
    lock = make(folder, inherited)
    times = []
    end = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        lock.acquire()
        lock.release()
        times.append(time.perf_counter() - begun)
    results.put((len(times) / seconds, statistics.median(times)))


def serve_redis(folder):
    socket = os.path.join(folder, "socket")
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--save", "",
                               "--dir", folder], stdout=subprocess.DEVNULL)
    for _ in range(500):
        if pathlib.Path(socket).exists():
            return server
        time.sleep(0.01)
    server.kill()
    raise RuntimeError("redis-server does not start")


MAKE = {"lockflight": lockflight_lock, "filelock": filelock_lock,
        "multiprocessing": multiprocessing_lock, "redis": redis_lock}


def measure(name, processes, seconds):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        server = serve_redis(folder) if name == "redis" else None
        try:
            inherited, results = multiprocessing.Lock(), multiprocessing.Queue()
            all_of_them = [
                multiprocessing.Process(target=work, args=(MAKE[name], folder, inherited, core,
                                                           seconds, results))
                for core in range(processes)]
            for each in all_of_them:
                each.start()
            found = [results.get(timeout=60) for _ in all_of_them]
            for each in all_of_them:
                each.join()
        finally:
            if server is not None:
                server.kill()
                server.wait()
            if name == "lockflight":
                import lockflight
                lockflight.Domain.remove(domain_of(folder))
    return {"throughput_ops_s": sum(rate for rate, _ in found),
            "latency_us": {"p50": statistics.median(median for _, median in found) * 1e6}}


def main(arguments):
    if len(arguments) != 3 or arguments[0] not in MAKE:
        print(__doc__.splitlines()[2], file=sys.stderr)
        return 2
    print(json.dumps(measure(arguments[0], int(arguments[1]), float(arguments[2]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
