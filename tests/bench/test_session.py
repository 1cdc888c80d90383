"""The run over cells, with stand-ins for the card: what fails is one line and ends nothing else."""
import contextlib

from compare.candidate import Absent, Candidate
from compare.grids import Cell
from compare.session import Clock, Session

CELLS = [Cell("cold", "cold", "f32", 10, n) for n in (64, 128)]


class Buffer:
    def copy_(self, other):
        pass


class Card:
    """Every candidate takes its own `us`; copies of buffers take 40."""

    def __init__(self):
        self.up = True
        self.timed = []

    def current(self):
        return contextlib.nullcontext()

    def alive(self):
        return self.up

    def tidy(self):
        pass

    def time(self, mode, launches, confirm=None):
        us = launches[0]() or 40.0
        self.timed.append(us)
        return {"us": us, "min_us": us, "calls": 1, "replays": 7}


class Buffers:
    def inputs(self, cell):
        return [Buffer()]

    outputs = inputs

    def copy_pairs(self, cell):
        return [(Buffer(), Buffer())]


class Copies:
    def __init__(self):
        self.count = 0

    def measure(self, cell, pairs):
        self.count += 1
        return {"copy_us": cell.bytes / 100.0, "copy_kind": "memcpy"}


class Checker:
    def __init__(self, cell, x):
        pass

    def check(self, launch, y, ours, restore=None):
        return ("9 ulp, more than 4" if launch() == 666.0 else None), {"max_ulp": 1.0}

    def confirmation(self, y, ours):
        return None


class Peer(Candidate):
    in_place = True

    def __init__(self, name, us=100.0, bind_error=None, launch_error=None):
        self.name = name
        self._us, self._bind_error, self._launch_error = us, bind_error, launch_error

    def bind(self, cell, x, y):
        if self._bind_error:
            raise self._bind_error

        def launch():
            if self._launch_error:
                raise self._launch_error
            return self._us
        return launch


def run(candidates, cells=CELLS, card=None, clock=None, copies=None):
    card = card or Card()
    session = Session(card, Buffers(), copies or Copies(), Checker, candidates, lambda line: None,
                      lambda text: None, clock or Clock(None))
    left = session.run(cells)
    return session.lines, left


def test_a_peer_that_raises_is_absent_with_its_reason_and_the_rest_is_measured():
    lines, left = run([Peer("ours:auto"), Peer("triton", launch_error=ValueError("no such type\n")),
                       Peer("quack", bind_error=Absent("not built")), Peer("pytorch")])
    assert left == [] and len(lines) == 8
    by_name = {r["candidate"]: r for r in lines[:4]}
    assert by_name["triton"]["status"] == "absent"
    assert by_name["triton"]["reason"] == "ValueError: no such type"
    assert by_name["quack"]["reason"] == "not built"
    assert by_name["ours:auto"]["status"] == by_name["pytorch"]["status"] == "ok"


def test_a_wrong_output_is_failed_and_never_timed():
    card = Card()
    lines, _ = run([Peer("ours:auto", us=666.0), Peer("pytorch", us=50.0)], CELLS[:1], card)
    assert lines[0]["status"] == "failed" and lines[0]["reason"] == "9 ulp, more than 4"
    assert "us" not in lines[0] and 666.0 not in card.timed and 50.0 in card.timed


def test_ours_that_raises_has_failed_but_a_declined_algorithm_is_absent():
    lines, _ = run([Peer("ours:auto", launch_error=RuntimeError("boom")),
                    Peer("ours:tile", bind_error=Absent("tile: needs sm_90"))], CELLS[:1])
    assert [(r["status"], r["reason"]) for r in lines] == \
        [("failed", "RuntimeError: boom"), ("absent", "tile: needs sm_90")]
    lines, _ = run([Peer("ours:auto", bind_error=Absent("declined"))], CELLS[:1])
    assert lines[0]["status"] == "failed"


def test_share_and_rate_follow_from_the_times():
    lines, _ = run([Peer("ours:auto", us=64.0)], CELLS[:1])
    assert lines[0]["copy_us"] == 51.2  # 10 x 64 f32, read and written, at 100 bytes a microsecond
    assert lines[0]["share"] == 0.8
    assert lines[0]["GBps"] == 0.1


def test_a_lost_card_ends_the_run_and_says_what_was_left_out():
    card = Card()

    class Crash(Peer):
        def bind(self, cell, x, y):
            card.up = False
            raise RuntimeError("an illegal memory access was encountered")

    lines, left = run([Peer("ours:auto"), Crash("quack")], card=card)
    assert left == CELLS[1:]
    assert [r["candidate"] for r in lines] == ["ours:auto"]


def test_the_limit_leaves_out_the_cells_that_did_not_fit():
    lines, left = run([Peer("ours:auto")], clock=Clock(0.0))
    assert lines == [] and left == CELLS


def test_in_place_the_restoring_copy_is_measured_and_taken_off():
    cell = Cell("in-place", "cold", "f32", 10, 64, in_place=True)
    card = Card()
    lines, _ = run([Peer("ours:auto", us=100.0)], [cell], card)
    assert lines[0]["restore_us"] == 40.0
    assert lines[0]["us"] == 60.0


def test_a_peer_without_an_in_place_form_is_absent_there():
    peer = Peer("liger")
    peer.in_place = False
    lines, _ = run([peer], [Cell("in-place", "cold", "f32", 10, 64, in_place=True)])
    assert lines[0]["reason"] == "has no in-place form"


def test_the_cliff_sweep_measures_its_copy_now_and_then_and_scales_it_by_bytes():
    copies = Copies()
    cells = [Cell("cliffs", "cold", "f32", 10, n) for n in range(1, 41)]
    lines, _ = run([Peer("ours:auto")], cells, copies=copies)
    assert copies.count == 2
    assert all(r["copy_us"] == r["M"] * r["N"] * 8 / 100 for r in lines)
