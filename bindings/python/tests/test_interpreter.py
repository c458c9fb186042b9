"""The end of an interpreter, and a second one in the process."""

import subprocess
import sys

import pytest

from lockflight import Domain, Mutex

try:
    import _interpreters as interpreters  # Python 3.13
except ImportError:
    interpreters = pytest.importorskip("_xxsubinterpreters")


def run_program(text, *arguments):
    """What it writes. It has to end."""
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


TASKS = """
import asyncio, sys
import lockflight

async def main():
    for name in "ab":
        async with lockflight.SharedMutex(name, domain=sys.argv[1]).shared():
            pass

asyncio.run(main())
"""


def test_the_threads_of_tasks_give_their_slots_back(domain):
    """Else a program that ends as usual would count as deaths."""
    run_program(TASKS, domain)
    assert Domain(domain).participants() == []


FINALIZER = """
import sys, threading
import lockflight

domain = sys.argv[1]
mutex = lockflight.SharedMutex("a", domain=domain)
gpu = lockflight.Semaphore("gpu", 2, domain=domain)
both = lockflight.all_of("b", mutex, gpu, domain=domain)
used, Mutex = sys.argv[2] == "used", lockflight.Mutex

class Late:
    def __init__(self):
        self.ways = [mutex, mutex.shared(), mutex.within(5), gpu, both]
    def __del__(self):
        for way in self.ways:
            with way:
                pass
        with Mutex("new", domain=domain):
            mutex.locked()
        print("done", flush=True)

late = Late()
late.cycle = late
if used:
    with both:
        pass
sys.modules["late"] = late
"""


@pytest.mark.parametrize("before", ["used", "unused"])
def test_a_finalizer_acquires_when_the_interpreter_ends(domain, before):
    assert run_program(FINALIZER, domain, before) == "done\n"


HELD = """
import sys, threading
import lockflight

mutex = lockflight.Mutex("a", domain=sys.argv[1])
holds = threading.Event()

def hold():
    with mutex:
        holds.set()
        threading.Event().wait()

class Late:
    def __del__(self):
        try:
            mutex.acquire()
        except Exception as error:
            print(error.reason, str(error), flush=True)

threading.Thread(target=hold, daemon=True).start()
holds.wait()
sys.modules["late"] = Late()
"""


def test_a_finalizer_wants_what_a_thread_without_an_end_holds(domain):
    said = run_program(HELD, domain)
    assert said.startswith("interrupted lock 'a' in a finalizer at the end of the interpreter")


WAITS = """
import os, sys, threading, time
import lockflight

mutex = lockflight.Mutex("a", domain=sys.argv[1])
mutex.acquire()

def wait():
    with lockflight.Mutex("a", domain=sys.argv[1]):
        os._exit(3)

for _ in range(3):
    threading.Thread(target=wait, daemon=True).start()
while len(mutex.users()) < 4:
    time.sleep(0.001)

class Late:
    def __del__(self):
        mutex.release()
        time.sleep(0.1)

sys.modules["late"] = Late()
"""


def test_threads_that_wait_when_the_interpreter_ends(domain):
    """They do not run any more, and so what they get is not given to them."""
    run_program(WAITS, domain)
    mutex = Mutex("a", domain=domain)
    with mutex.within(20):
        assert not mutex.owner_died


SUB = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

def use():
    import lockflight
    with lockflight.Mutex("a", domain=domain), lockflight.all_of("b", domain=domain):
        pass
    try:
        lockflight.Mutex("a", domain=domain).release()
    except lockflight.DomainError as error:
        print(error.reason, flush=True)

domain = sys.argv[1]
if sys.argv[2] == "before":
    use()
arguments = ("legacy",) if sys.version_info >= (3, 13) else ()
for _ in range(3):
    one = interpreters.create(*arguments)
    text = '''
try:
    import lockflight
except ImportError as error:
    print(error, flush=True)
'''
    print(interpreters.run_string(one, text) or "", end="")
    interpreters.destroy(one)
    if sys.argv[2] == "before":
        use()
use()
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_sub_interpreter_is_refused(domain, when):
    """And the main one goes on, whether it has imported the package before or not."""
    if when == "after" and sys.version_info[:2] == (3, 12):
        pytest.skip("Python 3.12.1 crashes at its end if a sub-interpreter alone imported asyncio")
    said = run_program(SUB, domain, when).splitlines()
    refusal = "lockflight in a sub-interpreter (accepted: the main interpreter of a process; in "
    assert sum(line.startswith(refusal) for line in said) == 3, said
    assert said.count("not_held") == (5 if when == "before" else 1)
