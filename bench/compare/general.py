# The general call beside PyTorch: axes, masks, temperatures, statistics, backward. One line a work
# and type, each held against copying the bytes that the call must move.
import ctypes
import dataclasses
import types

import torch

from . import check, timing
from .candidate import Absent, first_line
from .device import MAX_PAIRS, SEED, TORCH_DTYPES

CANDIDATES = ("ours", "pytorch", "compile")
SAMPLED_ROWS = 48
SAMPLED_ELEMENTS = 1 << 24
SCALE = 0.125


@dataclasses.dataclass(frozen=True)
class Work:
    kind: str  # softmax, masked, temperature, lse, backward, log_backward
    shape: tuple
    axis: int
    need: float  # share of copy speed

    @property
    def name(self):
        return f"{self.kind} {'x'.join(map(str, self.shape))}" + \
            (f" over axis {self.axis}" if self.axis != len(self.shape) - 1 else "")

    @property
    def cols(self):
        return self.shape[self.axis]

    @property
    def elements(self):
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def rows(self):
        return self.elements // self.cols

    def y_dtype(self, dtype):
        return "f32" if self.kind == "temperature" else dtype

    def bytes(self, dtype):
        """What the call must move."""
        x, y = TORCH_DTYPES[dtype].itemsize, TORCH_DTYPES[self.y_dtype(dtype)].itemsize
        return {"softmax": self.elements * (x + y), "masked": self.elements * (x + y + 1),
                "temperature": self.elements * (x + y) + 4 * self.rows,
                "lse": self.elements * x + 4 * self.rows,
                "backward": 3 * self.elements * x, "log_backward": 3 * self.elements * x}[self.kind]


WORKS = (
    Work("softmax", (8192, 8192), 0, 0.90),
    Work("softmax", (32, 1000, 784), 1, 0.90),
    Work("softmax", (8, 21, 262144), 1, 0.95),
    Work("softmax", (64, 128256, 2), 1, 0.85),
    Work("softmax", (512, 512, 512), 1, 0.90),
    Work("masked", (32768, 4096), 1, 0.93),
    Work("masked", (1046, 128256), 1, 0.90),
    Work("temperature", (32768, 4096), 1, 0.97),
    Work("temperature", (1046, 128256), 1, 0.95),
    Work("lse", (32768, 4096), 1, 1.0),
    Work("lse", (1046, 128256), 1, 1.0),
    Work("backward", (32768, 4096), 1, 1.0),
    Work("backward", (16384, 8192), 1, 1.0),
    Work("backward", (1048576, 128), 1, 1.0),
    Work("backward", (1046, 128256), 1, 0.95),
    Work("log_backward", (32768, 4096), 1, 1.0),
    Work("log_backward", (16384, 8192), 1, 1.0),
    Work("log_backward", (1048576, 128), 1, 1.0),
    Work("log_backward", (1046, 128256), 1, 0.95),
)


class Buffers:
    """The tensors of one call."""

    def __init__(self, work, dtype, generator):
        def random(shape, of=TORCH_DTYPES[dtype]):
            return torch.randn(shape, generator=generator, device="cuda", dtype=of)

        self.x = self.y = self.dy = self.keep = self.row_scale = self.lse = self.out = None
        if work.kind in ("backward", "log_backward"):
            rows = random(work.shape)
            function = torch.log_softmax if work.kind == "log_backward" else torch.softmax
            self.y = function(rows, work.axis)
            self.dy, self.out = random(work.shape), torch.empty_like(rows)
            return
        self.x = random(work.shape)
        if work.kind == "masked":
            self.keep = torch.rand(work.shape, generator=generator, device="cuda") < 0.9
        if work.kind == "temperature":
            self.row_scale = 0.5 + torch.rand(work.rows, generator=generator, device="cuda")
        if work.kind == "lse":
            self.out = torch.empty(work.rows, device="cuda")
        else:
            self.out = torch.empty(work.shape, device="cuda",
                                   dtype=TORCH_DTYPES[work.y_dtype(dtype)])


