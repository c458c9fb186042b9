"""A process dies while it holds a lock and half of its work is done; the next holder repairs it.
Prints what the file held and holds."""

import multiprocessing
import os
import pathlib
import signal
import tempfile

import lockflight


def dies(mutex, path):
    with mutex:
        path.write_text("half of a li")
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    mutex = lockflight.Mutex("line", domain="examples")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "line")
        process = multiprocessing.Process(target=dies, args=(mutex, path))
        process.start()
        process.join()
        with mutex:
            if mutex.owner_died:
                print("found:", path.read_text())
                path.write_text("a whole line")
                mutex.mark_consistent()
            print("holds:", path.read_text())
