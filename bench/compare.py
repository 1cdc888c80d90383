#!/usr/bin/env python3
# This library beside its peers: the same buffers, one process, outputs checked before timing.
"""Measures libsoftmax.so through its C ABI beside PyTorch, torch.compile, cuDNN, a Triton kernel
and, where installed, QuACK, Liger and FlashInfer. bench/README.md says how.

  compare.py --library build/src/libsoftmax.so --grid quick
  compare.py --library ... --grid cold --grid hot --limit 300
  compare.py --plot results/<card>/compare.jsonl --out-dir results/<card>    (no GPU)
  compare.py --table results/<card>/compare.jsonl                            (no GPU)
  compare.py --library ... --dram                                            (Nsight Compute)
"""
import argparse
import json
import pathlib
import site
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))

from compare import grids, peers, records, tables  # noqa: E402

QUICK_LIMIT_SECONDS = 60.0
FLASHINFER_WAIT_SECONDS = 90.0


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(prog="compare.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=pathlib.Path, metavar="FILE",
                        help="libsoftmax.so (LIBSOFTMAX_PATH unless given)")
    parser.add_argument("--grid", action="append", default=[], choices=sorted(grids.GRIDS),
                        help="what to measure (may be repeated); quick unless given")
    parser.add_argument("--algo", action="append", default=[], metavar="NAME",
                        help="measure this algorithm too (may be repeated)")
    parser.add_argument("--adaptive", action="store_true",
                        help="measure each of ours with SOFTMAX_FLAG_M_ADAPTIVE too")
    parser.add_argument("--peers", metavar="NAMES", default=",".join(peers.NAMES),
                        help="comma-separated, or none (%(default)s)")
    parser.add_argument("--peers-from", type=pathlib.Path, metavar="DIR",
                        help="folder of packages, to be found after the installed ones "
                             "(scripts/peers makes one)")
    parser.add_argument("--all-compile", action="store_true",
                        help="torch.compile and QuACK at every row length: minutes of compilation")
    parser.add_argument("--flashinfer-wait", type=float, metavar="SECONDS",
                        help="how long after the start its build may be waited for (90; quick: 0)")
    parser.add_argument("--dtype", action="append", default=[], choices=("f32", "f16", "bf16"),
                        help="these input types alone (may be repeated)")
    parser.add_argument("--n", action="append", default=[], type=int, metavar="N",
                        help="these row lengths alone, also where the grid has them not")
    parser.add_argument("--m", action="append", default=[], type=int, metavar="M",
                        help="these row counts alone")
    parser.add_argument("--offset", type=int, default=None, metavar="ELEMENTS",
                        help="move the buffers of every cell off an aligned address")
    parser.add_argument("--in-place", action="store_true",
                        help="every cell in place; the restoring copy's own time is taken off")
    parser.add_argument("--around", type=int, nargs="+", default=[], metavar="N",
                        help="limits around which the cliff sweep is dense")
    parser.add_argument("--limit", type=float, metavar="SECONDS",
                        help="stop before the next cell once this much has passed")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE",
                        help="JSON lines are appended there (bench/results/<card>/compare.jsonl)")
    parser.add_argument("--fresh", action="store_true", help="start the file anew")
    parser.add_argument("--plot", type=pathlib.Path, metavar="FILE",
                        help="only draw a file's plots")
    parser.add_argument("--out-dir", type=pathlib.Path, metavar="DIR",
                        help="where plots go (beside the file)")
    parser.add_argument("--table", type=pathlib.Path, metavar="FILE",
                        help="only print a file's tables in Markdown")
    parser.add_argument("--general", action="store_true",
                        help="the general call beside PyTorch: axes, masks, backward, ...")
    parser.add_argument("--work", action="append", default=[], metavar="WORD",
                        help="with --general: works with this in their names (may be repeated)")
    parser.add_argument("--dram", action="store_true",
                        help="count DRAM bytes for each useful byte with Nsight Compute")
    parser.add_argument("--dram-plan", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    arguments.peers = [] if arguments.peers == "none" else \
        [name for name in arguments.peers.split(",") if name]
    unknown = [name for name in arguments.peers if name not in peers.NAMES]
    if unknown:
        parser.error(f"no peer is called {unknown[0]}; there are " + ", ".join(peers.NAMES))
    if any(value < 1 for value in (*arguments.n, *arguments.m, *arguments.around)):
        parser.error("--n, --m and --around take positive numbers")
    if arguments.offset is not None and arguments.offset not in range(0, 128):
        parser.error("--offset takes 0 to 127")
    arguments.grid = arguments.grid or ["quick"]
    if arguments.limit is None and arguments.grid == ["quick"]:
        arguments.limit = QUICK_LIMIT_SECONDS
    if arguments.flashinfer_wait is None:
        arguments.flashinfer_wait = 0.0 if arguments.grid == ["quick"] else FLASHINFER_WAIT_SECONDS
    return arguments


def chosen_cells(arguments):
    changes = {}
    if arguments.offset is not None:
        changes["offset"] = arguments.offset
    if arguments.in_place:
        changes["in_place"] = True
    cells = []
    for name in arguments.grid:
        cells += grids.cells(name, arguments.around, arguments.dtype, arguments.n, arguments.m,
                             **changes)
    return list(dict.fromkeys(cells))


def stop(message):
    print(f"compare: {message}", file=sys.stderr)
    sys.exit(2)


def say(text):
    print(text, flush=True)


def add_packages(path):
    """Makes carried packages importable, behind those that are installed: a folder of packages, or
    one of archives as scripts/peers makes them."""
    if not path.is_dir():
        stop(f"{path} is not a folder")
    archives = sorted(path.glob("*.tar.xz"))
    if archives:
        path = pathlib.Path(tempfile.mkdtemp(prefix="softmax-peers-"))
        for archive in archives:
            with tarfile.open(archive) as packed:
                packed.extractall(path, filter="data")
    site.addsitedir(str(path))


def open_library(arguments):
    from compare.library import Library

    try:
        return Library(arguments.library)
    except ImportError as error:
        stop(str(error))


def open_device():
    try:
        from compare.device import Device
        return Device()
    except (ImportError, RuntimeError) as error:
        stop(f"no GPU to measure on: {error}")


def make_candidates(arguments, library, device):
    from compare.library import Ours

    algos = ["auto", *arguments.algo]
    ours = [Ours(library, device, algo) for algo in algos]
    if arguments.adaptive:
        ours += [Ours(library, device, algo, adaptive=True) for algo in algos]
    return ours + [peers.make(name, device, arguments.all_compile, arguments.flashinfer_wait)
                   for name in arguments.peers]


def prepare(candidates, cells, buffers, device):
    """Compilation that can be done ahead. What goes wrong shows again where it is measured."""
    for candidate in candidates:
        wanted = [c for c in cells if c.grid != "cliffs"]
        try:
            with device.current():
                candidate.prepare(wanted, buffers)
        except Exception as error:  # pylint: disable=broad-except
            say(f"{candidate.name}: compiling ahead: {type(error).__name__}: {error}")


def measure(arguments):
    from compare.session import Clock, Session, Watchdog

    clock = Clock(arguments.limit)
    cells = chosen_cells(arguments)
    if not cells:
        stop("no cell is left of the grid")
    library, device = open_library(arguments), open_device()
    library.open(device.ordinal)
    from compare.check import Checker
    from compare.copies import Copies
    from compare.device import Buffers

    say(f"{device.card}\n{library.build_info}\n{len(cells)} cells")
    candidates = make_candidates(arguments, library, device)
    out = arguments.out or \
        HERE / "results" / records.folder_name(device.card) / "compare.jsonl"
    run = {"date": tables.now(), "card": device.card, "driver": device.driver(),
           "source_id": library.source_id}
    try:
        with device.current():
            buffers = Buffers(cells, device.l2_bytes)
        prepare(candidates, cells, buffers, device)
        say(f"ready after {clock.spent:.0f} s")
        writer = records.Writer(out, run, arguments.fresh)
        watchdog, copies = Watchdog(), Copies(device, say)
        # The cliff sweep holds this library against itself.
        alone = [c for c in candidates if records.is_ours(c.name)]
        lines, left = [], []
        for cliffs, own in ((False, candidates), (True, alone)):
            session = Session(device, buffers, copies, Checker, own, writer.write, say, clock,
                              watchdog)
            left += session.run([c for c in cells if (c.grid == "cliffs") == cliffs])
            lines += session.lines
        writer.close()
    finally:
        for candidate in candidates:
            candidate.close()
    say("")
    if lines:
        say(tables.report([{**line, **run} for line in lines]))
    if left:
        say(f"\nleft out, {len(left)} cells: " + "; ".join(str(cell) for cell in left[:12]) +
            ("; ..." if len(left) > 12 else ""))
    failed = [r for r in lines if records.is_ours(r["candidate"]) and r["status"] == "failed"]
    say(f"wrote {out}; {clock.spent:.0f} s" + (f"; {len(failed)} of ours FAILED" if failed else ""))
    return 1 if failed or not lines else 0


def measure_general(arguments):
    """The works of compare/general.py, a line each as they come."""
    from compare.copies import Copies
    from compare.general import CANDIDATES, General
    from compare.session import Clock

    clock = Clock(arguments.limit)
    library, device = open_library(arguments), open_device()
    library.open(device.ordinal)
    out = arguments.out or \
        HERE / "results" / records.folder_name(device.card) / "general.jsonl"
    run = {"date": tables.now(), "card": device.card, "driver": device.driver(),
           "source_id": library.source_id}
    say(f"{device.card}\n{library.build_info}")
    writer = records.Writer(out, run, arguments.fresh)
    failed = []

    def write(line):
        if line["status"] == "failed" and line["candidate"] == "ours":
            failed.append(line)
        writer.write(line)

    peers_wanted = [name for name in CANDIDATES[1:] if name in arguments.peers]
    with device.current():
        copies = Copies(device, say)
    general = General(device, library, copies, say, write, (arguments.algo or ["auto"])[0])
    general.run(["ours", *peers_wanted], arguments.dtype or ["f32", "bf16"], arguments.work, clock)
    writer.close()
    say(f"wrote {out}; {clock.spent:.0f} s" + (f"; {len(failed)} of ours FAILED" if failed else ""))
    return 1 if failed else 0


def dram_cells(arguments):
    from compare import dram

    return [c for c in dram.CELLS if (not arguments.n or c.N in arguments.n)
            and (not arguments.m or c.M in arguments.m)
            and (not arguments.dtype or c.x_dtype in arguments.dtype)]


def dram_child(arguments):
    from compare import dram
    from compare.device import Buffers

    library, device = open_library(arguments), open_device()
    library.open(device.ordinal)
    cells = dram_cells(arguments)
    with device.current():
        buffers = Buffers(cells, device.l2_bytes)
    dram.child(library, device, buffers, cells, arguments.dram_plan, int(arguments.adaptive))
    return 0


def count_dram(arguments):
    from compare import dram

    library, device = open_library(arguments), open_device()
    if not dram_cells(arguments):
        stop("no cell is left of the list")
    # A library that the system's loader found by its name is found by the child in the same way.
    words = ["--library", library.path] if pathlib.Path(library.path).is_file() else []
    for option in ("n", "m", "dtype"):
        for value in getattr(arguments, option):
            words += [f"--{option}", str(value)]
    words += ["--adaptive"] if arguments.adaptive else []
    out = arguments.out or HERE / "results" / records.folder_name(device.card) / "dram.jsonl"
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = dram.count(pathlib.Path(__file__).resolve(), pathlib.Path(folder), words,
                               arguments.limit or 240.0)
    except dram.NotCounted as reason:
        say(f"DRAM bytes were not counted: {reason}")
        return 1
    run = {"date": tables.now(), "card": device.card, "driver": device.driver(),
           "source_id": library.source_id}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("".join(json.dumps({**record, **run}, separators=(",", ":")) + "\n"
                           for record in found), encoding="utf-8")
    say(tables.plain(dram.HEADER, dram.rows(found)))
    say(f"wrote {out}")
    return 0


def print_tables(path):
    """compare.jsonl or dram.jsonl as Markdown."""
    lines = records.read(path)
    if not lines:
        stop(f"{path} holds no result")
    if "work" in lines[0]:
        print(tables.general_page(lines), end="")
    elif "candidate" in lines[0]:
        print(tables.page(lines), end="")
    else:
        from compare import dram

        print(tables.caption(lines) + "\n\n" + tables.markdown(dram.HEADER, dram.rows(lines)))


def main():
    arguments = parse_arguments()
    try:
        if arguments.table:
            print_tables(arguments.table)
            return 0
        if arguments.plot:
            from compare import plots

            for path in plots.draw(records.read(arguments.plot),
                                   arguments.out_dir or arguments.plot.parent):
                print(f"wrote {path}")
            return 0
    except (OSError, ValueError, ImportError) as error:
        stop(str(error))
    if arguments.peers_from:
        add_packages(arguments.peers_from)
    if arguments.dram_plan:
        return dram_child(arguments)
    if arguments.general:
        return measure_general(arguments)
    return count_dram(arguments) if arguments.dram else measure(arguments)


if __name__ == "__main__":
    sys.exit(main())
