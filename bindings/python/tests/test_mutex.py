"""Mutex and SharedMutex in one process: what they do, and what they refuse."""

import grp
import math
import os
import pickle
import threading
import time
import warnings

import pytest

import lockflight
from conftest import in_thread, until_waits
from lockflight import DomainError, Mutex, SharedMutex


def test_with_acquires_and_releases(domain):
    mutex = Mutex("a", domain=domain)
    assert not mutex.held and not mutex.locked()
    with mutex as entered:
        assert entered is mutex
        assert mutex.held and mutex.locked() and not mutex.owner_died
        assert in_thread(lambda: (mutex.held, mutex.locked())) == (False, True)
    assert not mutex.held and not mutex.locked()


def test_an_exception_releases(domain):
    mutex = Mutex("a", domain=domain)
    with pytest.raises(KeyError), mutex:
        raise KeyError
    assert not mutex.locked()


def test_acquire_without_waiting_and_for_a_time(domain):
    mutex = Mutex("a", domain=domain)
    assert mutex.acquire() is True
    assert in_thread(lambda: mutex.acquire(blocking=False)) is False
    start = time.monotonic()
    assert in_thread(lambda: mutex.acquire(timeout=0.1)) is False
    assert 0.09 < time.monotonic() - start < 2
    assert in_thread(lambda: mutex.acquire(timeout=0)) is False
    mutex.release()
    assert mutex.acquire(blocking=False) and mutex.release() is None
    assert mutex.acquire(True, 1) and mutex.release() is None


def test_two_objects_of_a_name_are_one_lock(domain):
    one, other = Mutex("a", domain=domain), Mutex("a", domain=lockflight.Domain(domain))
    with one:
        assert in_thread(lambda: other.acquire(blocking=False)) is False
    with Mutex("b", domain=domain), one:
        pass


@pytest.mark.parametrize("arguments", [{}, {"blocking": False}, {"timeout": 1}])
def test_two_objects_of_a_name_are_not_acquired_by_one_thread(domain, arguments):
    one, other = Mutex("a", domain=domain), SharedMutex("a", domain=lockflight.Domain(domain))
    with one:
        for acquire in (other.acquire, other.acquire_shared, one.acquire):
            with pytest.raises(DomainError) as error:
                acquire(**arguments)
            assert error.value.reason == "held"
        with pytest.raises(DomainError) as error, other:
            pass
        assert error.value.reason == "held"
        assert one.held and not other.held
    with other.shared():
        with pytest.raises(DomainError) as error:
            one.acquire(**arguments)
        assert error.value.reason == "held"
    with one:
        pass


def test_tokens_grow(domain):
    mutex = Mutex("a", domain=domain)
    tokens = []
    for _ in range(3):
        with mutex:
            tokens.append(mutex.token)
        tokens.append(in_thread(lambda: mutex.acquire() and (mutex.token, mutex.release())[0]))
    assert tokens == sorted(set(tokens)) and len(tokens) == 6


def test_misuse_is_refused(domain):
    mutex = Mutex("a", domain=domain)
    with pytest.raises(DomainError) as error:
        mutex.release()
    assert error.value.reason == "not_held" and isinstance(error.value, RuntimeError)
    with mutex, pytest.raises(DomainError) as error:
        mutex.acquire()
    assert error.value.reason == "held"
    with mutex:
        with pytest.raises(DomainError):
            in_thread_raises(mutex.release)
    with pytest.raises(DomainError):
        mutex.mark_consistent()
    assert not mutex.locked()


def test_a_mutex_has_no_readers(domain):
    mutex = Mutex("a", domain=domain)
    for way in (mutex, mutex.within(5), lockflight.all_of("a", domain=domain)):
        with pytest.raises(TypeError, match="acquire_shared of Mutex 'a' .accepted: .* SharedMutex"):
            way.acquire_shared(blocking=False)
    assert not mutex.locked()
    with mutex, pytest.raises(DomainError, match="accepted: release"):
        mutex.release_shared()
    with pytest.raises(ValueError, match="readers do not share"):
        SharedMutex("b", domain=domain, kind="flight").acquire_shared()


