# Tables from measured results: Markdown for ladder.md and for the generated parts of the docs.
import json
import pathlib
import re
import sys

LADDER = ("naive", "shared", "shuffle", "vector", "online", "warp_online")
ALGOS = ("auto",) + LADDER + ("warp", "block", "tile", "cluster", "grid")
NOT_MEASURED = "*Not measured yet.*"
SECTOR_BYTES = 32

# GB/s at 8192 x 8192 f32 on an RTX 5080 (960 GB/s), as its tutorial states them.
PUBLISHED_CARD = "RTX 5080"
PUBLISHED_PEAK = 960
PUBLISHED = {"naive": 150, "shared": 820, "shuffle": 810, "vector": 820, "online": 800}


class Results:
    """What bench/results/<card>/ holds; a part that was not measured is None."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.run, self.cells, self.counters = None, None, None
        ladder = folder / "ladder.jsonl"
        if ladder.is_file():
            lines = [json.loads(line) for line in ladder.read_text(encoding="utf-8").splitlines()]
            self.run = lines[0]
            self.cells = [line for line in lines if line["record"] == "cell"]
        ncu = folder / "ncu.json"
        if ncu.is_file():
            self.counters = json.loads(ncu.read_text(encoding="utf-8"))

    def grid(self, **wanted):
        """Cells that match, as {(dtype, M, N): {algo: cell}} in measured order."""
        grid = {}
        for cell in self.cells:
            if all(cell[key] == value for key, value in wanted.items()):
                grid.setdefault((cell["dtype"], cell["M"], cell["N"]), {})[cell["algo"]] = cell
        return grid


def measured(grid):
    """The algorithms that a table has a column for: those with a figure in one of its cells."""
    return [algo for algo in ALGOS
            if any(algo in cells and cells[algo]["status"] != "declined"
                   for cells in grid.values())]


def markdown(header, rows):
    right = "|" + "|".join(["---:"] * len(header)) + "|"
    lines = ["| " + " | ".join(header) + " |", right]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def caption(run, command="scripts/gpu_check"):
    return (f"{run['card']}, driver {run['driver'] or 'unknown'}, CUDA {run['cuda_runtime']}, "
            f"{run['date'][:10]}, source `{run['source_id']}`; `{command}`.")


def number(cell, key, digits):
    if cell is None or cell["status"] in ("skipped", "declined"):
        return "–"
    if cell["status"] == "wrong":
        return "wrong"
    return f"{cell[key]:.{digits}f}"


def copy_of(cells):
    return next((c for c in cells.values() if c["status"] == "ok"), None)


def headline(results):
    """The published figure's shape: GB/s and share of copy beside the published GB/s."""
    if not results.cells:
        return NOT_MEASURED
    parts = [caption(results.run)]
    grid = results.grid(section="published")
    for (dtype, rows, cols), cells in grid.items():
        copy = copy_of(cells)
        table = []
        if copy:
            gbps = copy["GBps"] * copy["us"] / copy["copy_us"]
            table.append(["copy", f"{copy['copy_us']:.1f}", f"{gbps:.0f}", "1.00", "", "", ""])
        for algo in measured(grid):
            cell = cells.get(algo)
            published = PUBLISHED.get(algo) if (rows, cols) == (8192, 8192) else None
            table.append([
                algo, number(cell, "us", 1), number(cell, "GBps", 0), number(cell, "ratio", 2),
                number(cell, "max_ulp", 2), f"~{published}" if published else "",
                f"{published / PUBLISHED_PEAK:.2f}" if published else ""])
        parts.append(f"{rows} x {cols} {dtype}, cold:\n\n" + markdown(
            ["algorithm", "µs", "GB/s", "share of copy", "max ulp",
             f"published {PUBLISHED_CARD} GB/s", f"share of its {PUBLISHED_PEAK}"], table))
    return "\n\n".join(parts)


