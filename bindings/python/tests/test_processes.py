"""Locks of several processes: those that multiprocessing starts, forks, deaths, Ctrl-C."""

import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

import lockflight
from conftest import in_child, until_waits
from lockflight import DomainError, Mutex, SharedMutex


def add_to_file(mutex, path, times):
    for _ in range(times):
        with mutex:
            with open(path, encoding="ascii") as f:
                n = int(f.read())
            with open(path, "w", encoding="ascii") as f:
                f.write(str(n + 1))


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_multiprocessing(domain, tmp_path, method):
    mutex = Mutex("count", domain=domain)
    path = tmp_path / "count"
    path.write_text("0", encoding="ascii")
    context = multiprocessing.get_context(method)
    processes = [context.Process(target=add_to_file, args=(mutex, path, 50)) for _ in range(3)]
    for each in processes:
        each.start()
    add_to_file(mutex, path, 50)
    for each in processes:
        each.join()
    assert [each.exitcode for each in processes] == [0, 0, 0]
    assert path.read_text(encoding="ascii") == "200"
    assert not mutex.owner_died


def test_a_fork_does_not_hold_what_its_parent_holds(domain):
    mutex = Mutex("a", domain=domain)

    def child():
        if mutex.held or mutex.acquire(blocking=False):
            return 1
        try:
            mutex.release()
            return 2
        except RuntimeError:
            return 0

    with mutex:
        assert in_child(child) == 0
        assert mutex.held and mutex.locked()
    assert in_child(lambda: 0 if mutex.acquire(timeout=10) and not mutex.owner_died else 1) == 0
    with mutex:  # the child ended with it
        assert mutex.owner_died


def leaves(block):
    """The exit status of a child that is forked in the block, and leaves it."""
    parent = os.getpid()
    try:
        with block:
            pid = os.fork()
            if pid != 0:
                return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os._exit(7)
    except BaseException:
        if os.getpid() == parent:
            raise
        os._exit(1)


def test_a_fork_leaves_a_block_of_its_parent(domain):
    lock = SharedMutex("a", domain=domain)
    assert leaves(lock) == 7
    assert leaves(lock.shared()) == 7
    with lock:
        assert not lock.owner_died


def test_a_fork_leaves_blocks_and_acquires_for_itself(domain):
    outer, inner = Mutex("outer", domain=domain), Mutex("inner", domain=domain)

    def child():
        with outer:
            with inner:
                pid = os.fork()
                if pid != 0:
                    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with Mutex("other", domain=domain) as other:
                    assert other.held
                assert not inner.held and inner.locked()
            assert not inner.acquire(blocking=False)
            try:
                inner.__exit__(None, None, None)
            except RuntimeError as error:
                assert error.reason == "not_held"
            else:
                os._exit(2)
        os._exit(0)

    assert in_child(child) == 0


def test_a_fork_that_exits_in_a_block(domain):
    program = """
import os, sys, lockflight
with lockflight.Mutex("a", domain=sys.argv[1]):
    pid = os.fork()
    if pid == 0:
        sys.exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, domain], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


def hold_not(mutex, conn):
    conn.send((mutex.held, mutex.acquire(blocking=False)))


def test_multiprocessing_fork_in_a_block(domain):
    mutex = Mutex("a", domain=domain)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    with mutex:
        process = context.Process(target=hold_not, args=(mutex, theirs))
        process.start()
        assert ours.recv() == (False, False)
        process.join()
        assert process.exitcode == 0
        assert mutex.held
    with mutex:
        assert not mutex.owner_died


def test_a_fork_of_a_thread(domain):
    mutex = Mutex("a", domain=domain)
    statuses = []

    def body():
        with mutex:
            statuses.append(in_child(lambda: int(mutex.acquire(blocking=False))))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert statuses == [0]
    assert mutex.acquire(timeout=10) and not mutex.owner_died
    mutex.release()


HOLDER = """
import sys, time, lockflight
mutex = lockflight.Mutex("a", domain=sys.argv[1])
mutex.acquire()
print("held", flush=True)
time.sleep(60)
"""


def holder(domain):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, domain], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_a_killed_holder_frees_its_lock(domain):
    mutex = Mutex("a", domain=domain)
    with holder(domain) as process:
        assert mutex.acquire(timeout=0.1) is False
        timer = threading.Timer(0.2, process.kill)
        timer.start()
        start = time.monotonic()
        assert mutex.acquire()
        assert time.monotonic() - start < 5
        assert mutex.owner_died
        mutex.mark_consistent()
        mutex.release()
        timer.join()


COUNTER = """
import mmap, struct, sys, lockflight
mutex = lockflight.Mutex("count", domain=sys.argv[1])
with open(sys.argv[2], "r+b") as f:
    words = mmap.mmap(f.fileno(), 24)
