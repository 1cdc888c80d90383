# The peers: PyTorch, torch.compile, cuDNN, a Triton kernel, and QuACK, Liger and FlashInfer.
import ctypes
import importlib
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import time

from .candidate import Absent, Candidate, first_line
from .grids import COMPILE_HOT_M, COMPILE_N

NAMES = ("pytorch", "compile", "cudnn", "cudnn-fast", "triton", "quack", "liger", "flashinfer")


class PyTorch(Candidate):
    name = "pytorch"

    def __init__(self, device):
        del device
        from . import device as torch_side
        self._dtypes = torch_side.TORCH_DTYPES
        self._torch = torch_side.torch

    def bind(self, cell, x, y):
        function = self._torch.log_softmax if cell.op == "log" else self._torch.softmax
        dtype = None if cell.x_dtype == cell.y_dtype else self._dtypes[cell.y_dtype]
        return lambda: function(x, -1, dtype=dtype, out=y)


class CompilingPeer(Candidate):
    """A peer that takes seconds to compile for each row length: it does so for some only."""

    def __init__(self, every_length):
        self._every_length = every_length

    def refuse(self, cell):
        if not self._every_length:
            if cell.N not in COMPILE_N:
                return "not among the lengths that are compiled for (--all-compile)"
            if cell.mode == "hot" and cell.M not in COMPILE_HOT_M:
                return "not among the row counts that are compiled for (--all-compile)"
        return super().refuse(cell)


class TorchCompile(CompilingPeer):
    name = "compile"

    def __init__(self, device, every_length=False):
        super().__init__(every_length)
        del device
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(min(8, os.cpu_count() or 1)))
        from . import device as torch_side
        self._dtypes = torch_side.TORCH_DTYPES
        self._torch = torch_side.torch
        self._compiled = (None, None)  # one at a time: the guards of many would slow each down

    def bind(self, cell, x, y):
        key = (cell.x_dtype, cell.y_dtype, cell.M, cell.N, cell.op, cell.offset)
        if self._compiled[0] != key:
            torch = self._torch
            operation = torch.log_softmax if cell.op == "log" else torch.softmax
            dtype = None if cell.x_dtype == cell.y_dtype else self._dtypes[cell.y_dtype]
            torch._dynamo.reset()
            self._compiled = (key, torch.compile(lambda v: operation(v, -1, dtype=dtype),
                                                 fullgraph=True, dynamic=False))
        function = self._compiled[1]
        return lambda: function(x)


class Triton(Candidate):
    name = "triton"
    in_place = True

    def __init__(self, device):
        self._device = device
        from . import triton_rows
        self._rows = triton_rows
        self._chosen = {}

    def prepare(self, cells, buffers):
        problems = {}
        for cell in cells:
            key = (cell.x_dtype, cell.y_dtype, cell.N, cell.op, cell.offset)
            if key not in problems:
                problems[key] = (buffers.inputs(cell)[0], buffers.outputs(cell)[0],
                                 cell.op == "log")
        self._rows.compile_ahead(problems.values())

    def bind(self, cell, x, y):
        log, key = cell.op == "log", self._key(cell)
        if key not in self._chosen:
            tried, error = [], None
            for shape in self._rows.configurations(cell.N):
                launch = self._rows.bind(x, y, log, *shape)
                try:
                    tried.append((self._device.quick_us(cell.mode, [launch]), shape))
                except Exception as refused:  # pylint: disable=broad-except
                    error = refused  # too many registers, say; the other shape may do
            if not tried:
                raise error
            self._chosen[key] = min(tried)[1]
        return self._rows.bind(x, y, log, *self._chosen[key])

    @staticmethod
    def _key(cell):
        """Cells that share a choice."""
        return (cell.mode, cell.x_dtype, cell.y_dtype, cell.N, cell.op, cell.offset,
                min(cell.M, 256))

    def facts(self, cell, x, y):
        rows, warps = self._chosen[self._key(cell)]
        return {"kernel": f"{rows} rows, {warps} warps"}


class Cudnn(Candidate):
    """cudnnSoftmaxForward over (M, N, 1, 1). Numbers are those of cudnn_graph.h and cudnn_ops.h."""

    in_place = True
    FAST, ACCURATE, LOG, MODE_INSTANCE, NCHW = 0, 1, 2, 0, 0
    DTYPES = {"f32": 0, "f64": 1, "f16": 2, "bf16": 9}

    def __init__(self, device, fast=False):
        self.name = "cudnn-fast" if fast else "cudnn"
        self._algorithm = self.FAST if fast else self.ACCURATE
        self._library = ctypes.CDLL(_cudnn_path())
        self._library.cudnnGetErrorString.restype = ctypes.c_char_p
        self._handle = ctypes.c_void_p()
        self._check(self._library.cudnnCreate(ctypes.byref(self._handle)))
        self._check(self._library.cudnnSetStream(self._handle,
                                                 ctypes.c_void_p(device.stream_address)))
        self._one, self._zero = ctypes.c_float(1), ctypes.c_float(0)

    def _check(self, status):
        if status != 0:
            raise Absent(f"cuDNN: {self._library.cudnnGetErrorString(status).decode()}")

    def refuse(self, cell):
        if cell.x_dtype != cell.y_dtype:
            return "cuDNN's softmax has one type for input and output"
        if cell.op == "log" and self._algorithm == self.FAST:
            return "cuDNN has one log-softmax, measured as cudnn"
        return super().refuse(cell)

    def _descriptor(self, cell):
        descriptor = ctypes.c_void_p()
        self._check(self._library.cudnnCreateTensorDescriptor(ctypes.byref(descriptor)))
        self._check(self._library.cudnnSetTensor4dDescriptor(
            descriptor, self.NCHW, self.DTYPES[cell.x_dtype], ctypes.c_int(cell.M),
            ctypes.c_int(cell.N), 1, 1))
        return descriptor

    def bind(self, cell, x, y):
        descriptor = self._descriptor(cell)
        algorithm = self.LOG if cell.op == "log" else self._algorithm
        one, zero = ctypes.byref(self._one), ctypes.byref(self._zero)
        source, target = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr())
        return lambda: self._check(self._library.cudnnSoftmaxForward(
            self._handle, algorithm, self.MODE_INSTANCE, one, descriptor, source, zero, descriptor,
            target))