def eager(work):
    """PyTorch's words for a work."""
    def masked(b):
        return torch.softmax((b.x * SCALE).masked_fill(~b.keep, float("-inf")), -1)

    def temperature(b):
        return torch.softmax(b.x.float() * b.row_scale[:, None], -1)

    def backward(b):
        return torch.ops.aten._softmax_backward_data(b.dy, b.y, work.axis, b.y.dtype)

    def log_backward(b):
        return torch.ops.aten._log_softmax_backward_data(b.dy, b.y, work.axis, b.y.dtype)

    return {"softmax": lambda b: torch.softmax(b.x, work.axis), "masked": masked,
            "temperature": temperature, "lse": lambda b: torch.logsumexp(b.x.float(), -1),
            "backward": backward, "log_backward": log_backward}[work.kind]


def compilable(work):
    """The same as torch.compile has to see it: backward by its formula."""
    if work.kind == "backward":
        return lambda b: (b.dy - (b.dy.float() * b.y).sum(-1, keepdim=True)) * b.y
    if work.kind == "log_backward":
        return lambda b: (b.dy - b.dy.float().sum(-1, keepdim=True) * b.y.float().exp()
                          ).to(b.dy.dtype)
    return eager(work)


def bind_ours(library, work, dtype, buffers, stream, algo):
    abi, lib = library.abi, library.lib
    desc = abi.softmax_desc_t()
    op = {"lse": abi.SOFTMAX_OP_STATS, "log_backward": abi.SOFTMAX_OP_LOGSOFTMAX}.get(
        work.kind, abi.SOFTMAX_OP_SOFTMAX)
    library.check(lib.softmax_desc_init(ctypes.byref(desc), ctypes.sizeof(desc), op,
                                        library.dtype(dtype), 1, 1))
    desc.y_dtype = library.dtype(work.y_dtype(dtype))
    desc.ndim, desc.axis = len(work.shape), work.axis
    for i, extent in enumerate(work.shape):
        desc.shape[i] = extent
    args = abi.softmax_args_t()
    args.struct_size = ctypes.sizeof(args)
    if work.kind in ("backward", "log_backward"):
        desc.direction = abi.SOFTMAX_DIRECTION_BACKWARD
        args.y, args.dy, args.dx = (t.data_ptr() for t in (buffers.y, buffers.dy, buffers.out))
    else:
        args.x = buffers.x.data_ptr()
        if work.kind == "lse":
            args.lse = buffers.out.data_ptr()
        else:
            args.y = buffers.out.data_ptr()
    if work.kind == "masked":
        desc.scale, desc.mask_kind = SCALE, abi.SOFTMAX_MASK_BOOL_KEEP
        args.mask = buffers.keep.data_ptr()
    if work.kind == "temperature":
        args.row_scale = buffers.row_scale.data_ptr()
    choice = library.select(algo, desc)

    def launch():
        library.check(lib.softmax_execute(library.handle, algo, ctypes.byref(desc),
                                          ctypes.byref(args), stream))
        return buffers.out

    return launch, lib.softmax_algo_name(choice.algo).decode()


def by_rows(work, tensor, at):
    """Some rows of a tensor along the axis, as float64."""
    moved = tensor.movedim(work.axis, -1)
    index = torch.unravel_index(at, moved.shape[:-1])
    return moved[index].double()