print("ready", flush=True)
while True:
    with mutex:
        first, second, token = struct.unpack("QQQ", words)
        if mutex.owner_died:
            mutex.mark_consistent()
            second = first
        if first != second or mutex.token <= token:
            print(f"broken: {first} {second}, token {mutex.token} after {token}", flush=True)
            sys.exit(1)
        words[0:8] = struct.pack("Q", first + 1)
        words[16:24] = struct.pack("Q", mutex.token)
        words[8:16] = struct.pack("Q", first + 1)
"""


def test_any_moment_is_good_to_be_killed(domain, tmp_path):
    path = tmp_path / "words"
    path.write_bytes(bytes(24))

    def start():
        process = subprocess.Popen(
            [sys.executable, "-c", COUNTER, domain, path], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "ready\n"
        return process

    running = [start() for _ in range(3)]
    for i in range(6):
        time.sleep(0.003 * (i % 7))
        victim = running.pop(0)
        victim.kill()
        rest = victim.communicate()[0]
        assert rest == "" and victim.returncode == -signal.SIGKILL
        running.append(start())
    before = path.read_bytes()
    time.sleep(0.2)
    assert path.read_bytes() != before, "the rest are stuck"
    for each in running:
        each.kill()
        assert each.communicate()[0] == ""
    mutex = Mutex("count", domain=domain)
    assert mutex.acquire(timeout=10)
    mutex.release()


WAITER = """
import sys, lockflight
lock = lockflight.SharedMutex("a", domain=sys.argv[1])
print("waits", flush=True)
try:
    (lock.acquire_shared if sys.argv[2] == "shared" else lock.acquire)()
except KeyboardInterrupt:
    assert not lock.held
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("way", ["alone", "shared"])
def test_ctrl_c_ends_a_wait(domain, way):
    lock = SharedMutex("a", domain=domain)
    with lock:
        with subprocess.Popen(
            [sys.executable, "-c", WAITER, domain, way], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline() == "waits\n"
            until_waits(lock)
            time.sleep(0.5)  # it sleeps, and looks for a signal once a second
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
            assert time.monotonic() - start < 0.3
        assert process.returncode == 0
    with lock:
        assert not lock.owner_died


def test_a_waiting_main_thread_runs_handlers_and_waits_on(domain):
    mutex = Mutex("a", domain=domain)
    came = []
    before = signal.signal(signal.SIGUSR1, lambda *_: came.append(time.monotonic()))
    release = threading.Event()

    def hold():
        with mutex:
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        while not mutex.locked():
            time.sleep(0.01)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        threading.Timer(0.6, release.set).start()
        with mutex:
            assert len(came) == 1
    finally:
        release.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)


def test_a_handler_does_not_use_locks_in_the_middle_of_a_wait(domain):
    mutex, other, outer = (Mutex(name, domain=domain) for name in ("a", "b", "c"))
    seen = []

    def handler(*_):
        Mutex("d", domain=domain)
        for call in (mutex.acquire, other.acquire, outer.release):
            try:
                call()
            except DomainError as error:
                seen.append(error.reason)
        seen.append((mutex.held, other.held, outer.held))

    before = signal.signal(signal.SIGUSR1, handler)
    release, holds = threading.Event(), threading.Event()

    def hold():
        with mutex:
            holds.set()
            release.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait(10)
    try:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        threading.Timer(0.6, release.set).start()
        with outer, mutex:
            assert seen == ["wrong_thread"] * 3 + [(False, False, True)]
        with mutex, other:
            assert not mutex.owner_died and not other.owner_died
    finally:
        release.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)


