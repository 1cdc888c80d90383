# DRAM bytes for each useful byte, counted by Nsight Compute over launches in a child process.
import csv
import json
import shutil
import subprocess
import sys

from . import tables
from .grids import Cell

METRICS = {"dram_read_bytes": "dram__bytes_read.sum", "dram_write_bytes": "dram__bytes_write.sum"}
# A kernel of PyTorch's that is launched before each cell's calls: what follows it, up to the next,
# is the cell's. A call may be several kernels, and their names are the library's own affair.
MARK = "spin_kernel"
FLUSH_BYTES = 512 << 20
# What ncu prints where the machine gives no access to the counters at all.
REFUSALS = ("ERR_NVGPUCTRPERM", "LibraryNotLoaded")
CELLS = tuple(Cell("dram", "cold", dtype, max(1, (1 << 27) // n), n)
              for n in (64, 100, 1000, 1024, 4096, 8192, 32768, 50257, 128256, 262144, 1 << 20,
                        1 << 22, 1 << 24)
              for dtype in ("f32", "bf16")) + tuple(
                  Cell("dram", "cold", "bf16", m, n) for m in (16, 64) for n in (128256, 1 << 20))


class NotCounted(Exception):
    """There are no counters to be had; the message says why."""


def command(script, table_path, child_arguments):
    """ncu over this program's child. Caches are left as they are: the child flushes them itself,
    because ncu would do so between the kernels of one call too."""
    return ["ncu", "--clock-control", "none", "--cache-control", "none", "--profile-from-start",
            "off", "--csv", "--page", "raw", "--print-units", "base", "--metrics",
            ",".join(METRICS.values()), "--log-file", str(table_path), sys.executable, str(script),
            *child_arguments]


def child(library, device, buffers, cells, plan_path, flags=0):
    """Launches each cell once between the profiler's start and stop, behind a mark."""
    import torch

    from .library import Ours

    ours = Ours(library, device, adaptive=bool(flags))
    flush = torch.ones(FLUSH_BYTES // 4, device="cuda")
    runtime = torch.cuda.cudart()
    with device.current(), open(plan_path, "w", encoding="utf-8") as plan:
        for cell in cells:
            x, y = buffers.inputs(cell)[0], buffers.outputs(cell)[0]
            launch = ours.bind(cell, x, y)
            launch()
            # Reading evicts what the L2 holds without leaving anything to be written back later.
            flush.sum()
            torch.cuda.synchronize()
            runtime.cudaProfilerStart()
            torch.cuda._sleep(1000)
            launch()
            torch.cuda.synchronize()
            runtime.cudaProfilerStop()
            print(json.dumps({"dtype": cell.dtype, "M": cell.M, "N": cell.N,
                              "useful_bytes": cell.bytes, **ours.facts(cell, x, y)}), file=plan)


def parse(text, plan):
    """One record a cell, from ncu's table and the child's plan. Raises ValueError where they do
    not fit each other."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        raise ValueError("ncu wrote no table")
    rows = [r for r in csv.DictReader(lines[first:]) if (r.get("ID") or "").strip().isdigit()]
    groups = []
    for row in sorted(rows, key=lambda r: int(r["ID"])):
        if MARK in row["Kernel Name"]:
            groups.append([])
        elif not groups:
            raise ValueError(f"{row['Kernel Name']} came before the first mark")
        else:
            groups[-1].append(row)
    if len(groups) != len(plan):
        raise ValueError(f"{len(groups)} cells were counted, {len(plan)} launched")
    records = []
    for cell, kernels in zip(plan, groups):
        if not kernels:
            raise ValueError(f"no kernel was counted for {cell['dtype']} {cell['M']}x{cell['N']}")
        record = {**cell, "kernels": len(kernels)}
        for quantity, metric in METRICS.items():
            record[quantity] = sum(float(k[metric].replace(",", "")) for k in kernels)
        half = cell["useful_bytes"]
        record["dram_per_useful_byte"] = round(
            (record["dram_read_bytes"] + record["dram_write_bytes"]) / half, 4)
        records.append(record)
    return records


def count(script, folder, child_arguments, limit_seconds):
    """Runs ncu over the child; returns the records. Raises NotCounted."""
    if shutil.which("ncu") is None:
        raise NotCounted("ncu is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    table_path, plan_path = folder / "dram.csv", folder / "dram_plan.jsonl"
    for path in (table_path, plan_path):
        path.unlink(missing_ok=True)
    try:
        done = subprocess.run(
            command(script, table_path, [*child_arguments, "--dram-plan", str(plan_path)]),
            capture_output=True, text=True, timeout=limit_seconds, check=False)
    except subprocess.TimeoutExpired:
        raise NotCounted(f"ncu took more than {limit_seconds:.0f} s") from None
    table = table_path.read_text(encoding="utf-8", errors="replace") if table_path.is_file() else ""
    output = done.stdout + done.stderr + table
    refused = next((text for text in REFUSALS if text in output), None)
    if refused:
        raise NotCounted(f"this machine lets no one count: {refused}")
    if done.returncode != 0 or not plan_path.is_file():
        last = (output.strip().splitlines() or ["no output"])[-1]
        raise NotCounted(f"exit code {done.returncode}: {last}")
    plan = [json.loads(line) for line in plan_path.read_text(encoding="utf-8").splitlines()]
    try:
        return parse(table, plan)
    except (ValueError, KeyError) as error:
        raise NotCounted(f"unreadable: {error}") from None


HEADER = ["type", "M", "N", "kernel", "read", "written", "DRAM bytes a useful byte"]


def rows(records):
    return [[r["dtype"], str(r["M"]), str(r["N"]), r.get("algo", tables.NONE),
             f"{r['dram_read_bytes'] / r['useful_bytes']:.3f}",
             f"{r['dram_write_bytes'] / r['useful_bytes']:.3f}",
             f"{r['dram_per_useful_byte']:.3f}"] for r in records]
