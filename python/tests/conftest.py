import os

import pytest

import lockflight


@pytest.fixture
def domain(request):
    """The name of a domain of this test's own."""
    name = f"test-{os.getpid()}-{abs(hash(request.node.nodeid)) % 10**8}"
    yield name
    lockflight.Domain.remove(name, force=True)


def in_child(body, *arguments):
    """Runs `body` in a fork of this process and returns its exit status; 99 after an exception."""
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            status = body(*arguments) or 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
