"""Processes count in a file, of which one at a time has the lock. Prints 400."""

import multiprocessing
import pathlib
import tempfile

import lockflight


def count(mutex, path):
    for _ in range(100):
        with mutex:
            path.write_text(str(int(path.read_text()) + 1))


if __name__ == "__main__":
    mutex = lockflight.Mutex("count", domain="examples")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "count")
        path.write_text("0")
        processes = [multiprocessing.Process(target=count, args=(mutex, path)) for _ in range(4)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        print(path.read_text())
