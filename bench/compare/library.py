# This library through its C ABI, on addresses alone.
import ctypes
import math
import os
import pathlib
import re
import sys

from .candidate import Absent, Candidate

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROMISE_BYTES = 256  # the largest alignment worth telling the selector about


class Library:
    """libsoftmax.so by way of the Python package's ctypes declarations."""

    def __init__(self, path=None):
        if path:
            os.environ["LIBSOFTMAX_PATH"] = str(path)
        package = ROOT / "bindings" / "python" / "src"
        if package.is_dir() and str(package) not in sys.path:
            sys.path.insert(0, str(package))
        from libsoftmax import _abi, _library

        self.abi, self.lib, self.check = _abi, _library.lib, _library.check
        self.path = self.lib._name
        if path and os.path.realpath(self.path) != os.path.realpath(path):
            # The package loads once: the other one would be measured in this one's name.
            raise RuntimeError(f"{self.path} is loaded, and {path} cannot be: one library a process")
        self.build_info = self.lib.softmax_build_info().decode()
        found = re.search(r"source ([^,]+),", self.build_info)
        self.source_id = found[1] if found else "unknown"
        self.handle = None

    def open(self, ordinal):
        handle = ctypes.c_void_p()
        self.check(self.lib.softmax_create(ctypes.byref(handle), ordinal))
        self.handle = handle.value

    def number(self, name):
        """An algorithm's number. Raises SoftmaxError for a name that there is not."""
        number = ctypes.c_int32()
        self.check(self.lib.softmax_algo_from_name(name.encode(), ctypes.byref(number)))
        return number.value

    def dtype(self, name):
        return getattr(self.abi, f"SOFTMAX_DTYPE_{name.upper()}")

    def describe(self, cell, flags=0, alignment=0):
        abi = self.abi
        desc = abi.softmax_desc_t()
        op = abi.SOFTMAX_OP_LOGSOFTMAX if cell.op == "log" else abi.SOFTMAX_OP_SOFTMAX
        self.check(self.lib.softmax_desc_init(ctypes.byref(desc), ctypes.sizeof(desc), op,
                                              self.dtype(cell.x_dtype), cell.M, cell.N))
        desc.y_dtype = self.dtype(cell.y_dtype)
        desc.flags = flags
        desc.alignment = alignment
        return desc

    def select(self, algo, desc):
        choice = self.abi.softmax_choice_t()
        choice.struct_size = ctypes.sizeof(choice)
        self.check(self.lib.softmax_select(self.handle, algo, ctypes.byref(desc),
                                           ctypes.byref(choice)))
        return choice


def promised_alignment(cell, x_address, y_address, x_size, y_size):
    """The largest power of two that both buffers and each of their rows are aligned to."""
    common = math.gcd(x_address, y_address, cell.N * x_size, cell.N * y_size, PROMISE_BYTES)
    return common & -common


class Ours(Candidate):
    """AUTO or one algorithm; adaptive asks for the choice that may look at M."""

    in_place = True

    def __init__(self, library, device, algo="auto", adaptive=False):
        self.name = f"ours:{algo}" + (":adaptive" if adaptive else "")
        self._library = library
        self._stream = device.stream_address
        self._algo = library.number(algo)
        self._explicit = algo != "auto"
        self._flags = library.abi.SOFTMAX_FLAG_M_ADAPTIVE if adaptive else 0

    def _desc(self, cell, x, y):
        return self._library.describe(cell, self._flags, promised_alignment(
            cell, x.data_ptr(), y.data_ptr(), x.element_size(), y.element_size()))

    def bind(self, cell, x, y):
        abi, lib, check = self._library.abi, self._library.lib, self._library.check
        handle, algo, stream = self._library.handle, self._algo, self._stream
        desc = self._desc(cell, x, y)
        if self._explicit:  # what an algorithm declines is no failure of the library's
            choice = abi.softmax_choice_t()
            choice.struct_size = ctypes.sizeof(choice)
            status = lib.softmax_select(handle, algo, ctypes.byref(desc), ctypes.byref(choice))
            if status // 1000 == abi.SOFTMAX_STATUS_NOT_SUPPORTED // 1000:
                text = ctypes.create_string_buffer(256)
                lib.softmax_last_error(text, len(text))
                raise Absent(text.value.decode(errors="replace"))
            check(status)
        if self._flags:
            args = abi.softmax_args_t()
            args.struct_size = ctypes.sizeof(args)
            args.x, args.y = x.data_ptr(), y.data_ptr()
            desc.alignment = 0  # the call sees the pointers itself
            return lambda: check(lib.softmax_execute(handle, algo, ctypes.byref(desc),
                                                     ctypes.byref(args), stream))
        forward = lib.logsoftmax_forward_to if cell.op == "log" else lib.softmax_forward_to
        x_dtype, y_dtype = self._library.dtype(cell.x_dtype), self._library.dtype(cell.y_dtype)
        source, target = x.data_ptr(), y.data_ptr()
        return lambda: check(forward(handle, algo, source, x_dtype, target, y_dtype, cell.M, cell.N,
                                     stream))

    def facts(self, cell, x, y):
        choice = self._library.select(self._algo, self._desc(cell, x, y))
        name = self._library.lib.softmax_algo_name(choice.algo)
        return {"algo": name.decode() if name else str(choice.algo),
                "kernel": choice.kernel.decode(), "rows_per_block": choice.rows_per_block,
                "threads": choice.threads, "cluster": choice.cluster, "stages": choice.stages}
