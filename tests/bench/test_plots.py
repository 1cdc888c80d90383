"""The plots: one small SVG a grid and type, the same bytes for the same results."""
import importlib.util
import pathlib

import pytest

from compare import grids, peers, plots

draws = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None,
                           reason="matplotlib is not installed")


def results(record):
    names = ("ours:auto",) + peers.NAMES
    lines = [record(name, n, 100.0 + 5 * i, dtype=dtype, kernel="k")
             for n in grids.COLD_N for dtype in ("f32", "bf16") for i, name in enumerate(names)]
    lines += [record(name, n, 2.0 + i + n / 1e5, 1.2, m=m, mode="hot")
              for n in grids.HOT_N for m in grids.HOT_M for i, name in enumerate(names)]
    lines += [record("ours:auto", n, 100.0, grid="cliffs") for n in grids.cliff_lengths()]
    lines += [record("quack", 64, 0, status="failed", reason="x", dtype="f16")]
    return lines


@draws
def test_each_grid_and_type_that_was_measured_gets_a_small_plot(record, tmp_path):
    written = plots.draw(results(record), tmp_path)
    assert [path.name for path in written] == [
        "softmax_cold_f32.svg", "softmax_cold_bf16.svg", "softmax_hot_f32.svg",
        "softmax_cliffs_f32.svg"]
    for path in written:
        assert 2000 < path.stat().st_size < 200_000
        text = path.read_text()
        assert "libsoftmax" in text and "copy" in text


@draws
def test_the_same_results_give_the_same_bytes(record, tmp_path):
    lines = results(record)
    for folder in ("a", "b"):
        plots.draw(lines, tmp_path / folder)
    for path in pathlib.Path(tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_every_peer_has_a_label_and_a_colour():
    assert set(peers.NAMES) == set(plots.PEER_COLOURS)
    assert set(peers.NAMES) | {"ours:auto"} == set(plots.LABELS)
