# Runs cells: copy, check, time, record; one candidate's failure is one line and ends nothing else.
import os
import sys
import threading
import time

from . import records, timing
from .candidate import Absent, first_line

STUCK_SECONDS = 150  # no candidate takes this long, compilation included: it hangs
COPY_EVERY = 32  # cells of the cliff sweep between two measurements of the copy
STUCK_EXIT_CODE = 3


class Clock:
    def __init__(self, seconds):
        self._begin = time.monotonic()
        self._seconds = seconds

    @property
    def spent(self):
        return time.monotonic() - self._begin

    @property
    def over(self):
        return self._seconds is not None and self.spent >= self._seconds


class Watchdog:
    """Ends the process where a candidate hangs the card: nothing that was enqueued can be called
    back. What was measured before is on disk."""

    def __init__(self, seconds=STUCK_SECONDS):
        self._seconds = seconds
        self._what, self._since = None, 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def begin(self, what):
        self._since = time.monotonic()
        self._what = what

    def end(self):
        self._what = None

    def _watch(self):
        while True:
            time.sleep(1)
            what = self._what
            if what is not None and time.monotonic() - self._since > self._seconds:
                print(f"compare: stuck for {self._seconds} s in {what}; ending", file=sys.stderr,
                      flush=True)
                os._exit(STUCK_EXIT_CODE)


class CardLost(Exception):
    """An error took the CUDA context down; the message says where."""


