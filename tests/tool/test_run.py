"""softmax run, from .npy to .npy: every type and shape against the reference."""

import os

import numpy as np
import pytest

import reference
from reference import BOUND_ULP, logits

NUMPY = {"f32": np.float32, "f16": np.float16, "f64": np.float64}
SHAPES = [(1,), (7,), (1000,), (5, 33), (1, 1), (64, 257), (2, 3, 129), (3, 1, 2, 5, 17)]


def write(path, values, dtype):
    """Writes values, rounded to dtype, and returns what was written as float64."""
    if dtype == "bf16":
        bits = reference.bf16_bits(values)
        np.save(path, bits.view("V2"))
        return reference.from_bf16_bits(bits).astype(np.float64)
    stored = np.asarray(values, NUMPY[dtype])
    np.save(path, stored)
    return stored.astype(np.float64)


def read(path, dtype):
    array = np.load(path)
    if dtype == "bf16":
        assert array.dtype == np.dtype("V2")
        return reference.from_bf16_bits(array.view(np.uint16))
    assert array.dtype == NUMPY[dtype]
    return array


def run_and_compare(softmax, shape, x_dtype, y_dtype, is_log=False, extra=()):
    x = write(softmax.folder / "x.npy", logits(shape), x_dtype)
    options = [*extra, *(["--log"] if is_log else []),
               *(["--input-dtype", "bf16"] if x_dtype == "bf16" else []),
               *(["--dtype", y_dtype] if y_dtype != x_dtype else [])]
    assert softmax.ok("run", "x.npy", "-o", "y.npy", *options) == ""
    y = read(softmax.folder / "y.npy", y_dtype)
    assert y.shape == shape
    want = reference.logsoftmax(x) if is_log else reference.softmax(x)
    assert reference.worst_ulp(y, want, y_dtype) <= BOUND_ULP[y_dtype]
    assert sorted(os.listdir(softmax.folder)) == ["x.npy", "y.npy"]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", BOUND_ULP)
def test_softmax_of_every_type_and_shape_is_that_of_the_reference(softmax, shape, dtype):
    run_and_compare(softmax, shape, dtype, dtype, extra=["--device", "cpu"])


@pytest.mark.parametrize("shape", SHAPES[2:5], ids=str)
@pytest.mark.parametrize("dtype", BOUND_ULP)
def test_log_softmax_of_every_type_is_that_of_the_reference(softmax, shape, dtype):
    run_and_compare(softmax, shape, dtype, dtype, is_log=True)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("is_log", [False, True])
def test_16_bit_input_can_have_float32_output(softmax, dtype, is_log):
    run_and_compare(softmax, (9, 300), dtype, "f32", is_log)


@pytest.mark.parametrize("algo", ["auto", "naive", "vector", "online", "reference"])
def test_every_algorithm_of_the_cpu_can_be_asked_for(softmax, algo):
    run_and_compare(softmax, (17, 1025), "f32", "f32", extra=["--algo", algo, "--device", "cpu"])


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_format_is_read(softmax, version):
    x = logits((4, 11)).astype(np.float32)
    with open(softmax.folder / "x.npy", "wb") as file:
        np.lib.format.write_array(file, x, version=version)
    softmax.ok("run", "x.npy", "-o", "y.npy")
    assert reference.worst_ulp(np.load(softmax.folder / "y.npy"), reference.softmax(x), "f32") <= 4


def test_a_header_in_another_order_and_spelling_is_read(softmax):
    x = logits((3, 5)).astype(np.float32)
    text = b'{"shape":(3L , 5L),\t"fortran_order" :False, "descr":"<f4"}\n'
    (softmax.folder / "x.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + x.tobytes())
    softmax.ok("run", "x.npy", "-o", "y.npy")
    assert reference.worst_ulp(np.load(softmax.folder / "y.npy"), reference.softmax(x), "f32") <= 4


@pytest.mark.parametrize("descr", ["<V2", "|V2", "<u2", "bfloat16"])
def test_bfloat16_is_read_however_it_was_saved(softmax, descr):
    bits = reference.bf16_bits(logits((6, 50)))
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (6, 50), }}\n".encode()
    (softmax.folder / "x.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bits.tobytes())
    softmax.ok("run", "x.npy", "-o", "y.npy", "--input-dtype", "bf16")
    want = reference.softmax(reference.from_bf16_bits(bits))
    assert reference.worst_ulp(read(softmax.folder / "y.npy", "bf16"), want, "bf16") <= 0.51
    if descr == "bfloat16":  # says so itself
        softmax.ok("run", "x.npy", "-o", "z.npy")
        assert (softmax.folder / "z.npy").read_bytes() == (softmax.folder / "y.npy").read_bytes()


def test_rows_with_nan_and_infinity_come_out_as_the_header_says(softmax):
    x = np.zeros((4, 6), np.float32)
    x[0, 2], x[1, 3], x[2, 4], x[3] = np.nan, np.inf, -np.inf, -np.inf
    np.save(softmax.folder / "x.npy", x)
    softmax.ok("run", "x.npy", "-o", "y.npy")
    y = np.load(softmax.folder / "y.npy")
    assert np.isnan(y[[0, 1, 3]]).all()
    assert y[2, 4] == 0 and np.allclose(np.delete(y[2], 4), 0.2, rtol=1e-6)


def test_the_output_may_be_the_input(softmax):
    x = logits((40, 100)).astype(np.float32)
    np.save(softmax.folder / "x.npy", x)
    softmax.ok("run", "x.npy", "-o", "./x.npy", "--block-bytes", 400)
    assert reference.worst_ulp(np.load(softmax.folder / "x.npy"), reference.softmax(x), "f32") <= 4


def test_an_existing_output_is_replaced_and_keeps_its_mode(softmax):
    np.save(softmax.folder / "x.npy", np.zeros((2, 4), np.float32))
    target = softmax.folder / "y.npy"
    target.write_text("old")
    target.chmod(0o640)
    (softmax.folder / "link.npy").symlink_to("y.npy")
    softmax.ok("run", "x.npy", "-o", "link.npy")
    assert (softmax.folder / "link.npy").is_symlink()
    assert (np.load(target) == 0.25).all()
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_new_output_has_the_mode_of_the_umask(softmax):
    np.save(softmax.folder / "x.npy", np.zeros((2, 4), np.float32))
    softmax.ok("run", "x.npy", "-o", "y.npy", umask=0o027)
    assert (softmax.folder / "y.npy").stat().st_mode & 0o777 == 0o640