def in_thread_raises(call):
    def caught():
        try:
            call()
        except BaseException as e:
            return e

    error = in_thread(caught)
    if error is not None:
        raise error


@pytest.mark.parametrize("timeout", [-2, -0.5, float("nan"), float("inf"), 1e10])
def test_timeouts_that_are_refused(domain, timeout):
    with pytest.raises(ValueError, match=r"timeout .*accepted: 0 to 9e9 seconds"):
        Mutex("a", domain=domain).acquire(timeout=timeout)


def test_timeouts_of_other_types(domain):
    mutex = Mutex("a", domain=domain)
    with pytest.raises(TypeError, match=r"timeout '1' \(accepted: 0 to 9e9 seconds"):
        mutex.acquire(timeout="1")
    with pytest.raises(ValueError, match=r"timeout 1 \(accepted: none with blocking=False"):
        mutex.acquire(False, 1)
    assert mutex.acquire(timeout=None)
    mutex.release()


def test_arguments_that_there_are_not(domain):
    mutex = Mutex("a", domain=domain)
    for positional, named in [((True, 1, 2), {}), ((), {"wait": 1}), ((1,), {"blocking": True})]:
        with pytest.raises(TypeError):
            mutex.acquire(*positional, **named)
    with pytest.raises(TypeError):
        mutex.release(1)
    assert not mutex.held


def test_an_object_that_was_not_initialised():
    unborn = Mutex.__new__(Mutex)
    for call in (unborn.acquire, unborn.release, unborn.acquire_shared, unborn.__enter__):
        with pytest.raises(TypeError, match="__init__"):
            call()


@pytest.mark.parametrize("name", ["", "x" * 256, "é" * 128, "a\0b", "a\nb", "\ud800"])
def test_names_that_are_refused(domain, name):
    with pytest.raises(ValueError, match=r"name .*accepted: 1 to 255 bytes"):
        Mutex(name, domain=domain)


@pytest.mark.parametrize("name", ["", "x" * 65, "a/b", ".a", "a\n", "a\0", "ü"])
def test_domains_that_are_refused(name):
    with pytest.raises(ValueError, match=r"domain .*accepted: 1 to 64 characters"):
        Mutex("a", domain=name)


def test_other_arguments_that_are_refused(domain):
    with pytest.raises(TypeError, match="name 7"):
        Mutex(7, domain=domain)
    with pytest.raises(TypeError, match="domain 7"):
        Mutex("a", domain=7)
    with pytest.raises(ValueError, match="on_owner_died 'shrug'.*accepted: 'tell', 'raise'"):
        Mutex("a", domain=domain, on_owner_died="shrug")
    with pytest.raises(ValueError, match="no-such-lock"):
        Mutex("a", domain=domain, kind="no-such-lock").acquire()
    with pytest.raises(ValueError, match="slots 0"):
        lockflight.Domain(domain, slots=0)
    with pytest.raises(ValueError, match="names 1048577"):
        lockflight.Domain(domain, names=1048577)
    with pytest.raises(ValueError, match=r"mode 0o777 \(accepted: 0o600, 0o660, or 0"):
        lockflight.Domain(domain, mode=0o777)
    with pytest.raises(TypeError, match="mode '600'"):
        lockflight.Domain.remove(domain, mode="600")
    with pytest.raises(TypeError, match="group 7.5 .accepted: the name or the number of a group"):
        lockflight.Domain(domain, group=7.5)
    for group in (0, "0"):
        with pytest.raises(ValueError, match="group '0' .accepted: only with mode 0660"):
            lockflight.Domain(domain, group=group)
    for group in ("no such group", -1, 2**32 - 1):
        with pytest.raises(ValueError, match=f"group '{group}' .accepted: the name or the number"):
            lockflight.Domain(domain, mode=0o660, group=group)
    with pytest.raises(TypeError, match="slots 1.5"):
        lockflight.Domain(domain, slots=1.5)


