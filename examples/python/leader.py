"""Processes that elect a leader, and a function whose work is done once for all of them.

Prints "3 leaders, the work was done 1 time"."""

import multiprocessing
import os
import time

import lockflight

DOMAIN = f"example-leader-{os.getpid()}"


def candidate(domain, number, count):
    @lockflight.once("configuration", per="1d", domain=domain)
    def configuration():
        count.value += 1  # one call at a time works
        return {"pause": 0.05}

    with lockflight.Election("scheduler", domain, value=f"candidate {number}"):
        time.sleep(configuration()["pause"])  # the work of a leader


def main():
    context = multiprocessing.get_context("spawn")
    count = context.Value("i", 0)
    observed = lockflight.Election("scheduler", DOMAIN).observe()
    processes = [context.Process(target=candidate, args=(DOMAIN, i, count)) for i in range(3)]
    for each in processes:
        each.start()
    seen = set()
    for leader in observed:
        if leader is not None:
            seen.add(leader.value)
        elif len(seen) == len(processes):
            break
    for each in processes:
        each.join()
    print(f"{len(seen)} leaders, the work was done {count.value} time")
    lockflight.Domain.remove(DOMAIN)


if __name__ == "__main__":
    main()
