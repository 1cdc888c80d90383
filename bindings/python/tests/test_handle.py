"""Handles, threads and lifetimes. Public report: openai/procgen#13."""
import gc
import threading

import numpy as np
import pytest

import libsoftmax
from libsoftmax import _handle
from reference import softmax, worst_ulp

X = np.random.default_rng(11).standard_normal((16, 257)).astype("float32")


def test_a_handle_is_a_context_manager_and_says_what_it_is():
    with libsoftmax.Handle("cpu") as handle:
        assert handle.device == "cpu" and "CPU" in handle.description
        assert (libsoftmax.softmax(X, handle=handle) == libsoftmax.softmax(X)).all()
        assert repr(handle) == "<libsoftmax.Handle cpu>"
    assert repr(handle) == "<libsoftmax.Handle closed>"
    for use in (lambda: libsoftmax.softmax(X, handle=handle), lambda: handle.select(1, 1),
                lambda: handle.description):
        with pytest.raises(ValueError, match="closed"):
            use()
    handle.close()


def test_auto_is_a_device_that_exists():
    with libsoftmax.Handle() as handle:
        assert handle.device == ("cuda:0" if libsoftmax.device_count() else "cpu")


def test_select_says_what_and_why():
    choice = libsoftmax.select(4, 1000, dtype="float16", out_dtype=np.float32, log=True,
                               algo="online", device="cpu")
    assert choice.algo == "online" and choice.kernel and choice.reason and choice.threads >= 1
    for arguments in ((2**63, 1), (-2**70, 1)):
        with pytest.raises(OverflowError, match="does not fit"):
            libsoftmax.select(*arguments, device="cpu")
    for arguments in ({"device": 2**31}, {"algo": -2**40}):
        with pytest.raises(OverflowError, match="does not fit"):
            libsoftmax.select(1, 1, **arguments)
    for dtype in ("int8", None):
        with pytest.raises(TypeError):
            libsoftmax.select(1, 1, dtype=dtype, device="cpu")
    with pytest.raises(libsoftmax.SoftmaxError) as caught:
        libsoftmax.select(1, 1, algo="warp_online", device="cpu")
    assert caught.value.status == 2001 and "SOFTMAX_STATUS_NOT_SUPPORTED_ALGO" in str(caught.value)


def test_names_and_versions_are_text():
    assert libsoftmax.algorithms()["auto"] == 0
    assert libsoftmax.version() in libsoftmax.build_info()


def test_temporaries_live_until_the_work_is_done():
    expected = softmax(X)
    for _ in range(50):
        y = libsoftmax.softmax((X.astype("float64") * 1).astype("float32"))
        z = libsoftmax.softmax_((X[::-1] * 1)[::-1].copy())
        gc.collect()
        assert worst_ulp(y, expected) <= 4 and (y == z).all()


def test_results_own_their_memory():
    y = libsoftmax.softmax(X.copy())
    kept = y.copy()
    gc.collect()
    noise = [np.full(X.shape, 9, "float32") for _ in range(20)]
    assert (y == kept).all() and len(noise) == 20


def run_threads(count, body):
    errors = []

    def guarded(index):
        try:
            body(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_threads_share_one_handle():
    expected = [libsoftmax.softmax(X + index) for index in range(8)]
    with libsoftmax.Handle("cpu") as handle:
        def body(index):
            for _ in range(20):
                assert (libsoftmax.softmax(X + index, handle=handle) == expected[index]).all()

        run_threads(8, body)


def test_the_kept_handle_is_made_once_by_many_threads(monkeypatch):
    made = []

    class Counted(libsoftmax.Handle):
        def __init__(self, device):
            made.append(device)
            super().__init__(device)

    monkeypatch.setattr(_handle, "_defaults", {})
    monkeypatch.setattr(_handle, "Handle", Counted)
    start = threading.Barrier(8)

    def body(index):
        start.wait()
        libsoftmax.softmax(X)

    run_threads(8, body)
    assert len(made) == 1


def test_errors_are_each_thread_s_own():
    def body(index):
        for _ in range(50):
            with pytest.raises(libsoftmax.SoftmaxError) as caught:
                libsoftmax.softmax(X, algo=5000 + index)
            assert str(5000 + index) in str(caught.value)

    run_threads(8, body)


def test_other_threads_run_during_a_call():
    big = np.random.default_rng(1).standard_normal((2000, 20000)).astype("float32")
    done, ticks = threading.Event(), []

    def compute():
        libsoftmax.softmax_(big, algo="reference")
        done.set()

    thread = threading.Thread(target=compute)
    thread.start()
    while not done.wait(0.002):
        ticks.append(1)
    thread.join()
    assert len(ticks) >= 3