def test_waiters_keep_their_order(domain):
    """The main thread, which runs handlers, is not passed by one that came later."""
    mutex = Mutex("a", domain=domain)
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    order = []

    def wait_behind():
        with mutex:
            order.append("behind")

    def hold():
        with mutex:
            holds.set()
            until_waits(mutex)
            behind.start()
            until_waits(mutex, 2)
            for _ in range(30):
                os.kill(os.getpid(), signal.SIGUSR1)
                time.sleep(0.01)

    holds = threading.Event()
    behind = threading.Thread(target=wait_behind)
    holder = threading.Thread(target=hold)
    holder.start()
    holds.wait(10)
    try:
        with mutex:
            order.append("main")
        holder.join()
        behind.join()
        assert order == ["main", "behind"]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_wait_lets_other_threads_run(domain):
    mutex = Mutex("a", domain=domain)
    with mutex:
        waiter = threading.Thread(target=lambda: mutex.acquire() and mutex.release())
        waiter.start()
        start, n = time.monotonic(), 0
        while time.monotonic() - start < 0.1:
            n += 1
    waiter.join()
    assert n > 1000


AT_EXIT = """
import sys, threading, time, lockflight
mutex = lockflight.Mutex("a", domain=sys.argv[1])
mutex.acquire()
def wait():
    with mutex:
        pass
for _ in range(3):
    threading.Thread(target=wait, daemon=True).start()
time.sleep(0.1)
class Last:
    def __del__(self):
        mutex.release()
        time.sleep(0.05)
sys.modules["last"] = Last()
"""


def test_daemon_threads_may_wait_when_the_interpreter_ends(domain):
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT, domain], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


BUSY_AT_EXIT = """
import sys, threading, time, lockflight
mutex = lockflight.Mutex("a", domain=sys.argv[1])
def work():
    while True:
        with mutex:
            sum(range(50))
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(float(sys.argv[2]))
"""


def test_daemon_threads_may_acquire_when_the_interpreter_ends(domain):
    for i in range(10):
        done = subprocess.run(
            [sys.executable, "-c", BUSY_AT_EXIT, domain, str(i * 0.002)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")


def program():
    """The path of the command `lockflight`."""
    path = pathlib.Path(lockflight.__file__).parents[2] / "lockflight"
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    return path


def test_lockflight_run_says_that_no_slot_is_free(domain):
    with Mutex("a", domain=lockflight.Domain(domain, slots=1)):
        for options in (["--timeout", "0.1"], ["--nonblock", "--verbose"]):
            done = subprocess.run(
                [program(), "run", "--domain", domain, *options, "b", "--", "true"],
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert (done.returncode, done.stderr) == (
                1,
                f"lockflight run: lock 'b' was not free in time: all 1 slots of domain {domain} "
                f"are taken ('lockflight domain show {domain}' lists them)\n",
            )


def test_a_name_that_lockflight_run_uses(domain):
    def command(*words):
        return [program(), "run", "--domain", domain, "-E", "75", "--nonblock", "a", "--", *words]

    for lock in (Mutex("a", domain=domain), SharedMutex("a", domain=domain)):
        with lock:
            assert subprocess.run(command("true"), timeout=60).returncode == 75
            token = lock.token
        done = subprocess.run(
            command("sh", "-c", "echo $LOCKFLIGHT_TOKEN"),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0 and int(done.stdout) > token
        with subprocess.Popen(command("sleep", "60")) as running:
            while not lock.locked():
                time.sleep(0.01)
            assert not lock.acquire(blocking=False)
            (use,) = [use for state in lock.domain.locks() for use in state.uses]
            assert use.pid == running.pid or use.guarded_pid == running.pid
            running.terminate()
        assert lock.acquire(timeout=10)
        lock.release()
