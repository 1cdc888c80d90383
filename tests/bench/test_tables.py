"""The tables: verdicts, absences, failures and steps, from results that are made up."""
from compare import tables


def test_a_cell_that_meets_its_target_says_so(record):
    text = tables.report([record("ours:auto", 1024, 101.0, algo="warp"),
                          record("pytorch", 1024, 120.0)])
    assert "1 of 1 cells meet their target" in text
    line = next(line for line in text.splitlines() if line.lstrip().startswith("1024"))
    assert line.split() == ["1024", "0.08", "0.990", "pytorch", "0.833", "1.50", "warp", "met"]


def test_a_miss_is_named(record):
    text = tables.report([record("ours:auto", 1024, 125.0), record("triton", 1024, 100.0)])
    assert "0 of 1 cells meet their target" in text
    assert "0.800 < 0.97, peer 1.25x faster" in text


def test_a_failed_candidate_is_named_and_its_time_is_not_shown(record):
    lines = [record("ours:auto", 1024, 0, status="failed", reason="9 ulp, more than 4.0"),
             record("pytorch", 1024, 120.0)]
    text = tables.report(lines)
    assert "FAILED: 9 ulp, more than 4.0" in text
    assert "FAILED: ours:auto 1000x1024 (9 ulp, more than 4.0)" in text
    assert "0 of 1 cells meet their target, 1 were not measured" in text


def test_every_absent_peer_is_named_with_its_reason(record):
    lines = [record("ours:auto", n, 101.0) for n in (64, 128)]
    lines += [record("quack", n, 0, status="absent", reason="not installed") for n in (64, 128)]
    lines += [record("cudnn", 64, 0, status="absent", reason="one type")]
    text = tables.report(lines)
    assert "quack absent everywhere: not installed" in text
    assert "cudnn absent in 1 of 2 cells: one type" in text


def test_hot_cells_show_microseconds(record):
    text = tables.report([record("ours:auto", 1024, 2.5, 1.25, m=16, mode="hot"),
                          record("triton", 1024, 2.6, 1.25, m=16, mode="hot")])
    line = next(line for line in text.splitlines() if line.lstrip().startswith("16"))
    assert line.split()[:6] == ["16", "1024", "1.25", "2.50", "triton", "2.60"]
    assert "2.50 > 2.44 us" in text


def test_explicit_algorithms_have_columns_of_their_own(record):
    text = tables.report([record("ours:auto", 1024, 101.0), record("ours:tile", 1024, 200.0)])
    assert "tile" in text.splitlines()[1] and "0.500" in text


def test_the_price_of_batch_invariance_is_the_worst_cells(record):
    text = tables.report([record("ours:auto", 64, 101.0), record("ours:auto:adaptive", 64, 101.0),
                          record("ours:auto", 128, 104.0),
                          record("ours:auto:adaptive", 128, 100.0)])
    assert "batch invariance costs at most 4.0% (1000x128)" in text


def test_a_step_is_judged_by_the_cost_of_an_element(record):
    lines = [record("ours:auto", n, us, m=1000, grid="cliffs")
             for n, us in ((100, 100.0), (101, 101.0), (102, 122.4), (200, 900.0))]
    steps, count = tables.worst_steps(lines, "f32")
    assert count == 4
    assert [n for _, n in steps] == [101, 100]
    assert abs(steps[0][0] - 1.2) < 1e-9 and abs(steps[1][0] - 1.0) < 1e-9
    assert "1 cost more than 10%; the worst: 101 to 102 +20.0%" in tables.cliffs(lines)[0]


def test_the_docs_page_is_markdown_with_a_caption(record):
    text = tables.page([record("ours:auto", 1024, 101.0), record("triton", 1024, 150.0)])
    assert text.startswith("NVIDIA Stand-In, driver 1.2, 2000-01-02, source `0123456789abcdef`")
    assert "### cold: f32, cold" in text
    assert "| 1024 | 0.08 | 0.990 | triton | 0.667 |" in text


def general_line(candidate, share, need=0.9, **fields):
    return {"work": "masked 8x16", "dtype": "f32", "candidate": candidate, "need": need,
            "copy_us": 90.0, "status": "ok", "share": share, "us": 90.0 / share, "max_ulp": 1.5,
            **fields}


def test_a_work_of_the_general_call_is_judged_by_its_share_and_its_peers():
    def verdict(*lines):
        return tables.general_rows(lines)[0][-1]

    assert verdict(general_line("ours", 0.95, algo="block"), general_line("pytorch", 0.2)) == "met"
    assert verdict(general_line("ours", 0.85), general_line("pytorch", 0.2)) == "0.85 < 0.90"
    assert verdict(general_line("ours", 0.95), general_line("compile", 0.97)) == "compile faster"
    assert "FAILED: a NaN" in verdict(general_line("ours", 0.95, status="failed", reason="a NaN"))
    rows = tables.general_rows([general_line("ours", 0.5), general_line("ours", 0.95)])
    assert len(rows) == 1 and rows[0][-1] == "met"  # the newest counts
