"""Tasks of asyncio, in this process and others: a writer, and readers beside each other."""

import asyncio

import lockflight

table = lockflight.SharedMutex("table", domain="examples")
rows = []


async def write(n):
    async with table:
        rows.append(n)
        await asyncio.sleep(0.01)


async def read():
    async with table.shared():
        await asyncio.sleep(0.01)
        return len(rows)


async def main():
    await asyncio.gather(*(write(n) for n in range(4)))
    print(await asyncio.gather(*(read() for _ in range(4))))


if __name__ == "__main__":
    asyncio.run(main())
