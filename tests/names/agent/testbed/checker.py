"""Whether a history keeps what a cluster's domain promises (docs/cluster.md,
"What is promised"). What it finds is
a list of sentences; an empty one is a history in which nothing is wrong."""

import bisect
import collections
import dataclasses

from .history import FOREVER, SECOND, Sight

# A client that is not the only one on its processor acts a little later than it could.
SLACK = SECOND


@dataclasses.dataclass
class Surroundings:
    """What the testbed knows beside the history."""
    ends: int  # when the history was cut off
    removals: set = dataclasses.field(default_factory=set)  # epochs that lack a host of the last
    calm: list = dataclasses.field(default_factory=list)  # (begin, end) without any fault
    stopped: dict = dataclasses.field(default_factory=dict)  # client: [(begin, end)]
    stalls: list = dataclasses.field(default_factory=list)  # (begin, end): the testbed did not run
    longest_wait: int = 5 * SECOND  # the bound of an acquire in calm times
    ttl: int = 0
    judges_times: bool = True  # a machine that does other things as well keeps no bounds


def check(operations, around):
    sights = [each for each in operations if isinstance(each, Sight)]
    operations = [each for each in operations if not isinstance(each, Sight)]
    by_name = collections.defaultdict(list)
    for each in operations:
        by_name[each.name].append(each)
    found = [f"an error: {each}: {each.error}" for each in operations if each.error]
    for of_name in by_name.values():
        held = [each for each in of_name if each.acquired is not None]
        writers = sorted((each for each in held if not each.shares),
                         key=lambda each: (each.token, each.acquired))
        found += exclusion(held)
        found += tokens(writers)
        found += fenced_register(writers)
        found += plain_register(writers)
        found += deaths(of_name, writers, around)
        found += values(of_name)
    found += values_seen(sights, by_name)
    if not around.judges_times:
        return found
    for of_name in by_name.values():
        found += losses([each for each in of_name if each.acquired is not None], around)
    found += limits(operations, around)
    found += [f"no progress: {each} waited {waited / SECOND:.1f} s in calm times"
              for each, waited in waits(operations, around) if waited > around.longest_wait]
    return found


def exclusion(held):
    """Of two holders that are valid at one moment, both share."""
    found = []
    times = sorted((begin, end, i) for i, each in enumerate(held)
                   for begin, end in each.valid_times)
    latest = {True: (0, None), False: (0, None)}  # by whether it shares: the one valid longest
    for begin, end, i in times:
        one = held[i]
        for shares in (False,) if one.shares else (False, True):
            until, other = latest[shares]
            if begin < until and other is not one:
                found.append(f"two holders at {begin}: {other} and {one}")
        if end > latest[one.shares][0]:
            latest[one.shares] = end, one
    return found


def tokens(writers):
    found = [f"one token for two: {one} and {other}" for one, other in zip(writers, writers[1:])
             if one.token == other.token]
    by_time = sorted(writers, key=lambda each: each.acquired)
    times = [each.acquired for each in by_time]
    greatest = []  # of all up to that one
    for each in by_time:
        greatest.append(each if not greatest or each.token > greatest[-1].token else greatest[-1])
    for each in by_time:
        before = bisect.bisect_left(times, each.invoked)
        if before and greatest[before - 1].token >= each.token:
            found.append(f"the token does not grow: {greatest[before - 1]}, and later {each}")
    valid = [each for each in by_time if each.valid > 0]
    found += [f"the token does not grow: {one}, and then {other}"
              for one, other in zip(valid, valid[1:]) if one.token >= other.token]
    return found


def fenced_register(writers):
    found = []
    value, before = 0, None
    for each in writers:
        if each.fenced is None:
            if each.wrote_in_time:
                found.append(f"a valid holder's token was refused: {each}")
            continue
        if each.fenced < value:
            found.append(f"the fenced register has lost an update: {before} wrote {value}, and "
                         f"then {each} read {each.fenced}")
        value, before = each.fenced + 1, each
    return found


def plain_register(writers):
    """What nothing guards but the lock. Who wrote although it was not valid any more, or was killed
    before it could say whether it wrote, may have changed it."""
    found = []
    doubts = sorted((each.acquired, each.wrote or each.end) for each in writers
                    if (each.wrote is not None and not each.wrote_in_time)
                    or each.leaving is None)
    wrote = [each for each in writers if each.wrote_in_time]
    for one, other in zip(wrote, wrote[1:]):
        if any(begin <= other.checked and end >= one.acquired for begin, end in doubts):
            continue
        if other.plain != one.plain + 1:
            found.append(f"an update was lost: {one} wrote {one.plain + 1}, and then {other} read "
                         f"{other.plain}")
    return found


# ---- deaths ----

DIED, CLEAN, UNKNOWN = "died", "clean", "unknown"