def _cudnn_path():
    """cuDNN of the wheel beside PyTorch, or the system's."""
    try:
        package = importlib.util.find_spec("nvidia.cudnn")
    except ModuleNotFoundError:
        package = None
    for folder in (package.submodule_search_locations or []) if package else []:
        path = pathlib.Path(folder) / "lib" / "libcudnn.so.9"
        if path.is_file():
            return str(path)
    return "libcudnn.so.9"


class Quack(CompilingPeer):
    name = "quack"

    def __init__(self, device, every_length=False):
        super().__init__(every_length)
        del device
        module = importlib.import_module("quack.softmax")
        self._into = getattr(module, "_softmax_fwd", None)
        self._forward = module.softmax_fwd

    def refuse(self, cell):
        if cell.op != "softmax" or cell.x_dtype != cell.y_dtype:
            return "QuACK has softmax of one type alone"
        if cell.x_dtype not in ("f32", "f16", "bf16"):
            return f"QuACK has no {cell.x_dtype}"
        if cell.offset:
            # Its kernels are compiled for 16-byte pointers, and a misaligned access would end the
            # whole run rather than this cell.
            return "QuACK asks for pointers aligned to 16 bytes"
        return super().refuse(cell)

    def bind(self, cell, x, y):
        if self._into is None:
            return lambda: self._forward(x)
        return lambda: self._into(x, y)


class Liger(Candidate):
    name = "liger"

    def __init__(self, device):
        del device
        self._forward = importlib.import_module("liger_kernel.ops.softmax")._softmax_forward

    def refuse(self, cell):
        if cell.op != "softmax" or cell.x_dtype != cell.y_dtype:
            return "Liger has softmax of one type alone"
        return super().refuse(cell)

    def bind(self, cell, x, y):
        return lambda: self._forward(x)[0]


class FlashInfer(Candidate):
    """Its kernels are built at first use, by nvcc: a child process does that while the first other
    cells are measured."""

    name = "flashinfer"
    BUILD = ("from flashinfer.jit.sampling import gen_sampling_module\n"
             "gen_sampling_module().build(verbose=False)\n")

    def __init__(self, device, wait_seconds):
        del device
        if importlib.util.find_spec("flashinfer") is None:
            raise Absent("flashinfer is not installed")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self._deadline = time.monotonic() + wait_seconds
        self._build = subprocess.Popen([sys.executable, "-c", self.BUILD], env=environment,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True, start_new_session=True)
        self._softmax = None
        self._reason = None

    def refuse(self, cell):
        if cell.x_dtype != "f32" or cell.y_dtype != "f32" or cell.op != "softmax":
            return "FlashInfer has softmax of f32 alone"
        return super().refuse(cell) or self._ready()

    def _ready(self):
        """None once the kernels are built, else why they are not."""
        if self._softmax or self._reason:
            return self._reason
        try:
            _, complaint = self._build.communicate(
                timeout=max(0.1, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return "its kernels were still being built (--flashinfer-wait)"
        if self._build.returncode != 0:
            lines = complaint.strip().splitlines() or ["no reason given"]
            self._reason = f"its build failed: {lines[-1]}"[:200]
            return self._reason
        self._softmax = importlib.import_module("flashinfer.sampling").softmax
        return None

    def close(self):
        if self._build.poll() is None:
            os.killpg(self._build.pid, signal.SIGKILL)  # with the compilers that it has started
            self._build.communicate()

    def bind(self, cell, x, y):
        return lambda: self._softmax(x)


class Missing(Candidate):
    """Stands for a peer that is not here, and says so in every cell."""

    def __init__(self, name, reason):
        self.name = name
        self._reason = reason

    def refuse(self, cell):
        return self._reason


def make(name, device, every_length=False, flashinfer_wait=0.0):
    """A peer by name; one that cannot be had is Missing with the reason."""
    makers = {
        "pytorch": lambda: PyTorch(device),
        "compile": lambda: TorchCompile(device, every_length),
        "cudnn": lambda: Cudnn(device),
        "cudnn-fast": lambda: Cudnn(device, fast=True),
        "triton": lambda: Triton(device),
        "quack": lambda: Quack(device, every_length),
        "liger": lambda: Liger(device),
        "flashinfer": lambda: FlashInfer(device, flashinfer_wait),
    }
    try:
        return makers[name]()
    except ModuleNotFoundError as error:
        return Missing(name, f"{error.name} is not installed")
    except Absent as error:
        return Missing(name, str(error))
    except Exception as error:  # pylint: disable=broad-except
        return Missing(name, first_line(error))
