"""Leaders and those who look for them."""

import asyncio
import multiprocessing
import pickle
import threading
import time

import pytest

import lockflight
from lockflight import Election, Leader


def test_a_thread_leads_and_steps_down(domain):
    election = Election("scheduler", domain, value="10.0.0.5:8080")
    assert (election.is_leader, election.term, election.leader()) == (False, 0, None)
    with election as entered:
        assert entered is election
        assert election.is_leader and election.valid_for() > 0
        assert election.leader() == Leader("10.0.0.5:8080", election.term)
        election.publish("ä\udcff")
        assert Election("scheduler", domain).leader().value == "ä\udcff"
        first = election.term
    assert election.leader() is None and not election.is_leader
    assert election.campaign(timeout=5)
    assert election.term > first
    election.step_down()
    with pytest.raises(lockflight.DomainError):
        election.step_down()


def test_others_wait(domain):
    first, second = Election("a", domain, value="1"), Election("a", domain, value="2")
    order = []

    def lead():
        with second:
            order.append(second.leader().value)

    with first:
        other = threading.Thread(target=lead)
        other.start()

        def late():
            assert not second.campaign(timeout=0.05)

        impatient = threading.Thread(target=late)
        impatient.start()
        impatient.join(20)
        order.append(first.leader().value)
    other.join(20)
    assert order == ["1", "2"]


def lead_for_ever(name, led):
    with Election("a", name, value="of a process"):
        led.set()
        time.sleep(60)


def test_observers_see_each_leader_and_a_death(domain):
    observed = Election("a", domain).observe()
    assert observed.wait() == (True, None)
    assert observed.wait(timeout=0.05) == (False, None)
    election = Election("a", domain, value="of a thread")
    with election:
        assert observed.wait(20) == (True, Leader("of a thread", election.term))
    assert observed.wait(20) == (True, None)
    context = multiprocessing.get_context("spawn")
    led = context.Event()
    process = context.Process(target=lead_for_ever, args=(domain, led))
    process.start()
    assert observed.wait(20)[1].value == "of a process"
    process.kill()
    process.join()
    assert observed.wait(20) == (True, None)


def test_one_is_preferred(domain):
    order = []

    def lead(value):
        with Election("a", domain, value=value):
            order.append(value)

    first = Election("a", domain, value="first")
    assert first.campaign()
    threads = []
    for value in ("second", "preferred"):
        threads.append(threading.Thread(target=lead, args=(value,)))
        threads[-1].start()
        while len(first._role.users()) < 1 + len(threads):
            time.sleep(0.01)
    first.step_down(to="preferred")
    for each in threads:
        each.join(20)
    assert order == ["preferred", "second"]


def test_a_priority_comes_before_a_lesser_one(domain):
    order = []

    def lead(priority):
        with Election("a", domain, value=str(priority), priority=priority):
            order.append(priority)

    async def lead_as_task(priority):
        async with Election("a", domain, value=str(priority), priority=priority):
            order.append(priority)

    def run_task(priority):
        asyncio.run(lead_as_task(priority))

    first = Election("a", domain)
    assert first.campaign()
    threads = []
    for run, priority in ((lead, 0), (lead, 1), (run_task, 3), (lead, 2)):
        threads.append(threading.Thread(target=run, args=(priority,)))
        threads[-1].start()
        while len(first._role.users()) < 1 + len(threads):
            time.sleep(0.01)
    first.step_down()
    for each in threads:
        each.join(20)
    assert order == [3, 2, 1, 0]


def test_an_absent_candidate_is_preferred_for_two_seconds_in_all(domain):
    first = Election("a", domain, value="first")
    assert first.campaign()
    first.step_down(to="nobody")
    other = Election("a", domain, value="other", priority=3)
    end = time.monotonic() + 20
    while not other.campaign(timeout=0.1):
        assert time.monotonic() < end
        assert not first._role.users()  # its priority is not shown any more
    other.step_down()


def test_terms_follow_each_other(domain):
    election = Election("a", domain, value="x")
    seen = []
    for term in election.terms():
        assert election.is_leader
        seen.append(term)
        if len(seen) == 3:
            break
    assert seen == sorted(set(seen)) and not election.is_leader
    with pytest.raises(KeyError):
        for _ in election.terms():
            raise KeyError
    assert election.leader() is None


def test_a_lost_term(domain):
    told = threading.Event()
    election = Election("a", domain, value="x", loss="raise", on_loss=lambda of: told.set())
    with pytest.raises(lockflight.LockLost):
        with election:
            lockflight.Domain.remove(domain, force=True)
            assert told.wait(20)
            assert not election.is_leader and election.lost
    assert election.lost
    with Election("a", domain, value="next"):
        pass


def test_a_lost_term_is_followed_by_another(domain):
    election = Election("a", domain, value="x")
    assert election.campaign()
    lockflight.Domain.remove(domain, force=True)
    end = time.monotonic() + 20
    while election.is_leader:
        assert time.monotonic() < end
        time.sleep(0.001)
    assert election.campaign()
    assert election.leader().value == "x"
    election.step_down()


def test_tasks(domain):
    async def candidate(value, order):
        async with Election("a", domain, value=value) as election:
            assert await election.valid_for_async() > 0
            assert await election.term_async() > 0
            await election.publish_async(value + "!")
            assert election.leader().value == value + "!"
            order.append(value)
            await asyncio.sleep(0.05)

    async def observe(seen, stop):
        async for leader in Election("a", domain).observe():
            seen.append(leader.value if leader else None)
            if len({each for each in seen if each}) == stop:
                return

    async def main():
        order, seen = [], []
        observer = asyncio.create_task(observe(seen, 2))
        await asyncio.gather(candidate("1", order), candidate("2", order))
        assert sorted(order) == ["1", "2"]
        observer.cancel()
        await asyncio.gather(observer, return_exceptions=True)
        waits = asyncio.create_task(observe([], 9))
        await asyncio.sleep(0.1)
        begun = time.monotonic()
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        assert time.monotonic() - begun < 5
        assert seen

    asyncio.run(asyncio.wait_for(main(), 40))


def test_it_can_be_pickled(domain):
    election = pickle.loads(pickle.dumps(Election("a", domain, value="x", loss="raise")))
    assert (election.name, election.domain.name, election.value) == ("a", domain, "x")
    with election:
        assert election.leader().value == "x"


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"value": 3}, TypeError, "value 3 "),
        ({"value": "x", "loss": "x"}, ValueError, "loss 'x'"),
        ({"on_loss": 3}, TypeError, "on_loss 3"),
        ({"priority": -1}, ValueError, "priority -1"),
        ({"priority": 1001}, ValueError, "priority 1001"),
        ({"priority": "x"}, TypeError, "priority 'x'"),
    ],
)
def test_bad_arguments(domain, arguments, error, text):
    with pytest.raises(error, match=text):
        Election("a", domain, **arguments)


def test_a_value_that_is_too_long(domain):
    with pytest.raises(ValueError, match="value of 65001 bytes .accepted: a text of at most 65000"):
        Election("a", domain, value="x" * 65_001)
    with pytest.raises(ValueError, match="value '.ud800'"):
        Election("a", domain, value="\ud800")
    with Election("a", domain, value="y" * 65_000):
        with pytest.raises(TypeError):
            Election("a", domain).campaign(timeout="x")
