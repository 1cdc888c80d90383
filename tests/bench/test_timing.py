"""How calls, graphs and replays are counted, and what the median says."""
import pytest

from compare import timing

L2 = 60_000_000


def test_three_l2s_pass_before_a_cold_byte_is_used_again():
    for size in (1, 1000, L2, 3 * L2 - 1, 3 * L2, 1 << 30):
        assert timing.pairs_needed("cold", size, L2) * size >= 3 * L2
    assert timing.pairs_needed("cold", 1 << 30, L2) == 1


def test_a_hot_cell_uses_one_pair():
    assert timing.pairs_needed("hot", 8, L2) == 1


def test_a_cold_graph_takes_a_millisecond_and_goes_round_in_whole_rounds():
    for us, pairs in ((1.0, 1), (33.0, 7), (260.0, 1), (5000.0, 3)):
        plan = timing.plan("cold", us, pairs)
        assert plan.calls % pairs == 0
        assert plan.calls * us >= timing.COLD_GRAPH_US
        assert timing.MIN_REPLAYS <= plan.replays <= timing.MAX_REPLAYS


def test_a_hot_graph_has_50_calls_and_200_us_where_calls_are_short():
    for us in (0.6, 1.4, 4.0, 20.0, 59.0):
        plan = timing.plan("hot", us, 1)
        assert plan.calls >= 50 and plan.calls * us >= 200


def test_long_calls_stay_bounded_in_time():
    for mode in ("hot", "cold"):
        for us in (100.0, 1000.0, 10_000.0, 29_000.0):
            plan = timing.plan(mode, us, 1)
            assert plan.calls * us * plan.replays <= 500_000
        assert timing.plan(mode, 1_000_000.0, 1) == timing.Plan(1, 0)


def test_the_median_of_replays_is_that_of_one_call():
    found = timing.summary([100.0, 400.0, 110.0], 10)
    assert found == {"us": 11.0, "min_us": 10.0}
    with pytest.raises(ValueError):
        timing.summary([], 10)


def test_in_place_the_restoring_copies_are_taken_off():
    assert timing.less_restore({"us": 30.0, "min_us": 29.0}, {"us": 10.0}) == \
        {"us": 20.0, "min_us": 19.0}
    with pytest.raises(ValueError):
        timing.less_restore({"us": 9.0, "min_us": 9.0}, {"us": 10.0})
