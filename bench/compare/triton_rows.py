# A plain Triton softmax, as people write it: one program a row, or a few short rows a program.
import concurrent.futures

import torch
import triton
import triton.language as tl

WHOLE_ROW = 65536  # the longest row that one program reads once
LONG_BLOCK = 8192
COPY_BLOCK = 4096


@triton.jit(do_not_specialize=["M"])  # M is a bound alone: no need to compile for its divisors
def softmax_rows(y, x, N, M, LOG: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """ROWS whole rows, read once."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    at = row[:, None] * N + column[None, :]
    inside = (row < M)[:, None] & (column < N)[None, :]
    v = tl.load(x + at, mask=inside, other=-float("inf")).to(tl.float32)
    shifted = v - tl.max(v, axis=1)[:, None]
    e = tl.exp(shifted)
    total = tl.sum(e, axis=1)
    if LOG:
        result = shifted - tl.log(total)[:, None]
    else:
        result = e / total[:, None]
    tl.store(y + at, result.to(y.dtype.element_ty), mask=inside)


@triton.jit
def softmax_long_row(y, x, N, LOG: tl.constexpr, BLOCK: tl.constexpr):
    """One row longer than a program can hold: running (max, sum) pairs, then a second pass."""
    row = tl.program_id(0).to(tl.int64)
    x += row * N
    y += row * N
    column = tl.arange(0, BLOCK)
    top = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        v = tl.load(x + start + column, mask=start + column < N,
                    other=-float("inf")).to(tl.float32)
        higher = tl.maximum(top, v)
        total = total * tl.exp(top - higher) + tl.exp(v - higher)
        top = higher
    row_top = tl.max(top, axis=0)
    row_total = tl.sum(total * tl.exp(top - row_top), axis=0)
    for start in range(0, N, BLOCK):
        inside = start + column < N
        v = tl.load(x + start + column, mask=inside, other=0.0).to(tl.float32)
        if LOG:
            result = v - row_top - tl.log(row_total)
        else:
            result = tl.exp(v - row_top) / row_total
        tl.store(y + start + column, result.to(y.dtype.element_ty), mask=inside)


@triton.jit
def copy_words(y, x, n, STREAMING: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    if STREAMING:
        v = tl.load(x + at, mask=at < n, eviction_policy="evict_first")
        tl.store(y + at, v, mask=at < n, cache_modifier=".cs")
    else:
        tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


def bind_copy(x, y, streaming):
    n = x.numel()
    grid = (triton.cdiv(n, COPY_BLOCK),)
    return lambda: copy_words[grid](y, x, n, STREAMING=streaming, BLOCK=COPY_BLOCK, num_warps=8)


def configurations(n):
    """(rows a program, warps) worth trying for a row length: two or three, so that compiling and
    trying them costs little."""
    if n > WHOLE_ROW:
        return ((1, 8), (1, 16))
    block = triton.next_power_of_2(n)
    if block <= 256:
        return ((max(1, 1024 // block), 4), (max(1, 4096 // block), 4))
    if block <= 1024:
        return ((1, 4), (max(1, 2048 // block), 4))
    if block <= 4096:
        return ((1, 4), (1, 8))
    if block <= 16384:
        return ((1, 8), (1, 16))
    return ((1, 16), (1, 32)) if block == WHOLE_ROW else ((1, 16),)


def _arguments(x, y, n, m, log, rows, warps):
    """(kernel, programs, positional, keyword) of one launch."""
    if n > WHOLE_ROW:
        return (softmax_long_row, m, (y, x, n),
                {"LOG": log, "BLOCK": LONG_BLOCK, "num_warps": warps})
    block = triton.next_power_of_2(n)
    return (softmax_rows, triton.cdiv(m, rows), (y, x, n, m),
            {"LOG": log, "BLOCK": block, "ROWS": rows, "num_warps": warps})


def bind(x, y, log, rows, warps):
    m, n = x.shape
    kernel, programs, positional, keyword = _arguments(x, y, n, m, log, rows, warps)

    def launch():
        kernel[(programs,)](*positional, **keyword)
        return y

    return launch


def compile_ahead(problems, threads=8):
    """Compiles every configuration of (x, y, log) problems side by side. What fails here fails
    again, with its reason, where it is measured."""
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        with triton.AsyncCompileMode(pool, ignore_errors=True):
            for x, y, log in problems:
                m, n = x.shape
                for rows, warps in configurations(n):
                    kernel, programs, positional, keyword = _arguments(x, y, n, m, log, rows, warps)
                    kernel.warmup(*positional, grid=(programs,), **keyword)
    torch.cuda.synchronize()
