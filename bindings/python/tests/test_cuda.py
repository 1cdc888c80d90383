"""The package on a CUDA device, with arrays of torch, cupy, numba and jax.

    LIBSOFTMAX_PATH=.../libsoftmax.so python3 -m pytest test_cuda.py
    LIBSOFTMAX_PATH=.../libsoftmax.so python3 test_cuda.py      where there is no pytest

The second prints "N passed, N failed, N skipped", and exits with 77 where there is no CUDA device.
"""
import gc
import importlib
import re
import sys
import threading
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

import libsoftmax  # noqa: E402

try:
    from pytest import skip

    Skipped = skip.Exception
except ImportError:
    class Skipped(Exception):
        pass

    def skip(reason):
        raise Skipped(reason)


def module(name):
    """An installed package that can use a CUDA device; otherwise the test is skipped."""
    if libsoftmax.device_count() == 0:
        skip("no CUDA device")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        skip(f"{name} cannot be imported: {error}")


def raises(kind, words, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except kind as error:
        assert re.search(words, str(error)), f"{words!r} is not in {error!r}"
        return error
    raise AssertionError(f"{kind} was not raised")


def logits(torch, rows, columns, dtype="float32", spread=4):
    generator = torch.Generator(device="cuda").manual_seed(rows * 1000003 + columns)
    x = torch.randn(rows, columns, device="cuda", generator=generator) * spread
    return x.to(getattr(torch, dtype))


def assert_close(torch, y, x, log):
    """y is (log-)softmax of x within a few units of y's type.

    The reference is torch in float64, whose log-softmax near 0 has an absolute error of its own: there
    float64 results are compared absolutely.
    """
    expected = (torch.log_softmax if log else torch.softmax)(x.double(), -1)
    spacing = {torch.float32: 2**-23, torch.float64: 2**-52, torch.float16: 2**-10,
               torch.bfloat16: 2**-7}[y.dtype]
    tiny = torch.finfo(y.dtype).tiny
    least = 1.0 if log and y.dtype == torch.float64 else max(tiny, 2.0**-30) if log else tiny
    error = (y.double() - expected).abs() / expected.abs().clamp_min(least)
    bound = 4 if y.dtype == torch.float32 else 16 if y.dtype == torch.float64 else 0.52
    assert bool((error <= bound * spacing).all()), float(error.max() / spacing)


def test_torch_tensors_of_every_type_in_and_out_of_place():
    torch = module("torch")
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        for rows, columns in ((1, 1), (3, 5), (7, 1000), (2, 3 * 1024 + 1), (70000, 33)):
            for log in (False, True):
                out_of_place = libsoftmax.log_softmax if log else libsoftmax.softmax
                in_place = libsoftmax.log_softmax_ if log else libsoftmax.softmax_
                x = logits(torch, rows, columns, dtype)
                y = out_of_place(x)
                assert y.dtype == x.dtype and y.is_cuda and y.data_ptr() != x.data_ptr()
                if columns > 1:
                    assert_close(torch, y, x, log)
                else:
                    assert bool((y == (0 if log else 1)).all())
                out = torch.full_like(x, 9)
                assert out_of_place(x, out) is out and torch.equal(out, y)
                assert in_place(x) is x and torch.equal(x, y)


def test_torch_half_precision_to_float32_and_more_dimensions():
    torch = module("torch")
    for dtype in ("float16", "bfloat16"):
        x = logits(torch, 24, 100, dtype).reshape(2, 3, 4, 100)
        y = libsoftmax.softmax(x, dtype=torch.float32)
        assert y.shape == x.shape and y.dtype == torch.float32
        assert_close(torch, y, x, False)


def test_torch_tensors_that_are_not_contiguous_are_refused_and_not_written():
    torch = module("torch")
    x = logits(torch, 32, 32)
    kept = x.clone()
    for view in (x.T, x[::2, ::2], x[:, 0:1], x[:, 3:20]):
        raises(ValueError, "not contiguous", libsoftmax.softmax_, view)
        raises(ValueError, "not contiguous", libsoftmax.softmax, view)
        raises(ValueError, "out is not contiguous", libsoftmax.softmax, view.contiguous(), view)
    assert torch.equal(x, kept)


def test_torch_tensors_that_record_gradients_are_refused():
    torch = module("torch")
    x = logits(torch, 3, 5).requires_grad_()
    raises((BufferError, RuntimeError), "grad", libsoftmax.softmax, x)
    assert_close(torch, libsoftmax.softmax(x.detach()), x.detach(), False)


def test_the_current_stream_of_torch_is_used():
    torch = module("torch")
    side = torch.cuda.Stream()
    big = torch.zeros(64 * 1024 * 1024, device="cuda")
    for _ in range(5):
        with torch.cuda.stream(side):
            x = torch.zeros(512, 1000, device="cuda")
            for _ in range(20):
                big.add_(1)  # work that the next lines are behind of
            x.add_(logits(torch, 512, 1000))
            y = libsoftmax.softmax(x)
            z = y.clone()
        side.synchronize()
        assert_close(torch, z, x, False)


def test_a_given_stream_waits_for_what_produced_the_array():
    torch = module("torch")
    side = torch.cuda.Stream()
    big = torch.zeros(64 * 1024 * 1024, device="cuda")
    for stream in (side, side.cuda_stream):
        x = torch.zeros(512, 1000, device="cuda")
        for _ in range(20):
            big.add_(1)
        x.add_(logits(torch, 512, 1000))
        y = libsoftmax.softmax(x, stream=stream)
        side.synchronize()
        assert_close(torch, y, x, False)


def test_torch_tensors_may_be_dropped_while_a_given_stream_still_uses_them():
    torch = module("torch")
    side = torch.cuda.Stream()
    big = torch.zeros(64 * 1024 * 1024, device="cuda")
    expected = libsoftmax.softmax(logits(torch, 2048, 1024))
    torch.cuda.synchronize()
    for _ in range(10):
        x = logits(torch, 2048, 1024)
        out = torch.empty_like(x)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(30):
                big.add_(1)
        libsoftmax.softmax(x, out, stream=side)
        del x
        gc.collect()
        garbage = torch.full((2048, 1024), 7.0, device="cuda")  # takes x's memory if it can
        side.synchronize()
        assert torch.equal(out, expected)
        del garbage


def test_calls_can_be_captured_in_a_graph():
    torch = module("torch")
    x = logits(torch, 64, 1000)
    y = torch.empty_like(x)
    libsoftmax.softmax(x, y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        libsoftmax.softmax(x, y)
    for round_number in range(3):
        x.copy_(logits(torch, 64, 1000) * (round_number + 1) / 2)
        graph.replay()
        assert torch.equal(y, libsoftmax.softmax(x))


def test_host_and_device_memory_do_not_mix():
    torch = module("torch")
    x = logits(torch, 3, 5)
    raises(ValueError, "different devices", libsoftmax.softmax, x, torch.empty(3, 5))
    raises(ValueError, "different devices", libsoftmax.softmax, x.cpu(), torch.empty_like(x))
    with libsoftmax.Handle("cuda:0") as handle:
        error = raises(libsoftmax.SoftmaxError, "WRONG_DEVICE", libsoftmax.softmax_, x.cpu(),
                       handle=handle)
        assert error.status == 1009
        y = libsoftmax.softmax(x, handle=handle)
    assert torch.equal(y, libsoftmax.softmax(x))


def test_torch_tensors_on_the_cpu_and_pinned_ones_are_computed_there():
    torch = module("torch")
    for x in (torch.randn(5, 33), torch.randn(5, 33).pin_memory(), torch.randn(33, 5).T):
        y = libsoftmax.softmax(x)
        assert not y.is_cuda
        assert_close(torch, y, x, False)


def test_every_algorithm_of_a_cuda_device_runs_and_others_are_refused():
    torch = module("torch")
    x = logits(torch, 17, 777)
    for algo in ("naive", "shared", "shuffle", "vector", "online", "warp_online", "reference",
                 "warp", "block", "tile", "cluster", "grid"):
        assert libsoftmax.select(17, 777, algo=algo, device="cuda:0").algo == algo
        assert_close(torch, libsoftmax.softmax(x, algo=algo), x, False)
    # Rows of more than 4096 bytes are none of TILE's.
    x = logits(torch, 17, 1025)
    raises(libsoftmax.SoftmaxError, "NOT_SUPPORTED_ALGO", libsoftmax.softmax, x, algo="tile")


def test_auto_is_the_current_device():
    module("torch")
    with libsoftmax.Handle() as handle:
        assert handle.device == "cuda:0" and handle.description


def test_an_empty_cuda_tensor_is_a_success():
    torch = module("torch")
    for shape in ((0, 5), (5, 0), (0,)):
        assert libsoftmax.softmax(torch.empty(shape, device="cuda")).shape == shape


def test_threads_with_a_stream_each_share_the_kept_handle():
    torch = module("torch")
    inputs = [logits(torch, 100 + index, 512) for index in range(8)]
    expected = [libsoftmax.softmax(x) for x in inputs]
    torch.cuda.synchronize()
    wrong = []

    def body(index):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(50):
                y = libsoftmax.softmax(inputs[index])
                stream.synchronize()
                if not torch.equal(y, expected[index]):
                    wrong.append(index)

    threads = [threading.Thread(target=body, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_cupy_arrays_in_and_out_of_place_on_cupy_s_current_stream():
    cupy = module("cupy")
    for dtype in ("float32", "float16", "float64"):
        for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
            with stream:
                x = (cupy.random.standard_normal((31, 1000)) * 3).astype(dtype)
                wide = x.astype("float64")
                exact = cupy.exp(wide - wide.max(-1, keepdims=True))
                exact /= exact.sum(-1, keepdims=True)
                y = libsoftmax.softmax(x)
                bound = {"float32": 1e-6, "float16": 6e-4, "float64": 1e-14}[dtype]
                error = abs(y.astype("float64") - exact) / exact.clip(cupy.finfo(dtype).tiny)
                assert isinstance(y, cupy.ndarray) and y.dtype == x.dtype
                assert bool((error <= bound).all()), float(error.max())
                assert libsoftmax.softmax_(x) is x and bool((x == y).all())
            stream.synchronize()
    raises(ValueError, "not contiguous", libsoftmax.softmax_, cupy.zeros((4, 4), "float32").T)


def test_numba_arrays_come_through_the_array_interface():
    cuda, numpy = module("numba.cuda"), module("numpy")
    if not cuda.is_available():
        skip("numba cannot use the CUDA device")
    host = numpy.random.default_rng(1).standard_normal((9, 100)).astype("float32")
    x, out = cuda.to_device(host), cuda.device_array((9, 100), "float32")
    expected = libsoftmax.softmax(host)
    assert libsoftmax.softmax(x, out) is out
    libsoftmax.softmax_(x)
    assert numpy.allclose(x.copy_to_host(), expected, rtol=2e-6, atol=0)
    assert (x.copy_to_host() == out.copy_to_host()).all()
    raises(TypeError, "pass out=", libsoftmax.softmax, x)


def test_jax_arrays_are_inputs_and_never_outputs():
    import os

    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = module("jax")
    torch = module("torch")
    x = jax.numpy.arange(20.0).reshape(4, 5)
    if "cuda" not in str(x.device).lower():
        skip("jax does not use the CUDA device")
    out = torch.empty(4, 5, device="cuda")
    libsoftmax.softmax(x, out)
    torch.cuda.synchronize()
    assert bool((out.cpu() - torch.softmax(torch.arange(20.0).reshape(4, 5), -1)).abs().max()
                < 1e-6)
    raises(ValueError, "read-only", libsoftmax.softmax_, x)


def test_the_readme_s_gpu_example_runs():
    module("torch")
    text = (HERE.parent / "README.md").read_text()
    examples = [block for block in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
                if "# needs: torch, cuda" in block]
    assert len(examples) == 1
    exec(compile(examples[0], "README.md", "exec"), {})


def main():
    if libsoftmax.device_count() == 0:
        print("not run: there is no CUDA device")
        return 77
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name, test in sorted(globals().items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
        except Skipped as reason:
            outcome = "skipped"
            print(f"skipped {name}: {reason}")
        except Exception:
            outcome = "failed"
            print(f"FAILED {name}")
            traceback.print_exc(file=sys.stdout)
        else:
            outcome = "passed"
            print(f"passed {name}")
        counts[outcome] += 1
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
