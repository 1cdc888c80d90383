# The JSON lines of bench/results/<card>/: writing them as they come, and reading the newest.
import json
import pathlib
import re

# What tells one measurement from another; of two lines with the same values the later counts.
KEY = ("grid", "mode", "op", "dtype", "M", "N", "offset", "in_place", "candidate")
OURS = "ours"
STATUSES = ("ok", "failed", "absent")


def folder_name(card):
    return re.sub(r"[^A-Za-z0-9.-]+", "_", card)


def cell_fields(cell):
    return {"grid": cell.grid, "mode": cell.mode, "op": cell.op, "dtype": cell.dtype, "M": cell.M,
            "N": cell.N, "offset": cell.offset, "in_place": cell.in_place}


def is_ours(name):
    return name.split(":")[0] == OURS


class Writer:
    """Appends; every line is on disk before the next cell, so that a run that is cut short leaves
    what it measured."""

    def __init__(self, path: pathlib.Path, run: dict, fresh=False):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._run = run
        self._file = open(path, "w" if fresh else "a", encoding="utf-8")

    def write(self, line: dict):
        whole = {key: value for key, value in {**line, **self._run}.items() if value is not None}
        self._file.write(json.dumps(whole, separators=(",", ":")) + "\n")
        self._file.flush()

    def close(self):
        self._file.close()


def read(path: pathlib.Path):
    """Every line that is whole, in order. A line that was cut off at the file's end is left out;
    one that is broken anywhere else is an error."""
    lines = path.read_text(encoding="utf-8").split("\n")
    records = []
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            records.append(json.loads(line))
        except ValueError:
            if number < len(lines) - 1:
                raise ValueError(f"{path}:{number + 1} is not a line of JSON") from None
    return records


def newest(records):
    """The last line of every key, in the order in which the keys first came."""
    by_key = {}
    for record in records:
        by_key[tuple(record.get(key) for key in KEY)] = record
    return list(by_key.values())


class CellResults:
    """One cell's lines: ours by name, peers by name, and the copy that they were held against."""

    def __init__(self):
        self.lines = {}

    def add(self, record):
        self.lines[record["candidate"]] = record

    @property
    def any(self):
        return next(iter(self.lines.values()))

    def ok(self, name):
        record = self.lines.get(name)
        return record if record and record["status"] == "ok" else None

    @property
    def ours(self):
        return self.ok("ours:auto")

    def best_peer(self):
        peers = [r for name, r in self.lines.items() if not is_ours(name) and r["status"] == "ok"]
        return min(peers, key=lambda r: r["us"], default=None)

    def failures(self):
        return [r for r in self.lines.values() if r["status"] == "failed"]


def by_cell(records):
    """Newest lines as {cell key: CellResults}, in measured order."""
    cells = {}
    for record in newest(records):
        key = tuple(record.get(k) for k in KEY[:-1])
        cells.setdefault(key, CellResults()).add(record)
    return cells