def test_on_one_machine_no_lock_is_lost(domain):
    mutex = Mutex("a", domain=domain)
    assert (mutex.valid_for(), mutex.lost) == (0.0, False), "it is not held"
    with mutex:
        assert (mutex.valid_for(), mutex.lost) == (math.inf, False)
        assert in_thread(lambda: (mutex.valid_for(), mutex.lost)) == (0.0, False)
    assert (mutex.valid_for(), mutex.lost) == (0.0, False)
    assert mutex.domain.cut_off_for() == 0.0 and not mutex.domain.has_agent()


def test_the_domain_of_a_cluster_needs_its_agent():
    for make in (lambda: Mutex("a", domain="etcd:no-agent"),
                 lambda: lockflight.Domain("etcd:no-agent"),
                 lambda: lockflight.Domain.attach("etcd:no-agent")):
        with pytest.raises(DomainError, match="lockflight agent --domain no-agent") as error:
            make()
        assert error.value.reason == "missing"
    for bad in ("etcd:", "etcd:.a", "etcd:a:b", "zk:a", "etcd:" + 65 * "a"):
        with pytest.raises(ValueError, match="'etcd:' before them"):
            Mutex("a", domain=bad)


@pytest.mark.parametrize("name", [None, "default"])
@pytest.mark.parametrize("make", [lockflight.Domain, lambda name: Mutex("a", domain=name)])
def test_a_domain_beside_that_of_a_cluster_warns_once(domain, make, name):
    domain = name or domain
    own = lockflight.Domain(domain).path
    lockflight.Domain.remove(domain)
    of_cluster = own.replace(domain, f"etcd:{domain}")
    os.makedirs(os.path.dirname(own), mode=0o700, exist_ok=True)
    os.close(os.open(of_cluster, os.O_CREAT, 0o600))
    try:
        text = f"lockflight makes domain '{domain}', .*; that of the cluster is 'etcd:{domain}'"
        with pytest.warns(UserWarning, match=text) as warned:
            make(domain)
        assert [each.filename for each in warned] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            make(domain)
    finally:
        os.unlink(of_cluster)
        lockflight.Domain.remove(domain)


def test_all_who_use_a_name_agree_on_its_kind(domain):
    lock = SharedMutex("a", domain=domain)
    with lock, pytest.raises(ValueError, match="flight-rw") as error:
        Mutex("a", domain=domain, kind="flight").acquire()
    assert "'a'" in str(error.value) and "\n" not in str(error.value)


def test_mutex_and_shared_mutex_are_of_one_kind(domain):
    alone, shared = Mutex("a", domain=domain), SharedMutex("a", domain=domain)
    with shared.shared():
        assert in_thread(lambda: alone.acquire(blocking=False)) is False
    with alone:
        assert in_thread(lambda: shared.acquire_shared(blocking=False)) is False
    assert [lock.kind for lock in lockflight.Domain(domain).locks()] == ["flight-rw"]


@pytest.mark.parametrize("kind", ["d-mcs", "alock", "mcs-rw-fair"])
def test_kinds_whose_waiters_cannot_leave(domain, kind):
    mutex = Mutex("a", domain=domain, kind=kind)
    counted = [0]

    def count():
        for _ in range(50):
            with mutex:
                counted[0] += 1

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted == [150]
    with pytest.raises(ValueError, match="cannot leave"):
        mutex.acquire(timeout=1)


def test_a_name_may_have_any_letters(domain):
    with Mutex("Straße / 道 %s", domain=domain):
        assert [lock.name for lock in lockflight.Domain(domain).locks()] == ["Straße / 道 %s"]


