# Tables of the results: plain ones for the terminal, Markdown ones for docs/performance.md.
import datetime

from . import records, targets

CLIFF = 1.10  # going from N to N + 1 may cost this much and no more
WORST_STEPS = 8
NONE = "–"


def _share(record):
    return f"{record['share']:.3f}" if record else NONE


def verdict(cell):
    """(met, words) of a cell; met is None where ours was not measured."""
    ours = cell.ours
    if ours is None:
        line = cell.lines.get("ours:auto")
        return None, f"{line['status'].upper()}: {line['reason']}" if line else "not measured"
    best = cell.best_peer()
    missed = targets.misses(ours["mode"], ours["N"], ours["us"], ours["copy_us"],
                            best and best["us"])
    return not missed, ", ".join(missed) or "met"


def _byte_rate(record):
    """TB/s of the copy, from the rate and the share of what was measured beside it."""
    return record["GBps"] / record["share"] / 1000


def rows(cells):
    """(header, rows) over cells of one grid and dtype."""
    explicit = sorted({name for cell in cells for name in cell.lines
                       if records.is_ours(name) and name != "ours:auto"})
    hot = cells[0].any["mode"] == "hot"
    header = (["M"] if hot else []) + ["N", "copy us" if hot else "copy TB/s",
              "ours us" if hot else "ours", *[n.removeprefix("ours:") for n in explicit],
              "best peer", "its us" if hot else "its share", "ulp", "kernel", "target"]
    table = []
    for cell in cells:
        any_ok = next((r for r in cell.lines.values() if r["status"] == "ok"), None)
        ours, best = cell.ours, cell.best_peer()
        value = (lambda r: f"{r['us']:.2f}" if r else NONE) if hot else _share
        first = cell.any
        copy = NONE
        if hot and "copy_us" in first:
            copy = f"{first['copy_us']:.2f}"
        elif not hot and any_ok:
            copy = f"{_byte_rate(any_ok):.2f}"
        ulp = ours.get("max_ulp") if ours else None
        table.append((([str(first["M"])] if hot else []) + [
            str(first["N"]), copy, value(ours), *[value(cell.ok(name)) for name in explicit],
            best["candidate"] if best else NONE, value(best),
            NONE if ulp is None else f"{ulp:.2f}",
            (ours or {}).get("algo", NONE), verdict(cell)[1]]))
    return header, table


def plain(header, table):
    widths = [max(len(row[i]) for row in [header, *table]) for i in range(len(header))]
    left = {"best peer", "kernel", "target"}
    return "\n".join("  ".join(
        value.ljust(width) if name in left else value.rjust(width)
        for value, width, name in zip(row, widths, header)).rstrip() for row in [header, *table])


def markdown(header, table):
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join(["---:"] * len(header)) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in table])


def grouped(lines):
    """{(grid, dtype, mode, op, offset, in_place): cells}, cliffs left out."""
    groups = {}
    for cell in records.by_cell(lines).values():
        r = cell.any
        if r["grid"] != "cliffs":
            key = (r["grid"], r["dtype"], r["mode"], r["op"], r["offset"], r["in_place"])
            groups.setdefault(key, []).append(cell)
    return groups


def title(key):
    grid, dtype, mode, op, offset, in_place = key
    words = [f"{grid}: {dtype}, {mode}"]
    words += ["log-softmax"] if op == "log" else []
    words += [f"buffers off by {offset} element" + ("s" if offset > 1 else "")] if offset else []
    words += ["in place, the restoring copy's time taken off"] if in_place else []
    return ", ".join(words)


def absences(cells):
    """Peers that were absent from a whole group, or from parts of it, each with its reasons."""
    reasons = {}
    for cell in cells:
        for name, r in cell.lines.items():
            if r["status"] == "absent":
                reasons.setdefault((name, r["reason"]), []).append(r["N"])
    words = []
    for (name, reason), lengths in reasons.items():
        where = "everywhere" if len(lengths) == len(cells) else \
            f"in {len(lengths)} of {len(cells)} cells"
        words.append(f"{name} absent {where}: {reason}")
    return words


def price_of_invariance(cells):
    """The slowdown of AUTO beside AUTO with M_ADAPTIVE, as (worst ratio, its cell) or None."""
    ratios = []
    for cell in cells:
        auto, adaptive = cell.ours, cell.ok("ours:auto:adaptive")
        if auto and adaptive:
            ratios.append((auto["us"] / adaptive["us"], auto["M"], auto["N"]))
    return max(ratios, default=None)


