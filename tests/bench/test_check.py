"""Outputs are held against float64; with PyTorch on the CPU."""
import importlib.util

import pytest

from compare.grids import Cell

HAS_TORCH = importlib.util.find_spec("torch") is not None
pytestmark = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")
if HAS_TORCH:
    import torch

    from compare import check
    from compare.device import Buffers


def test_sampled_rows_hold_the_first_the_last_and_the_middle():
    for m, n in ((1, 8), (2, 8), (5, 8), (64, 8), (65, 8), (1 << 24, 8), (8, 1 << 24),
                 (3, 1 << 25)):
        rows = check.sampled_rows(m, n)
        assert rows == sorted(set(rows)) and len(rows) <= check.ROWS
        assert {0, m // 2, m - 1} <= set(rows) and rows[-1] < m


def test_one_step_of_the_output_type_is_one_ulp():
    for dtype in ("f32", "f16", "bf16"):
        right = torch.tensor([0.75, 0.001, 2.0**-14, 1.0 - 2.0**-9], dtype=torch.float64)
        right = right.to(check.TORCH_DTYPES[dtype])
        bits = right.view(torch.int32 if dtype == "f32" else torch.int16) + 1
        wrong = bits.view(check.TORCH_DTYPES[dtype])
        assert check.errors(right, right.double(), dtype)[0] == 0
        assert check.errors(wrong, right.double(), dtype)[0] == 1


def test_a_nan_is_infinitely_wrong():
    got = torch.tensor([0.5, float("nan")])
    assert check.errors(got, torch.tensor([0.5, 0.5]).double(), "f32")[0] == float("inf")


def checked(spoil, op="softmax"):
    """What the checker says of a softmax of 100 x 33 whose output `spoil` then changes."""
    cell = Cell("t", "cold", "f32", 100, 33, op=op)
    x = torch.randn(100, 33, generator=torch.Generator().manual_seed(1))
    y = torch.empty_like(x)

    def launch():
        y.copy_(check.reference(x, op).float())
        spoil(y)

    checker = check.Checker(cell, x)
    return checker, launch, y, checker.check(launch, y, ours=True)


def test_a_right_output_passes_and_its_error_is_recorded():
    for op in ("softmax", "log"):
        wrong, found = checked(lambda y: None, op)[-1]
        assert wrong is None and 0 < found["max_ulp"] <= 0.5


def test_a_wrong_last_row_and_a_nan_in_an_unsampled_row_are_found():
    assert "ulp" in checked(lambda y: y[99].mul_(1.001))[-1][0]
    unsampled = next(i for i in range(100) if i not in check.sampled_rows(100, 33))
    assert checked(lambda y: y[unsampled, 7].fill_(torch.nan))[-1][0] == "a NaN in the output"


def test_an_output_that_was_never_written_is_found():
    cell = Cell("t", "cold", "f32", 4, 8)
    x, y = torch.randn(4, 8), torch.empty(4, 8)
    y.copy_(torch.softmax(x, -1))  # what an earlier candidate left there
    wrong, _ = check.Checker(cell, x).check(lambda: None, y, ours=False)
    assert wrong == "a NaN in the output"


def test_a_replay_that_does_nothing_is_not_taken_for_one_that_computes():
    checker, launch, y, _ = checked(lambda y: None)
    spoil, right = checker.confirmation(y, ours=True)
    assert right(None)
    spoil(None)
    assert not right(None)
    launch()
    assert right(None)


def test_views_of_the_pools_do_not_overlap_and_have_the_cells_offset():
    cells = [Cell("t", "cold", "bf16", 7, 33, offset=1), Cell("t", "cold", "f32", 5, 3),
             Cell("t", "cold", "bf16", 9, 5, "f32")]
    buffers = Buffers(cells, 1000, "cpu")
    for cell in cells:
        pairs = buffers.pairs(cell)
        assert pairs * cell.bytes >= 3000 or pairs == 64
        for views in (buffers.inputs(cell), buffers.outputs(cell)):
            assert len(views) == pairs
            size = views[0].element_size()
            ends = [(v.data_ptr(), v.data_ptr() + v.numel() * size) for v in views]
            assert all(a[1] <= b[0] for a, b in zip(ends, ends[1:]))
            base = views[0].untyped_storage().data_ptr()
            assert all((v.data_ptr() - base) % 256 == cell.offset * size for v in views)
        for x, y in buffers.copy_pairs(cell):
            assert x.numel() + y.numel() == cell.bytes // 2 * 2
            for part in (x, y):  # the streaming copy moves 16 bytes at a time
                assert (part.data_ptr() - part.untyped_storage().data_ptr()) % 16 == 0