def values(of_name):
    """A value that was there before somebody asked is not older than what was read."""
    found = []
    tokens_of_name = {each.token for each in of_name if each.token}
    published = sorted((each.published, each.token) for each in of_name if each.published is not None)
    times = [at for at, _ in published]
    greatest = []
    for _, token in published:
        greatest.append(max(token, greatest[-1] if greatest else 0))
    for each in of_name:
        if each.read_since is None:
            continue
        before = bisect.bisect_left(times, each.read_since)
        if before and greatest[before - 1] > each.read:
            found.append(f"an old value: {each} read that of token {each.read} at {each.read_since}, "
                         f"when that of {greatest[before - 1]} was there")
        if each.read and each.read not in tokens_of_name:
            found.append(f"a value of nobody: {each} read that of token {each.read}")
    return found


def values_seen(sights, by_name):
    """A thread that waits for changes sees the values in the order of their tokens."""
    found = []
    last = {}
    for each in sorted(sights, key=lambda each: (each.client, each.thread, each.number)):
        key = each.client, each.thread, each.name
        if each.token < last.get(key, 0):
            found.append(f"values in another order: {each} after that of token {last[key]}")
        last[key] = max(each.token, last.get(key, 0))
        if each.token and all(each.token != one.token for one in by_name[each.name]):
            found.append(f"a value of nobody: {each}")
    return found


def left(writer):
    """What an exclusive holder has left for the next one."""
    if writer.abandons or (writer.leaving is None and writer.killed != FOREVER):
        return DIED
    if writer.died and not writer.marks:
        return DIED
    if writer.released is None or writer.released >= writer.checked + writer.still_valid:
        return UNKNOWN  # it was killed in its release, or had been lost by then
    return CLEAN


def deaths(operations, writers, around):
    """`died` is told when and only when it may be. A false alarm needs a host that is gone, and
    gives the name another epoch's token."""
    found = []
    # Those that may have been inside when they were killed, and could not say so.
    silent = [each for each in operations if not each.shares and each.acquired is None
              and each.killed != FOREVER and each.gave_up is None and each.error is None]
    by_time = sorted(writers, key=lambda each: each.acquired)
    times = [each.acquired for each in by_time]
    place = {id(each): i for i, each in enumerate(writers)}
    greatest = []  # the place of the greatest token of all up to that one
    for each in by_time:
        greatest.append(max(place[id(each)], greatest[-1] if greatest else -1))

    def is_excused(since, reader, last_epoch, next_epoch):
        if any(each.killed > since and each.invoked < reader.acquired for each in silent):
            return True
        return any(last_epoch < epoch <= next_epoch for epoch in around.removals)

    for reader in operations:
        if reader.acquired is None:
            continue
        if reader.shares:
            if reader.valid == 0:
                continue
            before = bisect.bisect_left(times, reader.acquired)
            at = greatest[before - 1] if before else -1
            after = writers[at + 1].epoch if at + 1 < len(writers) else FOREVER
        else:
            at = place[id(reader)] - 1
            after = reader.epoch
        last = writers[at] if at >= 0 else None
        state = left(last) if last else CLEAN
        if state == DIED and not reader.died:
            found.append(f"a death is not told: {last} left it, and then {reader}")
        if state == CLEAN and reader.died:
            since, epoch = (last.acquired, last.epoch) if last else (0, 0)
            if not is_excused(since, reader, epoch, after):
                found.append(f"a false alarm: {reader}, after {last}")
    return found


# ---- time ----

def overlap(begin, end, times):
    return sum(max(0, min(end, until) - max(begin, since)) for since, until in times)


def losses(held, around):
    """Who is still inside when another one begins to hold was told a tenth of a time to live before,
    unless it was stopped."""
    found = []
    inside = []
    for each in sorted(held, key=lambda each: each.acquired):
        inside = [other for other in inside if other.end > each.acquired]
        for other in inside:
            if each.valid == 0 or (each.shares and other.shares):
                continue
            if any(begin <= each.acquired < end for begin, end in other.valid_times):
                continue  # exclusion() finds that
            since = max(other.acquired, each.acquired - around.ttl)
            if overlap(since, each.acquired, around.stopped.get(other.client, []) + around.stalls):
                continue
            if other.told is None or other.told > each.acquired - around.ttl // 10:
                when = "not told" if other.told is None else f"told at {other.told}"
                found.append(f"{when} of its loss: {other}, before {each}")
        inside.append(each)
    return found


def limits(operations, around):
    """An acquire with a limit returns by then. An attempt may ask other hosts."""
    found = []
    for each in operations:
        if each.limit is None or each.error:
            continue
        end = each.acquired or each.gave_up or min(each.killed, around.ends)
        stopped = overlap(each.invoked, end, around.stopped.get(each.client, []) + around.stalls)
        late = end - each.invoked - max(each.limit, SECOND // 5) - stopped
        if late > SLACK:
            found.append(f"{late / SECOND:.1f} s later than its limit: {each}")
    return found


def waits(operations, around):
    """For each acquire without a limit: how long it waited in calm times."""
    begins = [begin for begin, _ in around.calm]
    for each in operations:
        if each.limit is not None or each.error:
            continue
        end = min(each.acquired or FOREVER, each.killed, around.ends)
        first = max(0, bisect.bisect_right(begins, each.invoked) - 1)
        waited = 0
        for begin, until in around.calm[first:]:
            if begin >= end:
                break
            waited = max(waited, min(end, until) - max(each.invoked, begin))
        yield each, waited