def test_readers_share(domain):
    lock = SharedMutex("a", domain=domain)

    def reads():
        with lock.shared():
            return True

    with lock.shared():
        assert in_thread(reads)
        assert in_thread(lambda: lock.acquire(blocking=False)) is False
        assert lock.locked()
    assert lock.acquire_shared(timeout=1)
    lock.release_shared()
    with lock:
        assert in_thread(lambda: lock.acquire_shared(blocking=False)) is False
        assert in_thread(lambda: lock.acquire_shared(timeout=0.05)) is False


def test_threads_exclude_each_other(domain):
    mutex = Mutex("a", domain=domain)
    count = [0]

    def add():
        for _ in range(300):
            with mutex:
                seen = count[0]
                if seen % 16 == 0:
                    time.sleep(0)
                count[0] = seen + 1

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count == [1200]


def test_a_thread_that_ends_while_it_holds(domain):
    mutex = Mutex("a", domain=domain)
    in_thread(mutex.acquire)
    assert mutex.acquire(timeout=10)
    assert mutex.owner_died
    mutex.release()
    with mutex:
        assert mutex.owner_died
        mutex.mark_consistent()
        assert not mutex.owner_died
    with mutex:
        assert not mutex.owner_died


def test_on_owner_died_raise(domain):
    mutex = Mutex("a", domain=domain)
    strict = Mutex("a", domain=domain, on_owner_died="raise")
    in_thread(mutex.acquire)
    for _ in range(2):
        with pytest.raises(lockflight.OwnerDied, match="lock 'a'"):
            strict.acquire(timeout=10)
        assert not strict.held
    with mutex:
        mutex.mark_consistent()
    with strict:
        pass


def test_many_locks_and_threads_leave_nothing(domain):
    for i in range(200):
        with Mutex(f"lock {i % 20}", domain=domain):
            pass
        in_thread(lambda: Mutex("other", domain=domain).locked())
    made = lockflight.Domain(domain)
    assert {lock.name for lock in made.locks()} == {f"lock {i}" for i in range(20)}
    assert len(made.participants()) == 1


def test_pickle(domain):
    for made in (
        Mutex("a", domain=domain, on_owner_died="raise"),
        SharedMutex("b", domain=domain),
    ):
        again = pickle.loads(pickle.dumps(made))
        assert (type(again), again.name, again.domain.name) == (type(made), made.name, domain)
        assert again._recipe[2:] == made._recipe[2:]
        with again:
            assert not in_thread(lambda: made.acquire(blocking=False))


def test_repr(domain):
    assert repr(Mutex("a", domain=domain)) == f"lockflight.Mutex('a', domain='{domain}')"


def test_domains(domain):
    made = lockflight.Domain(domain, slots=8, names=16)
    assert (made.name, made.slots, made.names, made.mode) == (domain, 8, 16, 0o600)
    assert lockflight.Domain(domain).slots == 8
    assert domain in lockflight.Domain.list()
    mutex = Mutex("a", domain=made)
    with mutex:
        (use,) = [u for lock in made.locks() for u in lock.uses]
        assert use.what == "holds" and use.since <= time.monotonic()
        assert "lock 'a'" in made.show() and "holds" in made.show()
        with pytest.raises(DomainError) as error:
            made.forget("a")
        assert error.value.reason == "held"
        with pytest.raises(DomainError) as error:
            lockflight.Domain.remove(domain)
        assert error.value.reason == "held"
    assert made.forget("a") is True
    assert made.forget("a") is False
    with mutex:  # which makes it anew
        assert [lock.name for lock in made.locks()] == ["a"]
    assert lockflight.Domain.remove(domain) is True
    assert lockflight.Domain.remove(domain) is False
    with pytest.raises(DomainError) as error:
        lockflight.Domain.attach(domain)
    assert error.value.reason == "missing"