def sweep(results, dtype):
    """Share of copy speed at 2^27 elements, one line a row length."""
    if not results.cells:
        return NOT_MEASURED
    rows = []
    grid = results.grid(section="sweep", dtype=dtype)
    algos = measured(grid)
    for (_, _, cols), cells in grid.items():
        copy = copy_of(cells)
        gbps = f"{copy['GBps'] * copy['us'] / copy['copy_us']:.0f}" if copy else "–"
        rows.append([str(cols), gbps] + [number(cells.get(algo), "ratio", 2) for algo in algos])
    return (caption(results.run) + "\n\n" +
            markdown(["N", "copy GB/s"] + algos, rows))


def auto(results):
    """What AUTO takes and reaches by row length, types side by side."""
    if not results.cells:
        return NOT_MEASURED
    types = ("f32", "bf16")
    found = {}
    for dtype in types:
        for (_, _, cols), cells in results.grid(section="sweep", dtype=dtype).items():
            found.setdefault(cols, {})[dtype] = cells.get("auto")
    rows = []
    for cols, cells in sorted(found.items()):
        row = [str(cols)]
        for dtype in types:
            cell = cells.get(dtype)
            kernel = re.fullmatch(r"(?:log)?softmax_(\w+)_\w+", (cell or {}).get("kernel", ""))
            row += [number(cell, "ratio", 2), kernel[1].upper() if kernel else ""]
        rows.append(row)
    return (caption(results.run) + "\n\n" +
            markdown(["N"] + [title for dtype in types for title in (dtype, "by")], rows))


def hot(results):
    """Microseconds a call where one pair of buffers is used over and over."""
    if not results.cells:
        return NOT_MEASURED
    rows = []
    grid = results.grid(section="hot")
    algos = measured(grid)
    for (dtype, m, n), cells in grid.items():
        copy = copy_of(cells)
        rows.append([dtype, str(m), str(n), f"{copy['copy_us']:.1f}" if copy else "–"] +
                    [number(cells.get(algo), "us", 1) for algo in algos])
    return (caption(results.run) + "\n\n" +
            markdown(["type", "M", "N", "copy µs"] + algos, rows))


def matrices(value, launch, unit_bytes=1):
    """Bytes as multiples of the matrix: 1.00 is every element once."""
    if value is None:
        return "–"
    return f"{value * unit_bytes / (4 * launch['M'] * launch['N']):.2f}"


def counters(results):
    """The hardware counters at the published figure's shape."""
    if not results.counters:
        return NOT_MEASURED
    rows = []
    for launch in results.counters["launches"]:
        if (launch["M"], launch["N"]) != (8192, 8192):
            continue
        percent = launch.get("warps_active_percent")
        registers = launch.get("registers")
        rows.append([
            launch["algo"], f"{launch['duration_ns'] / 1000:.1f}",
            f"{launch['l2_read_sectors']:,.0f}",
            matrices(launch["l2_read_sectors"], launch, SECTOR_BYTES),
            matrices(launch["l2_write_sectors"], launch, SECTOR_BYTES),
            matrices(launch["dram_read_bytes"], launch),
            matrices(launch["dram_write_bytes"], launch),
            "–" if percent is None else f"{percent:.0f}%",
            "–" if registers is None else f"{registers:.0f}"])
    return (caption(results.counters["run"], "scripts/gpu_check --only ncu") + "\n\n" + markdown(
        ["algorithm", "µs under ncu", "L2 sectors read", "L2 read", "L2 written", "DRAM read",
         "DRAM written", "warps active", "registers"], rows))


def dram_by_length(results, key="dram_read_bytes"):
    """DRAM reads as multiples of the matrix, one line a row length at 2^27 elements."""
    if not results.counters:
        return NOT_MEASURED
    columns = ("copy",) + LADDER
    grid = {}
    for launch in results.counters["launches"]:
        if launch["M"] * launch["N"] == 2**27:
            grid.setdefault((launch["M"], launch["N"]), {})[launch["algo"]] = launch
    rows = []
    for (m, n), launches in sorted(grid.items(), key=lambda item: item[0][1]):
        rows.append([str(n), str(m), f"{4 * n / 1024:.0f} KiB"] +
                    [matrices(launches[a][key], launches[a]) if a in launches else "–"
                     for a in columns])
    return (caption(results.counters["run"], "scripts/gpu_check --only ncu") + "\n\n" +
            markdown(["N", "M", "one row"] + list(columns), rows))


