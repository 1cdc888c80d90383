"""The command itself: its options, and what needs no GPU."""
import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

import compare as package
from compare import grids, peers

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "bench" / "compare.py"


@pytest.fixture(scope="module")
def command():
    """bench/compare.py as a module; its folder of the same name is the package."""
    assert pathlib.Path(package.__file__).parent == ROOT / "bench" / "compare"
    spec = importlib.util.spec_from_file_location("compare_command", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(*words):
    done = subprocess.run([sys.executable, PROGRAM, *map(str, words)], capture_output=True,
                          text=True, check=False, timeout=120)
    return done.returncode, done.stdout, done.stderr


def test_without_options_the_quick_grid_is_measured_within_a_minute(command):
    arguments = command.parse_arguments([])
    assert arguments.grid == ["quick"] and arguments.limit == 60
    assert command.chosen_cells(arguments) == grids.cells("quick")
    assert arguments.peers == list(peers.NAMES)


def test_options_change_every_cell(command):
    cells = command.chosen_cells(command.parse_arguments(
        "--grid cold --grid log --dtype bf16 --n 1000 --offset 1 --in-place".split()))
    assert [(c.grid, c.N, c.x_dtype, c.offset, c.in_place) for c in cells] == \
        [("cold", 1000, "bf16", 1, True), ("log", 1000, "bf16", 1, True)]


def test_wrong_options_are_refused():
    for words in (("--peers", "nobody"), ("--grid", "all"), ("--n", "0"), ("--offset", "-1"),
                  ("--dtype", "f8")):
        code, out, err = call(*words)
        assert code == 2 and out == "" and "error:" in err


def test_without_a_gpu_it_says_so_and_measures_nothing():
    if importlib.util.find_spec("torch") and pytest.importorskip("torch").cuda.is_available():
        pytest.skip("there is a GPU here")
    code, out, err = call("--grid", "quick")
    assert code == 2 and out == ""
    assert err.startswith("compare: no GPU to measure on: ")


def test_a_library_that_is_not_there_is_named():
    code, _, err = call("--library", "/nonexistent/libsoftmax.so")
    assert code == 2 and "/nonexistent/libsoftmax.so" in err


def test_tables_are_printed_from_results(record, tmp_path):
    path = tmp_path / "compare.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in (
        record("ours:auto", 64, 101.0), record("pytorch", 64, 150.0))))
    code, out, err = call("--table", path)
    assert code == 0, err
    assert "| 64 |" in out and "pytorch" in out


def test_tables_of_dram_counts_are_printed_too(tmp_path):
    path = tmp_path / "dram.jsonl"
    path.write_text(json.dumps({
        "dtype": "f32", "M": 2, "N": 50, "useful_bytes": 800, "algo": "warp", "kernels": 1,
        "dram_read_bytes": 400.0, "dram_write_bytes": 400.0, "dram_per_useful_byte": 1.0,
        "card": "c", "driver": "d", "source_id": "s", "date": "2000-01-01T00:00:00Z"}) + "\n")
    code, out, err = call("--table", path)
    assert code == 0, err
    assert "| f32 | 2 | 50 | warp | 0.500 | 0.500 | 1.000 |" in out


def test_results_that_are_missing_or_empty_are_refused(tmp_path):
    code, _, err = call("--table", tmp_path / "none.jsonl")
    assert code == 2 and "none.jsonl" in err
    (tmp_path / "empty.jsonl").write_text("")
    code, _, err = call("--table", tmp_path / "empty.jsonl")
    assert code == 2 and "holds no result" in err


def test_plots_are_written_beside_the_results(record, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = tmp_path / "compare.jsonl"
    path.write_text("".join(json.dumps(record("ours:auto", n, 101.0)) + "\n" for n in (64, 128)))
    code, out, err = call("--plot", path)
    assert code == 0, err
    assert (tmp_path / "softmax_cold_f32.svg").is_file() and "softmax_cold_f32.svg" in out
