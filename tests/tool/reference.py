"""Softmax in extended precision, and the distance to it in units in the last place."""

import numpy as np

# significand bits and the exponent of the smallest normal number
FORMATS = {"f32": (24, -126), "f16": (11, -14), "bf16": (8, -126), "f64": (53, -1022)}
BOUND_ULP = {"f32": 4.0, "f64": 4.0, "f16": 0.51, "bf16": 0.51}  # softmax.h, section 3


def softmax(x):
    x = np.asarray(x, np.longdouble)
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def logsoftmax(x):
    """The maximum's own 1 is kept out of the sum, so that a value near 0 is exact too."""
    x = np.asarray(x, np.longdouble)
    top = x.argmax(-1)[..., None]
    shifted = x - np.take_along_axis(x, top, -1)
    e = np.exp(shifted)
    np.put_along_axis(e, top, 0, -1)
    return shifted - np.log1p(e.sum(-1, keepdims=True))


def worst_ulp(got, want, dtype):
    """The largest distance; infinite where a result is NaN."""
    bits, min_exponent = FORMATS[dtype]
    exponent = np.maximum(np.frexp(want)[1] - 1, min_exponent)
    distance = np.abs(np.asarray(got, np.longdouble) - want) / np.ldexp(np.longdouble(1),
                                                                       exponent - bits + 1)
    return float(np.where(np.isnan(distance), np.inf, distance).max())


def bf16_bits(x):
    """float32 values rounded to nearest even, as uint16."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16_bits(bits):
    return (np.ascontiguousarray(bits).astype(np.uint32) << 16).view(np.float32)


def logits(shape, seed=0):
    """Values spread as those of a real classifier: a wrong sum or a wrong maximum shows."""
    return np.random.default_rng(seed).normal(0, 4, shape)
