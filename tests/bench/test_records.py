"""The JSON lines: what is written is read again, and the newest line of a key counts."""
import json

import pytest

from compare import records


def test_lines_are_appended_whole_and_read_in_order(tmp_path):
    path = tmp_path / "deep" / "compare.jsonl"
    for us in (1.0, 2.0):
        writer = records.Writer(path, {"card": "c"})
        writer.write({"candidate": "triton", "us": us, "reason": None})
        writer.close()
    assert records.read(path) == [{"candidate": "triton", "us": us, "card": "c"}
                                  for us in (1.0, 2.0)]


def test_a_fresh_file_forgets_the_old_lines(tmp_path):
    path = tmp_path / "compare.jsonl"
    path.write_text('{"candidate":"old"}\n')
    writer = records.Writer(path, {}, fresh=True)
    writer.write({"candidate": "new"})
    writer.close()
    assert [r["candidate"] for r in records.read(path)] == ["new"]


def test_a_last_line_that_was_cut_off_is_left_out_and_any_other_is_an_error(tmp_path):
    path = tmp_path / "compare.jsonl"
    path.write_text('{"N":1}\n{"N":2')
    assert records.read(path) == [{"N": 1}]
    path.write_text('{"N":1\n{"N":2}\n')
    with pytest.raises(ValueError, match=":1 is not a line of JSON"):
        records.read(path)


def test_the_later_line_of_a_key_counts(record):
    lines = [record("triton", 64, 100.0), record("triton", 128, 100.0), record("triton", 64, 50.0)]
    assert [(r["N"], r["us"]) for r in records.newest(lines)] == [(64, 50.0), (128, 100.0)]


def test_the_best_peer_is_never_ours_and_never_one_that_failed(record):
    cell = next(iter(records.by_cell([
        record("ours:auto", 64, 10.0), record("ours:warp", 64, 5.0), record("pytorch", 64, 30.0),
        record("triton", 64, 20.0), record("quack", 64, 0, status="failed", reason="NaN"),
    ]).values()))
    assert cell.best_peer()["candidate"] == "triton"
    assert cell.ours["us"] == 10.0
    assert [r["candidate"] for r in cell.failures()] == ["quack"]


def test_a_cards_name_becomes_a_folders():
    assert records.folder_name("NVIDIA H200") == "NVIDIA_H200"
    assert json.dumps(records.folder_name("A/B (C)")) == '"A_B_C_"'
