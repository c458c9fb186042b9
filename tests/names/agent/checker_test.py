"""The checker of histories finds what is wrong in them, and nothing in those that are right."""

import dataclasses
import pathlib
import tempfile
import unittest

from testbed import checker, history
from testbed.history import COUNTER_BITS, SECOND, Operation, Sight

MS = 1_000_000


def token(epoch, counter):
    return epoch << COUNTER_BITS | counter


def writer(at, counter, epoch=1, client="h1.1", value=0, **changed):
    """Invoked at `at` ms, inside from 1 ms later for 2 ms; valid for a second."""
    made = Operation(
        client, 0, at, invoked=at * MS, acquired=(at + 1) * MS, token=token(epoch, counter),
        valid=SECOND, checked=(at + 2) * MS, still_valid=SECOND, plain=value, fenced=value,
        wrote=(at + 2) * MS + 1, leaving=(at + 3) * MS, released=(at + 4) * MS)
    return dataclasses.replace(made, **changed)


def reader(at, client="h2.1", **changed):
    made = Operation(
        client, 1, at, shares=True, invoked=at * MS, acquired=(at + 1) * MS, valid=SECOND,
        checked=(at + 2) * MS, still_valid=SECOND, leaving=(at + 3) * MS, released=(at + 4) * MS)
    return dataclasses.replace(made, **changed)


def dies(at, counter, **changed):
    """A writer that is killed inside."""
    return writer(at, counter, checked=0, still_valid=0, wrote=None, fenced=None, leaving=None,
                  released=None, killed=(at + 3) * MS, **changed)