def summary(cells):
    """One line: how many cells meet their target, and which candidates failed."""
    judged = [verdict(cell)[0] for cell in cells]
    words = f"{judged.count(True)} of {len(cells)} cells meet their target"
    if judged.count(None):
        words += f", {judged.count(None)} were not measured"
    failed = [f"{r['candidate']} {r['M']}x{r['N']} ({r['reason']})"
              for cell in cells for r in cell.failures()]
    if failed:
        words += "; FAILED: " + ", ".join(failed)
    price = price_of_invariance(cells)
    if price:
        words += (f"; batch invariance costs at most {100 * (price[0] - 1):.1f}% "
                  f"({price[1]}x{price[2]})")
    return words


def worst_steps(lines, dtype):
    """Steps from N to N + 1 of the cliff sweep as (cost, N), the worst first. The cost is that of
    an element, so that a longer row is not blamed for being longer."""
    cost = {r["N"]: r["us"] / (r["M"] * r["N"]) for r in records.newest(lines)
            if r["grid"] == "cliffs" and r["dtype"] == dtype and r["candidate"] == "ours:auto"
            and r["status"] == "ok"}
    steps = [(cost[n + 1] / cost[n], n) for n in cost if n + 1 in cost]
    return sorted(steps, reverse=True), len(cost)


def cliffs(lines):
    """The cliff sweep in words, a paragraph a type."""
    parts = []
    for dtype in dict.fromkeys(r["dtype"] for r in lines if r["grid"] == "cliffs"):
        steps, count = worst_steps(lines, dtype)
        over = [step for step in steps if step[0] > CLIFF]
        failed = [r for r in records.newest(lines) if r["grid"] == "cliffs" and
                  r["dtype"] == dtype and r["status"] == "failed"]
        text = (f"cliffs, {dtype}: {count} row lengths, {len(steps)} steps from N to N + 1; "
                f"{len(over)} cost more than {100 * (CLIFF - 1):.0f}%")
        if steps:
            text += "; the worst: " + ", ".join(f"{n} to {n + 1} {100 * (c - 1):+.1f}%"
                                                for c, n in steps[:WORST_STEPS])
        if failed:
            text += f"; FAILED at N = {', '.join(str(r['N']) for r in failed)}"
        parts.append(text)
    return parts


def caption(lines):
    cards = {(r["card"], r["driver"], r["source_id"], r["date"][:10]) for r in lines}
    return "; ".join(f"{card}, driver {driver}, {date}, source `{source}`"
                     for card, driver, source, date in sorted(cards)) + "; `bench/compare.py`."


def report(lines):
    """What is printed at the end of a run."""
    parts = []
    for key, cells in grouped(lines).items():
        parts += [f"== {title(key)}", plain(*rows(cells)), summary(cells)]
        parts += [f"   {words}" for words in absences(cells)]
        parts.append("")
    return "\n".join(parts + cliffs(lines)).rstrip()


def page(lines):
    """The same for the docs."""
    parts = [caption(lines)]
    for key, cells in grouped(lines).items():
        parts += [f"### {title(key)}", markdown(*rows(cells)), summary(cells) + "."]
        parts += ["\n".join(f"- {words}" for words in absences(cells))]
    parts += [text + "." for text in cliffs(lines)]
    return "\n\n".join(part for part in parts if part) + "\n"


GENERAL_HEADER = ["work", "types", "copy us", "ours", "by", "PyTorch", "torch.compile", "must reach",
                  "ulp", "target"]


def general_rows(lines):
    """Of the general call's lines, the newest of each work, type and candidate: shares of copy speed.
    A target is met where the share is and no peer is faster."""
    works = {}
    for line in lines:
        works.setdefault((line["work"], line["dtype"]), {})[line["candidate"]] = line
    table = []
    for (work, dtype), by in works.items():
        ours = by.get("ours", {})
        peers_share = {name: by[name]["share"] for name in ("pytorch", "compile")
                       if by.get(name, {}).get("status") == "ok"}
        shown = {name: f"{peers_share[name]:.2f}" if name in peers_share else NONE
                 for name in ("pytorch", "compile")}
        need = next(iter(by.values()))["need"]
        if ours.get("status") != "ok":
            verdict_words = f"FAILED: {ours.get('reason', 'not measured')}"
        else:
            words = [] if ours["share"] >= need else [f"{ours['share']:.2f} < {need:.2f}"]
            words += [f"{name} faster" for name, share in peers_share.items()
                      if share > ours["share"]]
            verdict_words = ", ".join(words) or "met"
        table.append([work, dtype, f"{next(iter(by.values()))['copy_us']:.0f}",
                      f"{ours['share']:.2f}" if "share" in ours else NONE, ours.get("algo", NONE),
                      shown["pytorch"], shown["compile"], f"{need:.2f}",
                      f"{ours['max_ulp']:.2f}" if "max_ulp" in ours else NONE, verdict_words])
    return table


def general_page(lines):
    """The same for the docs."""
    return caption(lines) + "\n\n" + markdown(GENERAL_HEADER, general_rows(lines)) + "\n"


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
