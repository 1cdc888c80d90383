"""The targets of docs/performance.md: what counts as met, and what as missed."""
from compare import targets


def test_a_cold_row_up_to_262144_needs_097_of_copy():
    assert targets.misses("cold", 262144, 100.0, 97.0) == []
    assert targets.misses("cold", 262144, 100.0, 96.0) == ["0.960 < 0.97"]


def test_a_cold_row_above_262144_needs_090_of_copy():
    assert targets.misses("cold", 262145, 100.0, 90.0) == []
    assert targets.misses("cold", 262145, 100.0, 89.0) == ["0.890 < 0.90"]


def test_a_hot_row_may_take_1_or_2_or_3_us_more_than_a_slower_copy():
    for n, most in ((4096, 3.30), (4097, 4.30), (262144, 4.30), (262145, 5.30)):
        assert targets.misses("hot", n, most, 2.0) == []
        assert targets.misses("hot", n, most + 0.02, 2.0) == [f"{most + 0.02:.2f} > {most:.2f} us"]


def test_a_peer_within_a_percent_is_not_faster():
    assert targets.misses("cold", 64, 100.9, 100.0, 100.0) == []
    assert targets.misses("cold", 64, 102.0, 100.0, 100.0) == ["peer 1.02x faster"]


def test_a_cell_can_miss_both_its_target_and_a_peer():
    assert len(targets.misses("cold", 64, 200.0, 100.0, 110.0)) == 2