def test_what_is_shown_of_participants(domain):
    made = lockflight.Domain(domain)
    with Mutex("a", domain=made):
        (participant,) = made.participants()
        assert (participant.pid, participant.thread) == (os.getpid(), threading.get_native_id())
        assert (participant.dead, participant.stopped, participant.guarded_pid) == (False, False, 0)
        ((use,),) = [lock.uses for lock in made.locks()]
        assert (use.slot, use.pid) == (participant.slot, os.getpid())
        assert (use.dead, use.stopped, use.guarded_pid) == (False, False, 0)


def test_a_domain_as_large_as_can_be_is_the_default(domain):
    made = lockflight.Domain(domain)
    assert (made.slots, made.names) == (4095, 131072)


def test_modes(domain):
    assert lockflight.Domain(domain, mode=0o600).mode == 0o600
    assert lockflight.Domain(domain).mode == 0o600
    assert lockflight.Domain.attach(domain, mode=0o600).mode == 0o600
    with pytest.raises(ValueError, match=domain):
        lockflight.Domain(domain, mode=0o660)
    assert lockflight.Domain.remove(domain, mode=0o600) is True
    group = grp.getgrgid(os.getegid()).gr_name
    for named in ("", group, str(os.getegid()), os.getegid()):
        made = lockflight.Domain(domain, mode=0o660, group=named)
        again = pickle.loads(pickle.dumps(made))
        assert made.mode == again.mode == lockflight.Domain(domain).mode == 0o660
        assert again.path == made.path
        with pytest.raises(ValueError, match=domain):
            lockflight.Domain(domain, mode=0o600)
        assert lockflight.Domain.remove(domain) is True


def test_a_holder_learns_that_the_domain_was_removed(domain):
    made = lockflight.Domain(domain)
    mutex = SharedMutex("a", domain=made)
    assert made.still_valid() and mutex.still_valid()
    with mutex:
        assert mutex.still_valid()
        assert lockflight.Domain.remove(domain, force=True)
        assert not mutex.still_valid() and not made.still_valid()
    with Mutex("a", domain=domain) as other:
        assert other.domain.still_valid() and other.still_valid()


def test_waiters_of_a_domain_that_was_removed_leave_it(domain):
    mutex = Mutex("a", domain=domain)
    results = []

    def wait():
        try:
            with mutex:
                results.append(mutex.still_valid())
        except DomainError as error:
            results.append(error.reason)

    waiter = threading.Thread(target=wait)
    with mutex:
        waiter.start()
        until_waits(mutex)
        lockflight.Domain.remove(domain, force=True)
        waiter.join(10)
        assert results in ([True], ["removed"])


def test_an_acquire_that_waits_for_a_slot_lets_other_threads_go_on(domain):
    """The holder of the only slot needs the interpreter to give it back."""
    small = lockflight.Domain(domain, slots=1)
    one, other = Mutex("a", domain=small), Mutex("b", domain=small)
    release, started = threading.Event(), threading.Event()

    def hold():
        with one:
            started.set()
            release.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    started.wait(10)
    assert other.acquire(blocking=False) is False
    threading.Timer(0.2, release.set).start()
    assert other.acquire(timeout=5) is True
    assert release.is_set()
    other.release()
    holder.join()


def test_what_is_public_has_the_public_name():
    for name in lockflight.__all__:
        assert getattr(lockflight, name).__module__ == "lockflight"


def test_a_thread_that_shares_twice_holds_once(domain):
    """It does not wait for a writer that came between, and so for itself."""
    one, other = SharedMutex("a", domain=domain), SharedMutex("a", domain=domain)
    with one.shared():
        writer = threading.Thread(target=one.within(60)(lambda: None))
        writer.start()
        until_waits(one)
        with other.within(60).shared():
            assert one.held and other.held
            with pytest.raises(DomainError) as error:
                other.acquire_shared()  # by the object that holds
            assert error.value.reason == "held"
        assert one.held and not other.held and len(one.users()) == 2
    writer.join()
    assert one.users() == []
