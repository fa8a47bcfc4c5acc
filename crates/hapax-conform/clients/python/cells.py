"""What both Python programs share: the cells, their topics, and one line of output per cell.

Called as: PROGRAM BOOTSTRAP FLAKY PREFIX CELL... where FLAKY is the same broker behind a proxy that loses answers.
"""
import sys
import time
import traceback

COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]
RECORDS = 600
DEADLINE = 300.0


class Cannot(Exception):
    """The client has no such thing."""


def payload(number):
    return ("value %05d " % number * 8).encode()


def check_records(found, count):
    """`found`: (partition, offset, key, value, header) as read. Each record once, in order, with all its parts."""
    numbers = []
    last = {}
    for partition, offset, key, value, header in found:
        number = int(key)
        assert value == payload(number), f"value of {number} is {value!r}"
        assert header == b"h%d" % number, f"header of {number} is {header!r}"
        before = last.get(partition, (-1, -1))
        assert (offset, number) > before and number > before[1], f"{partition}: {before} before {(offset, number)}"
        assert offset == before[0] + 1, f"partition {partition} has a hole before {offset}"
        last[partition] = (offset, number)
        numbers.append(number)
    assert sorted(numbers) == list(range(count)), f"{len(numbers)} records, {len(set(numbers))} of {count} different"


def until(condition, what):
    """Waits until `condition` holds."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"timed out: {what}"
        time.sleep(0.01)


def check_group(done, committed, count):
    """`done`: every (partition, offset) whose commit succeeded, as often as it did; `committed`: partition -> offset."""
    assert len(set(done)) == count, f"{len(set(done))} of {count} records were processed"
    assert len(done) == count, f"{len(done) - count} records were processed twice"
    assert sum(committed.values()) == count, f"committed {committed}, {count} records"
    return f"{count} records, each processed once by committed offsets, 3 members"


def share(member, produce):
    """Three members come and go while records arrive; (partition, offset) of every commit, and how many records there were.

    `member`: makes a member that adds to the list it is given; `produce`: produces the records of these numbers.
    """
    third, done, members = 300, [], []

    def join():
        members.append(member(done))
        members[-1].start()
        return members[-1]

    def fine():
        for one in members:
            if one.error:
                raise one.error
        return True

    first = join()
    produce(range(third))
    until(lambda: fine() and len(done) >= third, "the first member reads")
    second = join()
    produce(range(third, 2 * third))
    until(lambda: fine() and first.assigned == second.assigned == 2, "two members share")
    until(lambda: fine() and len(done) >= 2 * third, "two members read")
    first.stop.set()
    join()
    produce(range(2 * third, 3 * third))
    until(lambda: fine() and len(done) >= 3 * third, "the others take over")
    for one in members:
        one.stop.set()
        one.join(DEADLINE)
    fine()
    return done, 3 * third


def main(cells):
    bootstrap, flaky, prefix = sys.argv[1:4]
    for cell in sys.argv[4:]:
        try:
            detail = cells(cell, flaky if cell == "idempotent" else bootstrap, f"{prefix}-{cell}")
            print(f"{cell} pass {detail}", flush=True)
        except Cannot as why:
            print(f"{cell} cannot {why}", flush=True)
        except BaseException as error:  # a thread's assertion, a client's own error: all the same to the table
            traceback.print_exc()
            print(f"{cell} fail {type(error).__name__}: {error}".replace("\n", " "), flush=True)
