"""Work that is done once for many callers."""

import asyncio
import json
import multiprocessing
import threading
import time

import pytest

import lockflight
from lockflight import once

PER = "3000d"  # it does not end during a test, but for one moment in eight years


def at_once(calls):
    """What the calls return or raise, each in a thread."""
    results = [None] * len(calls)

    def run(i):
        try:
            results[i] = calls[i]()
        except Exception as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    return results


def work_for(domain, **how):
    calls = []

    @once("work", domain=domain, **how)
    def work(value="done"):
        """Its own text."""
        calls.append(value)
        time.sleep(0.2)
        return {"value": value}

    return work, calls


def test_calls_that_come_meanwhile_get_the_result(domain):
    work, calls = work_for(domain)
    assert work.__doc__ == "Its own text."
    assert at_once([work] * 4) == [{"value": "done"}] * 4
    assert len(calls) == 1
    assert work("again") == {"value": "again"}
    assert calls == ["done", "again"]


def test_later_calls_of_the_period_get_it_too(domain):
    work, calls = work_for(domain, per=PER)
    assert [work("1"), work("2")] == [{"value": "1"}] * 2
    assert calls == ["1"]


def compute(name):
    return once("work", domain=name, per=PER)(lambda: 42)()


def test_processes_get_it(domain):
    work, calls = work_for(domain, per=PER)
    assert work() == {"value": "done"}
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(compute, (domain,)) == {"value": "done"}
    assert len(calls) == 1


def test_a_failure_is_its_callers_alone(domain):
    tries = []

    @once("work", domain=domain, per=PER)
    def fails_once():
        tries.append(1)
        time.sleep(0.1)
        if len(tries) == 1:
            raise KeyError("first")
        return len(tries)

    results = at_once([fails_once] * 3)
    assert [str(each) for each in results if isinstance(each, KeyError)] == ["'first'"]
    assert [each for each in results if not isinstance(each, KeyError)] == [2, 2]


def test_none_is_a_result(domain):
    calls = []

    @once("work", domain=domain, per=PER)
    def nothing():
        calls.append(1)

    assert nothing() is None and nothing() is None
    assert len(calls) == 1


@pytest.mark.parametrize("result", ["x" * 70_000, lambda: None])
def test_a_result_that_cannot_be_kept(domain, result):
    @once("work", domain=domain, per=PER)
    def work():
        return result

    assert work() is result
    with pytest.raises(lockflight.ResultNotKept, match="at most 64000 bytes"):
        work()


def test_the_most_bytes(domain):
    @once("work", domain=domain, per=PER, most_bytes=10, dumps=str.encode, loads=bytes.decode)
    def work(text):
        return text

    assert [work("x" * 10), work("y")] == ["x" * 10] * 2
    lockflight.Domain(domain).forget("work")
    assert work("x" * 11) == "x" * 11
    with pytest.raises(lockflight.ResultNotKept):
        work("y")


def test_names_by_arguments_and_json(domain):
    calls = []

    @once(
        lambda user, **_: f"report-{user}",
        domain=domain,
        per=PER,
        dumps=lambda result: json.dumps(result).encode(),
        loads=json.loads,
    )
    def report(user, detail=0):
        calls.append(user)
        return [user, detail]

    assert [report("a", detail=1), report("b"), report("a")] == [["a", 1], ["b", 0], ["a", 1]]
    assert calls == ["a", "b"]


def test_tasks(domain):
    calls = []

    @once("work", domain=domain)
    async def work():
        calls.append(1)
        await asyncio.sleep(0.2)
        return "done"

    async def main():
        return await asyncio.gather(*(work() for _ in range(4)))

    assert asyncio.run(asyncio.wait_for(main(), 30)) == ["done"] * 4
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((3,), TypeError, "name 3"),
        (("a", {"per": 3600}), TypeError, "per 3600"),
        (("a", {"per": "1w"}), ValueError, "per '1w'"),
        (("a", {"per": "0s"}), ValueError, "per '0s'"),
        (("a", {"per": "3661d"}), ValueError, "per '3661d'"),
        (("a", {"most_bytes": 64_001}), ValueError, "most_bytes 64001"),
        (("a", {"most_bytes": "x"}), TypeError, "most_bytes 'x'"),
    ],
)
def test_bad_arguments(arguments, error, text):
    name, how = arguments if len(arguments) == 2 else (arguments[0], {})
    with pytest.raises(error, match=text):
        once(name, **how)


def test_only_functions_do_work(domain):
    with pytest.raises(TypeError, match="accepted: a function"):
        once("a", domain=domain)(3)
    with pytest.raises(ValueError, match="name"):
        once(lambda: "", domain=domain)(lambda: 1)()
