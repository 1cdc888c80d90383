# The main test program: some of it in parts side by side, and the rest alone.
import concurrent.futures
import os
import re
import time

import checks
import outcome
import process

PROGRAM = "softmax_gpu_tests"

# The tag of the cases that run side by side: most of their time is the host's, for references in
# extended precision. The others are the GPU's, which processes have in turns of milliseconds: beside
# others a small call takes a hundred times as long as alone. And some of them time the host, or want
# most of the card's memory.
SIDE_BY_SIDE = "[general]"

MOST_AT_ONCE = 8  # each has a context of its own on the GPU
PARTS_A_WORKER = 2  # so that who had the short cases helps with the rest

# How Catch2 lists names only, a line each: version 2, which exits with their number, and version 3.
LISTINGS = (("--list-test-names-only",), ("--list-tests", "--verbosity", "quiet"))
NOT_KNOWN = "Unrecognised token"  # what it says of an option of the other version


def default_at_once():
    """Half of the cores: each part has two threads."""
    return max(1, min(MOST_AT_ONCE, (os.cpu_count() or 1) // 2))


def input_file(cases):
    """What Catch2's --input-file takes. In a name, a bare comma or bracket has another meaning."""
    return "".join(re.sub(r'([\\,\[\]"])', r"\\\1", case) + "\n" for case in cases)


class TestParts:
    """The step "tests". `side_by_side` runs beside other steps, `alone` after all of them."""

    name = "tests"

    def __init__(self, context, limit, at_once):
        self._context = context
        self._limit = limit
        self._at_once = at_once
        self._program = context.bin / PROGRAM
        self._alone = []
        self._outcomes = []
        self._seconds = 0.0

    def side_by_side(self):
        begin = time.monotonic()
        if self._program.is_file():
            cases = self._divide()
            count = min(len(cases), PARTS_A_WORKER * self._at_once)
            # In turn: neighbours are of one file and take about as long.
            parts = [cases[i::count] for i in range(count)]
            clock = process.Clock(self._limit)
            with concurrent.futures.ThreadPoolExecutor(max_workers=self._at_once) as pool:
                self._outcomes += pool.map(
                    lambda i: self._run(f"tests-{i + 1}", parts[i], clock.allow(self._limit),
                                        checks.beside_others(2)), range(count))
        self._seconds += time.monotonic() - begin

    def alone(self):
        """Runs what is left, and returns the outcome of the whole step."""
        if not self._program.is_file():
            return outcome.Outcome(self.name, outcome.SKIPPED,
                                   f"{PROGRAM} is not in {self._context.bin}")
        begin = time.monotonic()
        if self._alone:
            left = self._limit - self._seconds
            self._outcomes.append(self._run("tests-alone", self._alone, left))
        self._seconds += time.monotonic() - begin
        return outcome.add_up(self.name, self._outcomes, self._seconds)

    def _divide(self):
        """The cases that run side by side; the others are kept for `alone`."""
        for listing in LISTINGS:
            cases = self._list(listing)
            if cases:
                break
        else:
            self._fail("the program lists no test cases")
            return []
        beside = self._list(listing, SIDE_BY_SIDE)
        if not beside:  # a tag that was renamed would leave all of them alone
            self._fail(f"no test case has the tag {SIDE_BY_SIDE}")
        self._alone = [case for case in cases if case not in beside]
        return beside

    def _list(self, listing, *tags):
        result = process.run([self._program, *tags, *listing], self._context.clock.allow(60),
                             self._context.log, cwd=self._context.root)
        names = result.output.splitlines()
        is_listing = result.code in (0, min(len(names), 255)) and NOT_KNOWN not in result.output
        return names if is_listing else []

    def _fail(self, note):
        self._outcomes.append(outcome.Outcome(self.name, outcome.FAILED, note))

    def _run(self, part, cases, limit, env=None):
        context = self._context
        names = context.work / f"{part}.txt"
        summary = context.work / f"{part}.json"
        names.write_text(input_file(cases), encoding="utf-8")
        summary.unlink(missing_ok=True)
        result = process.run([self._program, "--input-file", names, "--summary", summary,
                              "--durations", "yes"],
                             context.clock.allow(limit), context.log, env=env, cwd=context.root)
        judged = outcome.judge(part, checks.read_summary(summary), result, context.source_id)
        ended = judged.passed + judged.failed + judged.skipped
        if judged.status != outcome.FAILED and ended != len(cases):
            judged.status = outcome.FAILED
            judged.note = f"{ended} of {len(cases)} test cases ended"
        return judged
