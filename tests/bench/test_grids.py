"""What the grids hold."""
from compare import grids


def test_the_cold_grid_has_every_length_in_three_types_at_2_to_27_elements():
    cells = grids.cells("cold")
    assert len(cells) == 3 * len(grids.COLD_N) == len(set(cells))
    for cell in cells:
        assert (1 << 27) - cell.N < cell.elements <= 1 << 27
        assert not cell.in_place and cell.offset == 0


def test_the_hot_grid_crosses_every_m_with_every_n():
    cells = grids.cells("hot")
    assert {(c.M, c.N, c.x_dtype) for c in cells} == \
        {(m, n, t) for m in grids.HOT_M for n in grids.HOT_N for t in ("f32", "bf16")}


def test_the_cliff_sweep_has_every_short_row_and_both_sides_of_every_limit():
    lengths = grids.cliff_lengths((32768, 100352))
    assert set(range(1, 301)) <= set(lengths)
    assert lengths == sorted(set(lengths))
    for limit in (32768, 100352, 512, 4096):
        assert {limit - 1, limit, limit + 1} <= set(lengths)


def test_a_length_that_the_grid_lacks_is_added_with_the_grids_own_rows():
    assert [(c.x_dtype, c.M) for c in grids.cells("cold", lengths=(77,), dtypes=("bf16",))] == \
        [("bf16", (1 << 27) // 77)]
    assert [(c.M, c.N) for c in grids.cells("hot", lengths=(77,), rows=(16,), dtypes=("f32",))] == \
        [(16, 77)]


def test_changes_reach_every_cell():
    cells = grids.cells("quick", offset=1, in_place=True)
    assert all(c.offset == 1 and c.in_place for c in cells)
    assert str(cells[0]) == "cold f32 2097152x64 offset 1 in place"


def test_a_mixed_cell_counts_both_types_bytes():
    cell = grids.cells("mixed")[0]
    assert cell.dtype == "bf16->f32"
    assert cell.bytes == 6 * cell.elements
