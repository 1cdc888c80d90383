# Holds outputs against float64: sampled rows exactly, the rest for NaNs.
import torch

from .device import TORCH_DTYPES

ROWS = 64
SAMPLE_ELEMENTS = 1 << 26  # so that the float64 copies of the sampled rows stay within some GB
# Significand bits, and the exponent of the smallest normal number.
FORMATS = {"f32": (24, -126), "f16": (11, -14), "bf16": (8, -126), "f64": (53, -1022)}
# What softmax.h promises for ours, and what makes a peer's output wrong rather than inexact: some
# of them are off by hundreds of ulp on long rows, which is their accuracy and no mistake.
OURS_ULP = {"f32": 4.0, "f16": 0.51, "bf16": 0.51, "f64": 4.0}
PEER_ULP = {"f32": 16384.0, "f16": 4.0, "bf16": 4.0, "f64": 16384.0}


def sampled_rows(m, n):
    """First, last, middle and rows evenly between, without repeats."""
    count = max(3, min(ROWS, SAMPLE_ELEMENTS // max(1, n)))
    if m <= count:
        return list(range(m))
    rows = {m // 2}
    rows.update(i * (m - 1) // (count - 2) for i in range(count - 1))
    return sorted(rows)


def reference(x, op):
    """Softmax or log-softmax of the rows in float64."""
    function = torch.log_softmax if op == "log" else torch.softmax
    return function(x.double(), -1)


def errors(got, want, dtype):
    """The largest error in ulp of the right result, and the largest absolute one; NaN and
    infinity count as infinite."""
    bits, min_exponent = FORMATS[dtype]
    exponent = torch.clamp(torch.frexp(want).exponent - 1, min=min_exponent)
    exponent = torch.where(want == 0, min_exponent, exponent)
    spacing = torch.exp2((exponent - (bits - 1)).double())
    distance = (got.double() - want).abs()
    distance = torch.where(torch.isfinite(distance), distance, torch.inf)
    return (distance / spacing).max().item(), distance.max().item()


class Checker:
    """Checks candidates of one cell against one reference, which is computed once."""

    def __init__(self, cell, x):
        self._cell = cell
        self._rows = torch.tensor(sampled_rows(cell.M, cell.N), device=x.device)
        self._want = reference(x[self._rows], cell.op)

    def check(self, launch, y, ours, restore=None):
        """Runs a candidate once, over an output of NaNs; returns what is wrong, or None, and the
        errors."""
        if restore is None:
            y.fill_(torch.nan)
        else:
            restore()
        result = launch()
        if result is None:
            result = y
        cell = self._cell
        if tuple(result.shape) != (cell.M, cell.N) or result.dtype != TORCH_DTYPES[cell.y_dtype]:
            return f"returned {tuple(result.shape)} {result.dtype}", {}
        ulp, absolute = errors(result[self._rows], self._want, cell.y_dtype)
        found = {"max_ulp": round(ulp, 3) if ulp < 1e9 else None,
                 "max_abs": float(f"{absolute:.3g}") if absolute < 1e9 else None}
        if torch.isnan(result).any().item():
            return "a NaN in the output", found
        bound = (OURS_ULP if ours else PEER_ULP)[cell.y_dtype]
        return (f"{ulp:.3g} ulp, more than {bound}" if ulp > bound else None), found

    def confirmation(self, y, ours):
        """(spoil, right): fills an output with NaNs, and tells whether it holds the result again.
        Both take what a call returned, or None for y."""
        dtype = self._cell.y_dtype
        bound = (OURS_ULP if ours else PEER_ULP)[dtype]

        def spoil(result):
            (y if result is None else result).fill_(torch.nan)

        def right(result):
            result = y if result is None else result
            return errors(result[self._rows], self._want, dtype)[0] <= bound

        return spoil, right
