"""Tasks whose lock is lost are cancelled, and leave the block with LockLost. Here somebody removes the
domain; in the domain of a cluster ("etcd:jobs") a lock is lost when its host is cut off, and
loss="raise" is the default.

Prints "report: told", and then "report: stopped".
"""

import asyncio
import os

import lockflight

DOMAIN = f"example-loss-{os.getpid()}"


async def write_report():
    lock = lockflight.Mutex(
        "report", DOMAIN, loss="raise", on_loss=lambda lost: print(f"{lost.name}: told")
    )
    try:
        async with lock:
            await asyncio.sleep(60)  # the work
    except lockflight.LockLost:
        print("report: stopped")


async def main():
    report = asyncio.ensure_future(write_report())
    await asyncio.sleep(0.1)
    lockflight.Domain.remove(DOMAIN, force=True)
    await report


asyncio.run(main())
