"""DRAM bytes for each useful byte, from tables as Nsight Compute writes them."""
import json
import pathlib
import sys

import pytest

from compare import dram

HEADER = '"ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum"\n"","","byte","byte"\n'
PLAN = [{"dtype": "f32", "M": 2, "N": 50, "useful_bytes": 800, "algo": "warp"},
        {"dtype": "bf16", "M": 1, "N": 200, "useful_bytes": 800, "algo": "grid"}]
ROWS = ['"0","spin_kernel(long)","9","9"', '"1","warp_kernel<float>","400","380"',
        '"2","spin_kernel(long)","9","9"', '"3","grid_kernel<bf16>","400","0"',
        '"4","grid_finish<bf16>","1,600","400"']


def test_all_kernels_of_a_call_count_and_the_marks_do_not():
    first, second = dram.parse("==PROF== Connected\n" + HEADER + "\n".join(ROWS), PLAN)
    assert (first["kernels"], first["dram_per_useful_byte"]) == (1, 0.975)
    assert (second["kernels"], second["dram_per_useful_byte"]) == (2, 3.0)
    assert dram.rows([second]) == [["bf16", "1", "200", "grid", "2.500", "0.500", "3.000"]]


def test_a_table_that_does_not_fit_the_plan_is_refused():
    for rows, words in ((ROWS[:2], "1 cells were counted, 2 launched"),
                        (ROWS[1:], "came before the first mark"),
                        (ROWS[:3], "no kernel was counted for bf16 1x200")):
        with pytest.raises(ValueError, match=words):
            dram.parse(HEADER + "\n".join(rows), PLAN)
    with pytest.raises(ValueError, match="no table"):
        dram.parse("nothing", PLAN)


def test_a_counter_without_a_value_is_refused():
    with pytest.raises(ValueError):
        dram.parse(HEADER + "\n".join([ROWS[0], '"1","k","n/a","1"', *ROWS[2:]]), PLAN)


def fake_ncu(folder, text, code=0):
    """An ncu that writes `text` as its table and a plan as the child would."""
    program = folder / "ncu"
    plan = "\n".join(json.dumps(line) for line in PLAN)
    program.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\n"
        "a = sys.argv\n"
        f"pathlib.Path(a[a.index('--log-file') + 1]).write_text({text!r})\n"
        f"pathlib.Path(a[a.index('--dram-plan') + 1]).write_text({plan!r})\n"
        "assert a[a.index('--clock-control') + 1] == 'none'\n"
        f"sys.exit({code})\n", encoding="utf-8")
    program.chmod(0o755)


def test_counting_runs_ncu_over_the_child(tmp_path, monkeypatch):
    fake_ncu(tmp_path, HEADER + "\n".join(ROWS))
    monkeypatch.setenv("PATH", str(tmp_path))
    found = dram.count(pathlib.Path("compare.py"), tmp_path / "work", [], 60)
    assert [r["dram_per_useful_byte"] for r in found] == [0.975, 3.0]


def test_a_machine_that_lets_no_one_count_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(dram.NotCounted, match="not installed"):
        dram.count(pathlib.Path("compare.py"), tmp_path / "work", [], 60)
    fake_ncu(tmp_path, "==ERROR== ERR_NVGPUCTRPERM - no permission", code=1)
    with pytest.raises(dram.NotCounted, match="lets no one count: ERR_NVGPUCTRPERM"):
        dram.count(pathlib.Path("compare.py"), tmp_path / "work", [], 60)
    fake_ncu(tmp_path, "broken", code=9)
    with pytest.raises(dram.NotCounted, match="exit code 9"):
        dram.count(pathlib.Path("compare.py"), tmp_path / "work", [], 60)