class Truth:
    """Float64 results of sampled rows."""

    def __init__(self, work, dtype, buffers):
        count = max(2, min(SAMPLED_ROWS, SAMPLED_ELEMENTS // work.cols, work.rows))
        self._at = torch.linspace(0, work.rows - 1, count, device="cuda").long()
        self._work, self._dtype = work, work.y_dtype(dtype)
        self.want = self._compute(buffers)

    def _compute(self, b):
        work, at = self._work, self._at
        if work.kind in ("backward", "log_backward"):
            y, dy = by_rows(work, b.y, at), by_rows(work, b.dy, at)
            if work.kind == "backward":
                return y * (dy - (y * dy).sum(-1, keepdim=True))
            return dy - y.exp() * dy.sum(-1, keepdim=True)
        x = by_rows(work, b.x, at)
        if work.kind == "masked":
            x = (x * SCALE).masked_fill(by_rows(work, b.keep, at) == 0, float("-inf"))
        if work.kind == "temperature":
            x = x * b.row_scale[at].double()[:, None]
        return torch.logsumexp(x, -1) if work.kind == "lse" else torch.softmax(x, -1)

    def errors(self, result):
        """The largest error, in ulp of the result, or for gradients of the row's largest."""
        got = result[self._at].double() if self._work.kind == "lse" else \
            by_rows(self._work, result, self._at)
        if self._work.kind in ("backward", "log_backward"):
            bits = check.FORMATS[self._dtype][0]
            top = self.want.abs().amax(-1, keepdim=True)
            found = ((got - self.want).abs() / torch.exp2(torch.floor(torch.log2(top)) - bits + 1))
            return found.nan_to_num(nan=float("inf")).max().item()
        dtype = "f32" if self._work.kind == "lse" else self._dtype
        return check.errors(got, self.want, dtype)[0]


class General:
    def __init__(self, device, library, copies, say, write, algo="auto"):
        self._device, self._library, self._copies = device, library, copies
        self._say, self._write = say, write
        self._algo = library.number(algo)

    def run(self, candidates, dtypes, only, clock):
        for work in WORKS:
            for dtype in dtypes:
                if only and not any(word in work.name for word in only):
                    continue
                if clock.over:
                    self._say(f"left out: {work.name} {dtype}")
                    continue
                with self._device.current():
                    self._measure(work, dtype, candidates)

    def _measure(self, work, dtype, candidates):
        size = work.bytes(dtype)
        count = min(MAX_PAIRS, timing.pairs_needed("cold", size, self._device.l2_bytes))
        generator = torch.Generator(device="cuda").manual_seed(SEED)
        sets = [Buffers(work, dtype, generator) for _ in range(count)]
        cell = types.SimpleNamespace(mode="cold", bytes=size)
        half = size // 2 // 16 * 16
        pool = torch.empty(2 * half * count, dtype=torch.uint8, device="cuda")
        pairs = [(pool[2 * i * half:(2 * i + 1) * half], pool[(2 * i + 1) * half:2 * (i + 1) * half])
                 for i in range(count)]
        copy = self._copies.measure(cell, pairs)
        del pool, pairs
        truth = Truth(work, dtype, sets[0])
        words = []
        for name in candidates:
            line = {"work": work.name, "dtype": dtype, "candidate": name, "need": work.need, **copy}
            try:
                line.update(self._candidate(name, work, dtype, sets, truth))
                line["share"] = round(copy["copy_us"] / line["us"], 4)
                words.append(f"{name} {line['share']:.3f} ({line['us']:.1f} us, "
                             f"{line['max_ulp']:.3g} ulp"
                             + (f", {line['algo']})" if "algo" in line else ")"))
            except Exception as error:  # pylint: disable=broad-except
                line.update(status="absent" if isinstance(error, Absent) else "failed",
                            reason=first_line(error))
                words.append(f"{name}: {line['reason']}")
            self._write(line)
        self._say(f"{work.name:40} {dtype:5} copy {copy['copy_us']:7.1f} us  " + "  ".join(words))
        self._device.tidy()

    def _candidate(self, name, work, dtype, sets, truth):
        facts = {"status": "ok"}
        if name == "ours":
            bound = [bind_ours(self._library, work, dtype, b, self._device.stream_address,
                               self._algo) for b in sets]
            launches = [launch for launch, _ in bound]
            facts["algo"] = bound[0][1]
        else:
            function = eager(work) if name == "pytorch" else \
                torch.compile(compilable(work), dynamic=False)
            launches = [lambda b=b: function(b) for b in sets]
        if name == "ours":
            sets[0].out.fill_(float("nan"))
        facts["max_ulp"] = float(f"{truth.errors(launches[0]()):.4g}")
        if facts["max_ulp"] == float("inf"):
            raise RuntimeError("a NaN or an infinity that is wrong")
        timed = self._device.time("cold", launches)
        return {**facts, **timed}
