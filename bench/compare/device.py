# The GPU as PyTorch shows it: buffers, events, graphs. Everything runs on one stream.
import subprocess

import torch

from . import timing
from .candidate import Absent

TORCH_DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
                "f64": torch.float64}
SEED = 20261130
SLOT_BYTES = 256  # where a pair of buffers begins, before the cell's own offset
HEADROOM_ELEMENTS = 1024  # for offsets, at the end of a pool
MAX_PAIRS = 64
LEAD_CYCLES = 2_000_000  # about 1 ms: the host is ahead before the first timed replay starts
KEEP_RESERVED_BYTES = 48 << 30


class Device:
    """Events, graphs and facts of the current CUDA device."""

    def __init__(self):
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no CUDA device")
        self.ordinal = torch.cuda.current_device()
        properties = torch.cuda.get_device_properties(self.ordinal)
        self.card = properties.name
        self.l2_bytes = properties.L2_cache_size
        self.multiprocessors = properties.multi_processor_count
        self.stream = torch.cuda.Stream()

    @property
    def stream_address(self):
        return self.stream.cuda_stream

    def driver(self):
        try:
            done = subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=driver_version",
                                   "--format=csv,noheader"], capture_output=True, text=True,
                                  check=True, timeout=20)
            return done.stdout.strip().splitlines()[0]
        except (OSError, subprocess.SubprocessError, IndexError):
            return "unknown"

    def current(self):
        """A context in which everything is enqueued on this device's stream."""
        return torch.cuda.stream(self.stream)

    def synchronize(self):
        torch.cuda.synchronize()

    def alive(self):
        """False once an error has taken the context down, after which nothing can be measured."""
        try:
            torch.cuda.synchronize()
            torch.ones(1, device="cuda").item()
            return True
        except Exception:  # pylint: disable=broad-except
            return False

    def tidy(self):
        """Gives memory of freed graphs back once there is a lot of it."""
        if torch.cuda.memory_reserved() > KEEP_RESERVED_BYTES:
            torch.cuda.empty_cache()

    def estimate_us(self, launch, calls=2):
        """A rough time of one call, launch overhead included."""
        launch()
        begin, end = self._events(2)
        begin.record()
        for _ in range(calls):
            launch()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1000 / calls

    def single_us(self, launches, count):
        """Times of calls one by one, for calls so long that a graph adds nothing."""
        times = []
        for i in range(count):
            begin, end = self._events(2)
            begin.record()
            launches[i % len(launches)]()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1000)
        return times

    def graph_us(self, launches, calls, replays, confirm=None):
        """Times of whole replays of a graph of `calls` calls that go round over `launches`.

        `confirm` is (spoil, right) of the first call's output: work that went to another stream
        than the captured one would leave a graph without it, and a very short time."""
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        # capture_begin itself rather than torch.cuda.graph: that one empties the allocator's
        # cache every time, which costs more than a short cell.
        graph.capture_begin(capture_error_mode="thread_local")
        failed = True
        try:
            first = launches[0]()  # kept, so that no later call gets the same memory for its output
            for i in range(1, calls):
                launches[i % len(launches)]()
            failed = False
        finally:
            try:
                graph.capture_end()
            except Exception:  # pylint: disable=broad-except
                if not failed:
                    raise
        graph.replay()
        if confirm:
            spoil, right = confirm
            spoil(first)
            graph.replay()
            if not right(first):
                raise Absent("a replayed graph of its calls does not compute the output")
        graph.replay()
        events = [self._events(2) for _ in range(replays)]
        torch.cuda._sleep(LEAD_CYCLES)
        for begin, end in events:
            begin.record()
            graph.replay()
            end.record()
        torch.cuda.synchronize()
        times = [begin.elapsed_time(end) * 1000 for begin, end in events]
        graph.reset()
        return times

    def time(self, mode, launches, confirm=None):
        """The summary of one candidate, by the protocol."""
        estimate = self.estimate_us(launches[0])
        plan = timing.plan(mode, estimate, len(launches))
        if plan.replays == 0:
            times = self.single_us(launches, timing.SINGLE_CALLS)
        else:
            times = self.graph_us(launches, plan.calls, plan.replays, confirm)
        return {**timing.summary(times, plan.calls), "calls": plan.calls, "replays": plan.replays}

    def quick_us(self, mode, launches):
        """One call's time from a few replays: enough to choose between variants of a kernel."""
        plan = timing.plan(mode, self.estimate_us(launches[0]), len(launches))
        if plan.replays == 0:
            return min(self.single_us(launches, 1))
        return min(self.graph_us(launches, plan.calls, 3)) / plan.calls

    @staticmethod
    def _events(count):
        return [torch.cuda.Event(enable_timing=True) for _ in range(count)]


