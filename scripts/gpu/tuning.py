# From timed cells to tuning rows: what AUTO takes at which N, as lines for src/select/tuning.cc.
import dataclasses
import json
import pathlib
import re
import textwrap

import tables

STEMS = tuple(a for a in tables.ALGOS if a != "auto")
# A stem keeps its range unless another is better by more than this: less is noise from run to run.
HYSTERESIS = 0.015
ELEMENT_BYTES = {"f32": 4, "bf16": 2, "f64": 8}
PACK_BYTES = 16
SMALL_M = (1, 16, 64)
COLUMNS = 100  # of a source line


def is_ragged(words):
    """As in src/core/held_rows.h."""
    lanes = packs = 1
    while lanes < 8 and lanes < words:
        lanes *= 2
    while packs < 4 and lanes * packs < words:
        packs *= 2
    while lanes < 32 and lanes * packs < words:
        lanes *= 2
    while lanes * packs < words:
        packs *= 2
    room = lanes * packs
    return packs <= 8 and (words < room if words < 8 else 10 * words < 7 * room)


@dataclasses.dataclass(frozen=True)
class Table:
    name: str
    dtype: str
    parity: str  # rows that are no multiple of 16 bytes: "odd"; others: "ragged" or "whole"
    stems: tuple = STEMS

    def has(self, dtype, cols):
        row_bytes = cols * ELEMENT_BYTES[dtype]
        parity = "odd" if row_bytes % PACK_BYTES else "whole"
        if parity == "whole" and self.stems is STEMS and is_ragged(row_bytes // PACK_BYTES):
            parity = "ragged"  # to the ladder as any others
        return (dtype, parity) == (self.dtype, self.parity)

    def same_order(self, a, b, classes):
        """Whether two stems add up in one order. WARP and TILE do where rows are odd."""
        return classes[a] == classes[b] and (self.parity == "odd" or {a, b} != {"warp", "tile"})


_KINDS = (("F32", "f32", "whole"), ("F32Odd", "f32", "odd"), ("Half", "bf16", "whole"),
          ("HalfOdd", "bf16", "odd"), ("F64", "f64", "whole"), ("F64Odd", "f64", "odd"))
_RAGGED = (("F32Ragged", "f32", "ragged"), ("HalfRagged", "bf16", "ragged"),
           ("F64Ragged", "f64", "ragged"))
TABLES = tuple(Table("kSm90" + name, dtype, parity) for name, dtype, parity in _KINDS + _RAGGED)
LADDER_TABLES = tuple(Table("kLadder" + name, dtype, parity, tables.LADDER)
                      for name, dtype, parity in _KINDS[:-1])  # its float64 rows are one table


def order_classes(root: pathlib.Path):
    """Stem -> order class, as src/select/order.h has them."""
    text = (root / "src/select/order.h").read_text(encoding="utf-8")
    found = re.findall(r"\{SOFTMAX_ALGO_(\w+), (\d+)\}", text)
    if not found:
        raise ValueError("no order classes in src/select/order.h")
    return {name.lower(): int(number) for name, number in found}


class Timings:
    """Microseconds and share of copy speed of the cells that were timed."""

    def __init__(self, lines):
        self.run = next(line for line in lines if line["record"] == "run")
        self.cold, self.hot = {}, {}  # {(dtype, N)} and {(dtype, N, M)} -> {algo: cell}
        for cell in lines:
            if cell["record"] != "cell" or cell["status"] != "ok":
                continue
            if cell["mode"] == "cold":
                key, grid = (cell["dtype"], cell["N"]), self.cold
            else:
                key, grid = (cell["dtype"], cell["N"], cell["M"]), self.hot
            grid.setdefault(key, {})[cell["algo"]] = cell

    def lengths(self, table):
        return sorted(n for dtype, n in self.cold
                      if table.has(dtype, n) and self.cold_us(table, n))

    def cold_us(self, table, n):
        cells = self.cold[table.dtype, n]
        return {algo: cells[algo]["us"] for algo in table.stems if algo in cells}

    def hot_us(self, table, n, m):
        cells = self.hot.get((table.dtype, n, m), {})
        return {algo: cells[algo]["us"] for algo in table.stems if algo in cells}

    def small_rows(self, table, n):
        return sorted(m for dtype, cols, m in self.hot if (dtype, cols) == (table.dtype, n))


def is_better(us, than_us):
    return us < than_us * (1 - HYSTERESIS)


def choose(us_at, lengths):
    """N -> stem. The stem of the last N stays until another beats it by more than noise."""
    chosen, current = {}, None
    for n in lengths:
        times = us_at(n)
        best = min(times, key=times.get)
        if current not in times or is_better(times[best], times[current]):
            current = best
        chosen[n] = current
    return chosen


def pair_at(timings, table, n, taken, candidates):
    """The (rows, stem) that beats taken(m) at every measured number of rows up to `rows`: the one
    that does so for most rows, of equals the fastest. None where no candidate does."""
    best = None
    for algo in candidates:
        rows, total_us = 0, 0.0
        for m in timings.small_rows(table, n):
            times = timings.hot_us(table, n, m)
            if algo not in times or taken(m) not in times or not is_better(
                    times[algo], times[taken(m)]):
                break
            rows, total_us = m, total_us + times[algo]
        if rows and (best is None or (-rows, total_us) < best[0]):
            best = ((-rows, total_us), (rows, algo))
    return best and best[1]


def pairs(timings, table, lengths, chosen, taken, candidates):
    """N -> (rows, stem) or None. An N at which few rows were not timed has that of the N before,
    where the same stem is chosen; and a pair stays while it is as good as the best."""
    result, previous, previous_n = {}, None, None
    for n in lengths:
        same = previous_n is not None and chosen[previous_n] == chosen[n]
        if timings.small_rows(table, n):
            allowed = candidates(n)
            pair = pair_at(timings, table, n, lambda m: taken(n, m), allowed)
            if same and pair and previous and previous != pair and previous[1] in allowed:
                old = pair_at(timings, table, n, lambda m: taken(n, m), [previous[1]])
                if old and old[0] == pair[0] and not any(
                        is_better(timings.hot_us(table, n, m)[pair[1]],
                                  timings.hot_us(table, n, m)[old[1]])
                        for m in timings.small_rows(table, n) if m <= pair[0]):
                    pair = old
        else:
            pair = previous if same else None
        result[n] = previous = pair
        previous_n = n
    return result


@dataclasses.dataclass
class Row:
    algo: str
    few: tuple | None
    adaptive: tuple | None
    lengths: list  # the measured N of its range
    is_last: bool = False


def rows_of(timings, table, classes):
    """The tuning rows of one table, in rising order of N."""
    lengths = timings.lengths(table)
    chosen = choose(lambda n: timings.cold_us(table, n), lengths)
    few = pairs(timings, table, lengths, chosen, lambda n, m: chosen[n],
                lambda n: [a for a in table.stems
                           if a != chosen[n] and table.same_order(a, chosen[n], classes)])

    def without_flag(n, m):
        return few[n][1] if few[n] and m <= few[n][0] else chosen[n]

    adaptive = pairs(timings, table, lengths, chosen, without_flag, lambda n: table.stems)
    rows = []
    for n in lengths:
        key = (chosen[n], few[n], adaptive[n])
        if rows and (rows[-1].algo, rows[-1].few, rows[-1].adaptive) == key:
            rows[-1].lengths.append(n)
        else:
            rows.append(Row(*key, [n]))
    if rows:
        rows[-1].is_last = True
    return rows


def changes(rows):
    """The pairs of neighbouring measured N between which the stem changes."""
    return [(a.lengths[-1], b.lengths[0]) for a, b in zip(rows, rows[1:]) if a.algo != b.algo]


def shown(lengths):
    """First, middle and last."""
    return sorted({lengths[0], lengths[len(lengths) // 2], lengths[-1]})


def comment_of(timings, table, row):
    """Scores of the row's stem, and of the two that came nearest."""
    at = shown(row.lengths)
    cells = [timings.cold[table.dtype, n] for n in at]

    def ratio(algo, i):
        return f"{cells[i][algo]['ratio']:.2f}" if algo in cells[i] else "-"

    def mean(algo):
        return sum(c[algo]["ratio"] for c in cells if algo in c) / len(cells)

    text = ", ".join(f"{n}: {ratio(row.algo, i)}" for i, n in enumerate(at))
    lost = sorted((a for a in table.stems if a != row.algo and mean(a) > 0), key=mean, reverse=True)
    text += ". " + ("; ".join(
        f"{a} " + ", ".join(ratio(a, i) for i in range(len(at))) for a in lost[:2]) or
        "no other takes it")
    for label, pair in (("few rows", row.few), ("M_ADAPTIVE", row.adaptive)):
        if not pair:
            continue
        n = next(n for n in row.lengths if timings.small_rows(table, n))
        times = timings.hot_us(table, n, timings.small_rows(table, n)[0])
        text += (f". {label}, {timings.small_rows(table, n)[0]} x {n}: {pair[1]} "
                 f"{times[pair[1]]:.1f} us, {row.algo} {times[row.algo]:.1f}")
    return text


def number(value):
    if value < 2**20 or value & (value - 1):
        return str(value)
    return f"std::int64_t{{1}} << {value.bit_length() - 1}"


def name_of(algo):
    return "SOFTMAX_ALGO_" + algo.upper()


def row_text(row):
    values = ["kNoLimit" if row.is_last else number(row.lengths[-1]), name_of(row.algo)]
    if row.few or row.adaptive:
        values += [str(row.few[0]), name_of(row.few[1])] if row.few else ["0", name_of("auto")]
    if row.adaptive:
        values += [str(row.adaptive[0]), name_of(row.adaptive[1])]
    return "    {" + ", ".join(values) + "},"


def lines_of(timings, table, classes):
    rows = rows_of(timings, table, classes)
    if not rows:
        return [f"// {table.name}: not measured"]
    lines = [f"constexpr TuningRow {table.name}[] = {{"]
    for row in rows:
        lines += textwrap.wrap(comment_of(timings, table, row), COLUMNS, break_long_words=False,
                               initial_indent="    // ", subsequent_indent="    // ")
        lines.append(row_text(row))
    return lines + ["};"]


def header_of(run):
    text = (f"One {run['card']} (compute capability {run['compute_capability']}), "
            f"{run['date'][:10]}, source {run['source_id']}, scripts/tune: softmax out of place "
            "over 2^26 elements, buffers rotated past the L2, CUDA graphs, medians. Scores are copy "
            "time over softmax time at the N in the comment, the copy being the better of "
            "cudaMemcpyAsync and a 16-byte streaming kernel.")
    return textwrap.wrap(text, COLUMNS, initial_indent="// ", subsequent_indent="// ")


def text_of(timings, wanted, classes):
    """Everything to paste."""
    lines = header_of(timings.run)
    for table in wanted:
        lines += [""] + lines_of(timings, table, classes)
    return "\n".join(lines) + "\n"


def read_lines(path: pathlib.Path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
