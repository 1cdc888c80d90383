"""The answers that tests compare with, and errors in units in the last place."""
import numpy as np


def softmax(x, log=False):
    """(Log-)softmax over the last axis in extended precision."""
    wide = np.asarray(x).astype(np.longdouble)
    shifted = wide - wide.max(axis=-1, keepdims=True)
    powers = np.exp(shifted)
    total = powers.sum(axis=-1, keepdims=True)
    return shifted - np.log(total) if log else powers / total


def worst_ulp(y, expected):
    """The largest error of y in units in the last place; infinite where either is not finite.

    Expected values below the normal range of y's type are left out.
    """
    assert y.shape == expected.shape
    normal = np.abs(expected) >= np.finfo(y.dtype).tiny
    assert normal.any(), "nothing to compare"
    wide = y[normal].astype(np.longdouble)
    if not (np.isfinite(wide).all() and np.isfinite(expected[normal]).all()):
        return np.inf
    spacing = np.spacing(np.abs(expected[normal]).astype(y.dtype)).astype(np.longdouble)
    return float((np.abs(wide - expected[normal]) / spacing).max())


BOUND_ULP = {"float16": 0.51, "float32": 4.0, "float64": 4.0}