class Buffers:
    """One pool of inputs a type, filled once, and one pool of output bytes; cells get views."""

    def __init__(self, cells, l2_bytes, where="cuda"):
        self._l2_bytes = l2_bytes
        most = {}
        output_bytes = scratch_bytes = 0
        for cell in cells:
            count = self.pairs(cell)
            slot = self._slot(cell, cell.x_dtype) * count
            most[cell.x_dtype] = max(most.get(cell.x_dtype, 0), slot)
            y_size = TORCH_DTYPES[cell.y_dtype].itemsize
            output_bytes = max(output_bytes, self._slot(cell, cell.y_dtype) * count * y_size)
            if cell.x_dtype != cell.y_dtype:
                step = -(-(cell.bytes // 2) // SLOT_BYTES) * SLOT_BYTES
                scratch_bytes = max(scratch_bytes, step * count)
        generator = torch.Generator(device=where).manual_seed(SEED)
        self._inputs = {
            dtype: torch.randn(elements + HEADROOM_ELEMENTS, generator=generator, device=where,
                               dtype=TORCH_DTYPES[dtype])
            for dtype, elements in most.items()}
        self._output = torch.empty(output_bytes + 8 * HEADROOM_ELEMENTS, device=where,
                                   dtype=torch.uint8)
        # Mixed types move as many bytes as a copy of neither buffer does: that copy has its own.
        self._scratch = torch.zeros(2 * scratch_bytes, device=where, dtype=torch.uint8)

    def pairs(self, cell):
        return min(MAX_PAIRS, timing.pairs_needed(cell.mode, cell.bytes, self._l2_bytes))

    @staticmethod
    def _slot(cell, dtype):
        """Elements from one slot to the next."""
        unit = SLOT_BYTES // TORCH_DTYPES[dtype].itemsize
        return -(-(cell.elements + cell.offset) // unit) * unit

    def _views(self, pool, cell, dtype):
        step = self._slot(cell, dtype)
        return [pool[i * step + cell.offset:i * step + cell.offset + cell.elements]
                .view(cell.M, cell.N) for i in range(self.pairs(cell))]

    def inputs(self, cell):
        return self._views(self._inputs[cell.x_dtype], cell, cell.x_dtype)

    def outputs(self, cell):
        dtype = TORCH_DTYPES[cell.y_dtype]
        whole = self._output[:self._output.numel() // 8 * 8].view(dtype)
        return self._views(whole, cell, cell.y_dtype)

    def copy_pairs(self, cell):
        """Pairs of byte buffers whose copy moves what the cell moves. They are the cell's own,
        from their aligned start on, wherever input and output are equally long."""
        count, half = self.pairs(cell), cell.bytes // 2
        if cell.x_dtype != cell.y_dtype:
            middle = self._scratch.numel() // 2
            step = -(-half // SLOT_BYTES) * SLOT_BYTES
            return [(self._scratch[i * step:i * step + half],
                     self._scratch[middle + i * step:middle + i * step + half])
                    for i in range(count)]
        source = self._inputs[cell.x_dtype].view(torch.uint8)
        step = self._slot(cell, cell.x_dtype) * TORCH_DTYPES[cell.x_dtype].itemsize
        return [(source[i * step:i * step + half], self._output[i * step:i * step + half])
                for i in range(count)]