def in_flight(results):
    """Rows that one launch has under way at once, and the row length at which they outgrow L2."""
    if not results.counters:
        return NOT_MEASURED
    run = results.counters["run"]
    rows = []
    for launch in results.counters["launches"]:
        if (launch["M"], launch["N"]) != (8192, 8192) or not (
                launch.get("threads") and launch.get("registers")):
            continue
        threads = launch["threads"]
        registers = -(-launch["registers"] // 8) * 8  # they are given out by the eight
        blocks = int(min(run["threads_per_multiprocessor"] // threads,
                         run["registers_per_multiprocessor"] // (registers * threads)))
        at_once = min(launch["M"], run["multiprocessors"] * blocks * launch["rows_per_block"])
        mib = at_once * launch["N"] * 4 / 2**20
        capped = at_once == launch["M"]
        outgrown = run["l2_bytes"] / (4 * run["multiprocessors"] * blocks *
                                      launch["rows_per_block"])
        rows.append([launch["algo"], f"{threads}", f"{launch['registers']:.0f}", str(blocks),
                     f"{at_once}" + (" (all)" if capped else ""), f"{mib:.0f} MiB",
                     f"{outgrown:.0f}"])
    return (caption(run, "scripts/gpu_check --only ncu") + "\n\n" + markdown(
        ["algorithm", "threads a block", "registers", "blocks a multiprocessor", "rows in flight",
         "their bytes at N = 8192", f"outgrow {run['l2_bytes'] / 2**20:.0f} MiB of L2 at N ="],
        rows))


def compared(results, file, page):
    """What bench/compare.py makes of one of its files of results."""
    path = results.folder / file
    if not path.is_file():
        return NOT_MEASURED
    bench = str(pathlib.Path(__file__).resolve().parent.parent.parent / "bench")
    if bench not in sys.path:
        sys.path.insert(0, bench)
    from compare import records
    from compare import tables as pages
    return getattr(pages, page)(records.read(path)).rstrip("\n")


BLOCKS = {
    "auto": auto,
    "compare": lambda results: compared(results, "compare.jsonl", "page"),
    "general": lambda results: compared(results, "general.jsonl", "general_page"),
    "in-flight": in_flight,
    "headline": headline,
    "counters": counters,
    "dram-reads": dram_by_length,
    "sweep-f32": lambda results: sweep(results, "f32"),
    "sweep-bf16": lambda results: sweep(results, "bf16"),
    "hot": hot,
}


def ladder_page(results):
    """The whole of ladder.md."""
    sections = (("The published figure's shape", "headline"),
                ("Counters at 8192 x 8192 f32", "counters"),
                ("DRAM reads by row length, 2^27 f32 elements", "dram-reads"),
                ("Share of copy speed, f32, 2^27 elements, cold", "sweep-f32"),
                ("Share of copy speed, bf16, 2^27 elements, cold", "sweep-bf16"),
                ("Microseconds, hot", "hot"))
    text = "# The ladder, measured\n\nWritten by scripts/gpu_check from ladder.jsonl and ncu.json.\n"
    for title, block in sections:
        text += f"\n## {title}\n\n{BLOCKS[block](results)}\n"
    return text


_BLOCK = re.compile(
    r"(<!-- generated by scripts/gpu_check: ([a-z0-9-]+) -->\n).*?(<!-- end of the generated part -->)",
    re.DOTALL)


def fill(text, results):
    """A document with its generated parts made anew. Raises KeyError for a name without a table."""
    return _BLOCK.sub(lambda m: m[1] + "\n" + BLOCKS[m[2]](results) + "\n\n" + m[3], text)
