"""What clients have written down, as operations. Times are nanoseconds of CLOCK_MONOTONIC."""

import dataclasses
import json

SECOND = 1_000_000_000
FOREVER = 1 << 62
COUNTER_BITS = 42


@dataclasses.dataclass(slots=True)
class Sight:
    """A value that a thread has seen which waits for changes."""
    client: str
    thread: int
    number: int
    name: int
    at: int
    token: int  # of the holder that has published it; 0: there is none


@dataclasses.dataclass(slots=True)
class Operation:
    """An acquire, and the section after it. None: it did not come to that."""
    client: str
    thread: int
    number: int
    name: int = 0
    shares: bool = False
    limit: int | None = None          # nanoseconds
    invoked: int = 0
    gave_up: int | None = None
    error: str | None = None
    acquired: int | None = None
    token: int = 0
    died: bool = False
    valid: int = 0                    # from `acquired` on
    told: int | None = None           # when it was told that its hold is lost
    leaving: int | None = None        # just before the release
    checked: int = 0                  # in the section's end, before the writes
    still_valid: int = 0              # from `checked` on
    plain: int = 0                    # what it read in the plain register
    wrote: int | None = None          # when plain + 1 was written
    fenced: int | None = None         # what it read in the fenced register, if that took its write
    marks: bool = False               # it has put things right
    abandons: bool = False            # it goes without a release, as if it had died
    released: int | None = None
    read_since: int | None = None     # when it asked for the value before the acquire
    read: int = 0                     # the token of that value; 0: there was none
    published: int | None = None      # when its value was there
    killed: int = FOREVER             # when its client was

    def __str__(self):
        return (f"{self.client}/{self.thread}/{self.number} (name {self.name}, "
                f"{'shared' if self.shares else 'exclusive'}, token {self.epoch}."
                f"{self.token % (1 << COUNTER_BITS)}, acquired at {self.acquired}, "
                f"leaving at {self.leaving})")

    @property
    def epoch(self):
        return self.token >> COUNTER_BITS

    @property
    def end(self):
        """Until when it was inside, if it was ever."""
        return self.killed if self.leaving is None else self.leaving

    @property
    def valid_times(self):
        """When its own checks said that it is certainly alone."""
        times = [(self.acquired, min(self.acquired + self.valid, self.end))]
        if self.leaving is not None:
            times.append((self.checked, min(self.checked + self.still_valid, self.end)))
        return [(begin, end) for begin, end in times if begin < end]

    @property
    def wrote_in_time(self):
        return self.wrote is not None and self.wrote < self.checked + self.still_valid


def read(path, killed=FOREVER):
    """The operations of one client, and what it has seen of values. Its last line may not be whole."""
    operations = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                break
            add(json.loads(line), path.stem, killed, operations)
    return list(operations.values())


def add(event, client, killed, operations):
    key = event["thread"], event["op"]
    what, at = event["event"], event["t"]
    if what == "invoke":
        limit = event["limit_ms"]
        operations[key] = Operation(
            client, *key, name=event["name"], shares=event["mode"] == "shared", invoked=at,
            limit=None if limit < 0 else limit * 1_000_000, killed=killed)
        return
    if what == "seen":
        operations[key] = Sight(client, *key, event["name"], at, event["value"])
        return
    of = operations[key]
    if what == "read":
        of.read_since, of.read = event["since"], event["value"]
    elif what == "published":
        of.published = at
    elif what == "acquired":
        of.acquired, of.token, of.died, of.valid = at, event["token"], event["died"], event["valid"]
    elif what == "told":
        of.told = at
    elif what == "leaving":
        of.leaving, of.checked, of.still_valid = at, event["checked"], event["valid"]
        of.plain = event.get("plain", 0)
        of.wrote, of.fenced = event.get("wrote"), event.get("fenced")
        of.marks, of.abandons = event.get("marks", False), event.get("abandons", False)
    elif what == "released":
        of.released = at
    elif what == "gave_up":
        of.gave_up = at
    elif what == "error":
        of.error = event["what"]
