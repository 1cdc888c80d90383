"""softmax info, select and bench, and the help."""

import json
import re

import pytest

from program import SOURCE

CPU_ALGORITHMS = ["auto", "naive", "vector", "online", "reference"]
CUDA_ALONE = ["warp", "block", "tile", "cluster", "grid"]


def header_version():
    text = open(f"{SOURCE}/include/softmax.h", encoding="utf-8").read()
    return ".".join(re.search(rf"SOFTMAX_VERSION_{part} (\d+)", text)[1]
                    for part in ("MAJOR", "MINOR", "PATCH"))


def test_the_version_is_that_of_the_header(softmax):
    assert softmax.ok("--version") == f"softmax {header_version()}\n"


@pytest.mark.parametrize("command", [[], ["run"], ["info"], ["select"], ["bench"]], ids=str)
def test_help_goes_to_stdout_and_succeeds(softmax, command):
    out = softmax.ok(*command, "--help")
    assert "Usage: softmax" in out
    for word in command:
        assert f"softmax {word}" in out


def test_info_tells_the_build_the_devices_and_the_algorithms(softmax):
    out = softmax.ok("info")
    assert out.startswith(f"libsoftmax {header_version()}, source ")
    assert re.search(r"^  cpu +CPU", out, re.M)
    numbers = dict(re.findall(r"^ *(\d+)  (\w+) +(?:yes|no)", out, re.M))
    assert numbers == {"0": "auto", "1": "naive", "2": "shared", "3": "shuffle", "4": "vector",
                       "5": "online", "6": "warp_online", "10": "warp", "11": "block",
                       "12": "tile", "13": "cluster", "14": "grid", "15": "column",
                       "1000": "reference"}
    cpu = dict(re.findall(r"^ *\d+  (\w+) +(yes|no)", out, re.M))
    assert sorted(name for name, answer in cpu.items() if answer == "yes") == sorted(CPU_ALGORITHMS)
    for name in CUDA_ALONE:
        assert re.search(rf"  {name} +no +no CPU kernel", out, re.M)
    assert re.search(r"  column +no +\S.+$", out, re.M)


def test_select_tells_what_would_run_and_why(softmax):
    out = softmax.ok("select", 4096, 1000, "--dtype", "bf16", "--device", "cpu", "--log")
    assert out.startswith("log-softmax of (4096, 1000), bf16 to bf16, on CPU")
    assert re.search(r"^  algorithm +(vector|online)$", out, re.M)
    assert re.search(r"^  reason +\S.+ \S+", out, re.M)
    assert re.search(r"^  kernel +cpu_logsoftmax_(vector|online)_bf16$", out, re.M)
    assert re.search(r"^  threads +[1-9]\d*$", out, re.M)
    assert "declined" not in out


def test_select_verbose_shows_every_candidate_that_declined(softmax):
    out = softmax.ok("select", 4096, 1000, "--device", "cpu", "-v")
    declined = dict(re.findall(r"^  (\w+) declined: (.+)$", out, re.M))
    chosen = re.search(r"^  algorithm +(\w+)$", out, re.M)[1]
    assert set(CUDA_ALONE) <= set(declined) and chosen not in declined
    assert all(reason for reason in declined.values())


def test_select_of_a_named_algorithm_says_so_or_refuses(softmax):
    assert "asked for by name" in softmax.ok("select", 1, 5, "--algo", "naive", "--device", "cpu")
    assert "no CPU kernel" in softmax.refuses("select", 1, 5, "--algo", "shared", "--device", "cpu")
    refused = softmax.refuses("select", 1, 5, "--algo", "column")
    assert "no CPU kernel" in refused or "takes rows that lie side by side" in refused


def test_select_takes_a_matrix_without_rows(softmax):
    assert "of (0, 5)" in softmax.ok("select", 0, 5, "--device", "cpu")


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64"])
def test_bench_measures_and_checks_every_algorithm(softmax, dtype):
    out = softmax.ok("bench", "--device", "cpu", "--shapes", "3x1000,500x37", "--dtype", dtype,
                     "--seconds", "0.01", "--json", "-")
    report = json.loads(out)
    assert report["op"] == "softmax" and report["dtype"] == dtype
    assert report["device"].startswith("CPU") and report["library"].startswith("libsoftmax ")
    results = report["results"]
    assert [(r["M"], r["N"], r["algo"]) for r in results] == [
        (m, n, algo) for m, n in ((3, 1000), (500, 37)) for algo in CPU_ALGORITHMS]
    element_bytes = {"f32": 4, "f16": 2, "bf16": 2, "f64": 8}[dtype]
    for r in results:
        seconds = r["seconds_median"]
        assert 0 < seconds < 1
        assert r["gb_per_s"] == pytest.approx(2e-9 * r["M"] * r["N"] * element_bytes / seconds,
                                              rel=1e-4)
        assert r["share_of_copy"] == pytest.approx(r["gb_per_s"] / r["copy_gb_per_s"], rel=1e-2,
                                                   abs=1e-4)
        assert "memcpy" in r["copy_method"]
        assert 0 < r["max_ulp"] <= (0.51 if element_bytes == 2 else 4)
        assert r["rows_checked"] == r["M"]


def test_bench_writes_its_json_beside_the_table(softmax):
    out = softmax.ok("bench", "--device", "cpu", "--shapes", "10x100", "--algo", "naive,vector",
                     "--log", "--seconds", "0.01", "--json", "b.json")
    assert out.startswith("log-softmax, f32, on CPU")
    assert [line.split()[2] for line in out.splitlines()[2:]] == ["naive", "vector"]
    report = json.loads((softmax.folder / "b.json").read_text())
    assert [r["algo"] for r in report["results"]] == ["naive", "vector"]
    assert report["op"] == "logsoftmax"
