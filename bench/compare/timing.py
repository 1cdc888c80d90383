# How a candidate is timed: how many calls make a graph, how often it is replayed, the median.
import dataclasses
import math
import statistics

COLD_GRAPH_US = 1000.0  # long enough that a graph's own start, some microseconds, is lost in it
HOT_GRAPH_US = 200.0
HOT_CALLS = 50
LONG_HOT_GRAPH_US = 3000.0  # a hot graph that 50 calls would make longer than this has fewer
CELL_US = 30000.0  # what the timed replays of one candidate should take
MIN_REPLAYS, MAX_REPLAYS = 7, 15
SINGLE_CALL_US = 30000.0  # a call this long is timed by itself: a graph would add nothing
SINGLE_CALLS = 2
MAX_CALLS = 2000


@dataclasses.dataclass(frozen=True)
class Plan:
    calls: int  # in one graph
    replays: int  # 0: no graph, SINGLE_CALLS calls are timed one by one


def pairs_needed(mode, bytes_of_call, l2_bytes):
    """Pairs of buffers to go round, so that three L2s of other bytes pass before a byte is used
    again; a hot cell uses one pair over and over."""
    if mode == "hot":
        return 1
    return max(1, math.ceil(3 * l2_bytes / max(1, bytes_of_call)))


def plan(mode, estimate_us, pairs):
    if estimate_us >= SINGLE_CALL_US:
        return Plan(1, 0)
    estimate_us = max(estimate_us, 0.5)
    if mode == "hot":
        calls = max(HOT_CALLS, math.ceil(HOT_GRAPH_US / estimate_us))
        if calls * estimate_us > LONG_HOT_GRAPH_US:
            calls = max(2, math.ceil(LONG_HOT_GRAPH_US / estimate_us))
    else:
        calls = max(2, math.ceil(COLD_GRAPH_US / estimate_us))
    calls = min(calls, MAX_CALLS)
    # Whole rounds: the last call of a graph and the first of its next replay are neighbours too.
    calls = math.ceil(calls / pairs) * pairs
    replays = int(CELL_US / (calls * estimate_us))
    return Plan(calls, min(MAX_REPLAYS, max(MIN_REPLAYS, replays)))


def summary(times_us, calls):
    """Median and minimum of one call, from the times of replays of `calls` calls."""
    if not times_us:
        raise ValueError("no replay was timed")
    return {"us": statistics.median(times_us) / calls, "min_us": min(times_us) / calls}


def less_restore(timed, restore):
    """In place a graph restores the input before each call: that part's own time is taken off."""
    rest = {key: timed[key] - restore["us"] for key in ("us", "min_us")}
    if rest["us"] <= 0:
        raise ValueError("the restoring copies took longer than the calls with them")
    return rest