class Session:
    """`device` times and synchronises, `buffers` gives views, `copies` measures the copy, and
    `make_checker(cell, x)` gives what checks outputs: tests put stand-ins in their places."""

    def __init__(self, device, buffers, copies, make_checker, candidates, write, say, clock,
                 watchdog=None):
        self._device = device
        self._buffers = buffers
        self._copies = copies
        self._make_checker = make_checker
        self._candidates = candidates
        self._write = write
        self._say = say
        self._clock = clock
        self._watchdog = watchdog
        self._copy_memory = {}  # dtype -> [cells since, us a byte, kind]
        self.lines = []

    def run(self, cells):
        """Returns the cells that were left out, for lack of time or of a card."""
        for number, cell in enumerate(cells):
            if self._clock.over:
                return cells[number:]
            try:
                self._cell(cell, f"[{number + 1}/{len(cells)}]")
            except CardLost as lost:
                self._say(f"compare: {lost}; nothing more can be measured by this process")
                return cells[number + 1:]
        return []

    def _cell(self, cell, label):
        with self._device.current():
            self._watch(f"the copy of {cell}")
            try:
                sources, targets = self._buffers.inputs(cell), self._buffers.outputs(cell)
                copy = self._copy(cell)
                checker = self._make_checker(cell, sources[0])
                restore = self._restore(cell, sources, targets)
            except Exception as error:  # pylint: disable=broad-except
                self._fail_if_lost(f"the copy of {cell}", error)
                for candidate in self._candidates:
                    self._record(cell, candidate.name, {"status": "absent",
                                                        "reason": f"no copy: {first_line(error)}"})
                self._say(f"{label} {cell}: no copy: {first_line(error)}")
                return
            for candidate in self._candidates:
                what = f"{candidate.name}, {cell}"
                self._watch(what)
                result = self._candidate(candidate, cell, sources, targets, checker, restore, what)
                if result["status"] == "ok":
                    result["share"] = round(copy["copy_us"] / result["us"], 4)
                    result["GBps"] = round(cell.bytes / result["us"] / 1000, 1)
                    for key in ("us", "min_us"):
                        result[key] = round(result[key], 4)
                self._record(cell, candidate.name, {
                    **result, "copy_us": round(copy["copy_us"], 4), "copy_kind": copy["copy_kind"]})
            self._device.tidy()
            if self._watchdog:
                self._watchdog.end()
        self._say(f"{label} {progress(cell, copy, self.lines[-len(self._candidates):])}")

    def _candidate(self, candidate, cell, sources, targets, checker, restore, what):
        """The fields of one candidate's line."""
        found = {}
        try:
            reason = candidate.refuse(cell)
            if reason:
                return {"status": "absent", "reason": reason}
            pairs = list(zip(targets if cell.in_place else sources, targets))
            launches = [candidate.bind(cell, x, y) for x, y in pairs]
            wrong, found = checker.check(
                launches[0], targets[0], records.is_ours(candidate.name),
                (lambda: targets[0].copy_(sources[0])) if cell.in_place else None)
            found.update(candidate.facts(cell, *pairs[0]))
            if wrong:
                return {"status": "failed", "reason": wrong, **found}
            confirm = checker.confirmation(targets[0], records.is_ours(candidate.name))
            if restore is None:
                return {"status": "ok", **found,
                        **self._device.time(cell.mode, launches, confirm)}
            copies, alone = restore
            timed = self._device.time(cell.mode, [_both(c, f) for c, f in zip(copies, launches)],
                                      confirm)
            return {"status": "ok", **found, **timed, **timing.less_restore(timed, alone),
                    "restore_us": round(alone["us"], 4)}
        except Absent as absent:
            # A declined problem is no failure; but AUTO declines none.
            status = "failed" if candidate.name == "ours:auto" else "absent"
            return {"status": status, "reason": str(absent), **found}
        except Exception as error:  # pylint: disable=broad-except
            self._fail_if_lost(what, error)
            # Of ours every refusal that Absent does not stand for is a defect; a peer may refuse.
            status = "failed" if records.is_ours(candidate.name) else "absent"
            return {"status": status, "reason": first_line(error), **found}

    def _restore(self, cell, sources, targets):
        """In place: the copies that bring the input back, and their own time."""
        if not cell.in_place:
            return None
        copies = [lambda x=x, y=y: y.copy_(x) for x, y in zip(sources, targets)]
        return copies, self._device.time(cell.mode, copies)

    def _copy(self, cell):
        """The copy of this cell. In the cliff sweep cells differ by less than one row: the copy is
        measured now and then, and scaled by bytes in between."""
        pairs = self._buffers.copy_pairs(cell)
        if cell.grid != "cliffs":
            return self._copies.measure(cell, pairs)
        since, us_a_byte, kind = self._copy_memory.get(cell.dtype, (COPY_EVERY, 0.0, ""))
        if since >= COPY_EVERY:
            measured = self._copies.measure(cell, pairs)
            since, kind = 0, measured["copy_kind"]
            us_a_byte = measured["copy_us"] / cell.bytes
        self._copy_memory[cell.dtype] = (since + 1, us_a_byte, kind)
        return {"copy_us": us_a_byte * cell.bytes, "copy_kind": kind}

    def _record(self, cell, name, fields):
        line = {**records.cell_fields(cell), "candidate": name, **fields}
        self.lines.append(line)
        self._write(line)

    def _watch(self, what):
        if self._watchdog:
            self._watchdog.begin(what)

    def _fail_if_lost(self, what, error):
        if not self._device.alive():
            raise CardLost(f"{what} took the CUDA context down: {first_line(error)}") from error


def _both(first, second):
    def launch():
        first()
        return second()
    return launch


def progress(cell, copy, lines):
    """One line about a cell: the copy, ours, the best peer, and what failed."""
    words = [f"{cell}: copy {copy['copy_us']:.2f} us"]
    peers = [r for r in lines if r["status"] == "ok" and not records.is_ours(r["candidate"])]
    for r in lines:
        if records.is_ours(r["candidate"]) and r["status"] == "ok":
            words.append(f"{r['candidate']} {r['us']:.2f} us {r['share']:.3f}")
        elif r["status"] == "failed":
            words.append(f"{r['candidate']} FAILED ({r['reason']})")
    if peers:
        best = min(peers, key=lambda r: r["us"])
        words.append(f"best peer {best['candidate']} {best['us']:.2f} us {best['share']:.3f}")
    return "; ".join(words)
