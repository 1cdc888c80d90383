"""The program on a GPU, in builds with CUDA; skipped where there is no GPU."""

import json
import os
import subprocess

import numpy as np
import pytest

import reference
from program import SOURCE
from reference import BOUND_ULP, logits
from test_examples import library_folder, prefix, run  # noqa: F401  (prefix is a fixture)

NUMPY = {"f32": np.float32, "f16": np.float16, "f64": np.float64}


@pytest.fixture
def gpu(softmax):
    if "  cuda:0 " not in softmax.ok("info").split("Algorithms")[0]:
        pytest.skip("no CUDA device")
    return softmax


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("block_bytes", [1, 10 ** 8])
def test_cuda_computes_a_file_in_blocks(gpu, dtype, block_bytes):
    x = logits((37, 1000)).astype(NUMPY[dtype])
    np.save(gpu.folder / "x.npy", x)
    for y_dtype in [dtype, "f32"] if dtype == "f16" else [dtype]:
        for flags, function in ([], reference.softmax), (["--log"], reference.logsoftmax):
            gpu.ok("run", "x.npy", "-o", "y.npy", "--device", "cuda:0", "--dtype", y_dtype,
                   "--block-bytes", block_bytes, *flags)
            y = np.load(gpu.folder / "y.npy")
            assert reference.worst_ulp(y, function(x), y_dtype) <= BOUND_ULP[y_dtype]


def test_cuda_and_the_cpu_read_the_same_text(gpu, data):
    arguments = ["run", data / "ocr_logits.npy", "--labels", data / "ocr_labels.txt", "--ctc", 0,
                 "--ctc-steps", 28]
    on_gpu = gpu.ok(*arguments, "--device", "cuda:0")
    assert "  Total: 42.50  " in on_gpu and "  Hello, world 42  " in on_gpu
    assert on_gpu == gpu.ok(*arguments, "--device", "cpu")


def test_cuda_bench_measures_and_checks_every_algorithm(gpu):
    for dtype in BOUND_ULP:
        report = json.loads(gpu.ok("bench", "--device", "cuda:0", "--shapes", "3x1000,4096x1025",
                                   "--dtype", dtype, "--seconds", "0.01", "--json", "-"))
        assert {r["algo"] for r in report["results"]} >= {
            "auto", "naive", "shared", "shuffle", "vector", "online", "warp_online", "reference"}
        for r in report["results"]:
            assert r["copy_method"] == "cudaMemcpyAsync, device to device"
            assert 0 < r["share_of_copy"] < 5 and 0 < r["max_ulp"] <= BOUND_ULP[dtype]


def test_cuda_choice_names_the_launch(gpu):
    out = gpu.ok("select", 4096, 1000, "--device", "cuda:0")
    for word in ("algorithm", "threads", "rows per block"):
        assert f"  {word} " in out


def test_cuda_example_compiles_and_links(prefix, tmp_path):  # noqa: F811
    libraries = library_folder(prefix)
    run("sh", "-ec", f"g++ -Wall -Wextra -Werror {SOURCE}/examples/cuda/quickstart.cc "
        "$(pkg-config --cflags --libs softmax) "
        f"-I{os.environ['SOFTMAX_CUDA_INCLUDE']} -L{os.environ['SOFTMAX_CUDA_LIBRARIES']} -lcudart",
        cwd=tmp_path, env={"PKG_CONFIG_PATH": f"{libraries}/pkgconfig"})


def test_cuda_example_runs(gpu, prefix, tmp_path):  # noqa: F811
    test_cuda_example_compiles_and_links(prefix, tmp_path)
    path = f"{library_folder(prefix)}:{os.environ['SOFTMAX_CUDA_LIBRARIES']}"
    done = subprocess.run([tmp_path / "a.out"], env={**os.environ, "LD_LIBRARY_PATH": path},
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "every class has probability 3.125e-05 = 1/32000\n")