class CheckerTest(unittest.TestCase):
    def found(self, *operations, **around):
        return checker.check(list(operations), checker.Surroundings(ends=100 * SECOND, **around))

    def right(self, *operations, **around):
        self.assertEqual(self.found(*operations, **around), [])

    def wrong(self, what, *operations, **around):
        found = self.found(*operations, **around)
        self.assertTrue(found, "nothing was found")
        self.assertTrue(all(what in each for each in found), found)

    # ---- values ----

    def test_values_that_are_read_and_seen(self):
        first = writer(0, 1, published=2 * MS)
        second = writer(10, 2, value=1, published=12 * MS)
        of_first, of_second = first.token, second.token
        self.right(first, second, reader(30, read_since=13 * MS, read=of_second),
                   reader(40, read_since=1 * MS, read=of_second),  # it was there sooner
                   Sight("h3.1", 9, 1, 0, 5 * MS, of_first), Sight("h3.1", 9, 2, 0, 15 * MS, of_second))
        self.wrong("an old value", first, second, reader(30, read_since=13 * MS, read=of_first))
        self.wrong("an old value", first, reader(30, read_since=3 * MS, read=0))
        self.wrong("a value of nobody", first, reader(30, read_since=3 * MS, read=token(9, 9)))
        self.wrong("values in another order", first, second,
                   Sight("h3.1", 9, 1, 0, 5 * MS, of_second), Sight("h3.1", 9, 2, 0, 15 * MS, of_first))
        self.wrong("a value of nobody", first, Sight("h3.1", 9, 1, 0, 5 * MS, token(9, 9)))

    # ---- exclusion ----

    def test_one_after_the_other(self):
        self.right(writer(0, 1), reader(10), reader(11), writer(20, 2, value=1))

    def test_two_writers(self):
        self.wrong("two holders", writer(0, 1), writer(1, 2, value=1, client="h2.1"))

    def test_a_reader_and_a_writer(self):
        self.wrong("two holders", writer(0, 1), reader(1))
        self.wrong("two holders", reader(0), writer(1, 1))
        self.wrong("two holders", reader(0, leaving=9 * MS), reader(1), writer(5, 1))

    def test_a_holder_that_is_not_valid_any_more(self):
        lost = writer(0, 1, valid=MS, checked=400 * MS, still_valid=0, wrote=None, fenced=None,
                      leaving=400 * MS, released=401 * MS, told=2 * MS)
        self.right(lost, writer(10, 1, epoch=2), removals={2})
        late = dataclasses.replace(lost, still_valid=5 * MS, leaving=405 * MS)
        self.wrong("two holders", late, writer(399, 1, epoch=2), removals={2})

    def test_a_holder_that_is_killed(self):
        self.right(dies(0, 1), writer(3, 2, died=True))
        self.wrong("two holders", dies(0, 1, client="h3.1"), writer(1, 2, died=True))

    # ---- losses ----

    def test_a_loss_is_told_in_time(self):
        lost = writer(0, 1, valid=MS, checked=400 * MS, still_valid=0, wrote=None, fenced=None,
                      leaving=400 * MS, released=401 * MS, told=90 * MS)
        late = writer(299, 1, epoch=2)
        self.right(lost, late, removals={2}, ttl=2 * SECOND)
        for told in (101 * MS, None):
            not_in_time = dataclasses.replace(lost, told=told)
            self.wrong("of its loss", not_in_time, late, removals={2}, ttl=2 * SECOND)
            self.right(not_in_time, late, removals={2}, ttl=2 * SECOND,
                       stopped={"h1.1": [(150 * MS, 250 * MS)]})
        self.right(dataclasses.replace(lost, told=None, leaving=299 * MS, released=400 * MS),
                   late, removals={2}, ttl=2 * SECOND)

    # ---- tokens and registers ----

    def test_tokens(self):
        self.wrong("token", writer(0, 1), writer(10, 1, value=1))
        self.wrong("token", writer(0, 2), writer(10, 1, value=1), writer(20, 3, value=2))

    def test_a_valid_holder_is_refused(self):
        self.wrong("refused", writer(0, 1), writer(10, 2, value=1, fenced=None))

    def test_the_fenced_register(self):
        self.wrong("fenced register has lost", writer(0, 1), writer(10, 2, value=1, fenced=0))

    def test_the_plain_register(self):
        self.wrong("an update was lost", writer(0, 1), writer(10, 2, value=1, plain=0))
        # Somebody was killed before it could say what it wrote.
        self.right(writer(0, 1), dies(10, 2), writer(20, 3, value=2, died=True))

    # ---- deaths ----

    def test_a_death_is_told(self):
        self.wrong("a death is not told", dies(0, 1), writer(10, 2))
        self.wrong("a death is not told", dies(0, 1), reader(10))
        self.wrong("a death is not told", writer(0, 1, abandons=True), writer(10, 2, value=1))
        self.right(dies(0, 1), reader(10, died=True), writer(20, 2, died=True))

    def test_until_somebody_puts_it_right(self):
        self.wrong("a death is not told", dies(0, 1), writer(10, 2, died=True),
                   writer(20, 3, value=1))
        self.right(dies(0, 1), writer(10, 2, died=True, marks=True), writer(20, 3, value=1))

    def test_a_false_alarm(self):
        self.wrong("a false alarm", writer(0, 1, died=True))
        self.wrong("a false alarm", writer(0, 1), writer(10, 2, value=1, died=True))
        self.wrong("a false alarm", writer(0, 1), reader(10, died=True), writer(20, 2, value=1))
        self.wrong("a false alarm", writer(0, 1), writer(10, 1, epoch=2, value=1, died=True))

    def test_a_false_alarm_after_the_death_of_a_host(self):
        self.right(writer(0, 1), writer(10, 1, epoch=2, value=1, died=True), removals={2})
        self.right(writer(0, 1), reader(5, died=True),
                   writer(10, 1, epoch=2, value=1, died=True), removals={2})

    def test_a_client_that_is_killed_while_it_may_be_inside(self):
        killed = Operation("h3.1", 0, 1, invoked=5 * MS, killed=8 * MS)
        self.right(writer(0, 1), killed, writer(10, 3, value=1, died=True))
        in_its_release = writer(0, 1, released=None, killed=8 * MS)
        self.right(in_its_release, writer(10, 3, value=1, died=True))
        self.right(in_its_release, writer(10, 3, value=1))

    # ---- time ----

    def test_progress(self):
        waits = Operation("h1.1", 0, 1, invoked=SECOND)
        calm = [(2 * SECOND, 20 * SECOND)]
        self.wrong("no progress", waits, calm=calm)
        self.right(waits, calm=[(2 * SECOND, 4 * SECOND), (90 * SECOND, 91 * SECOND)])
        self.right(dataclasses.replace(waits, killed=5 * SECOND), calm=calm)
        self.right(dataclasses.replace(waits, limit=500 * MS, gave_up=SECOND + 600 * MS), calm=calm)

    def test_limits(self):
        late = Operation("h1.1", 0, 1, limit=500 * MS, invoked=SECOND, gave_up=4 * SECOND)
        self.wrong("later than its limit", late)
        self.right(late, stopped={"h1.1": [(SECOND, 3 * SECOND)]})

    def test_errors(self):
        self.wrong("an error", Operation("h1.1", 0, 1, invoked=1, error="it is full"))


class ReadingTest(unittest.TestCase):
    def test_a_history(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "h1.1.json"
            path.write_text(
                '{"event":"invoke","t":1,"thread":0,"op":1,"name":3,"mode":"exclusive",'
                '"limit_ms":-1}\n'
                '{"event":"acquired","t":2,"thread":0,"op":1,"token":7,"died":true,"valid":9}\n'
                '{"event":"leaving","t":4,"thread":0,"op":1,"checked":3,"valid":8,"plain":5,'
                '"marks":true,"abandons":false,"wrote":4,"fenced":null}\n'
                '{"event":"rele', encoding="utf-8")
            one, = history.read(path, killed=50)
        self.assertEqual(one, Operation(
            "h1.1", 0, 1, name=3, invoked=1, acquired=2, token=7, died=True, valid=9, leaving=4,
            checked=3, still_valid=8, plain=5, wrote=4, marks=True, killed=50))


if __name__ == "__main__":
    unittest.main(verbosity=1)
