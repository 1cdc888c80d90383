# Plots of the results as small SVG files whose bytes depend on the results alone.
from . import records

MAX_BYTES = 200_000
HOT_ROWS = (1, 16, 64)
OURS_COLOUR = "#c1121f"
PEER_COLOURS = {"pytorch": "#ee9b00", "compile": "#bb8a52", "cudnn": "#588157",
                "cudnn-fast": "#a3b18a", "triton": "#4361ee", "quack": "#7b2cbf",
                "liger": "#00a6a6", "flashinfer": "#8d99ae"}
LABELS = {"pytorch": "PyTorch", "compile": "torch.compile", "cudnn": "cuDNN",
          "cudnn-fast": "cuDNN, fast mode", "triton": "Triton", "quack": "QuACK", "liger": "Liger",
          "flashinfer": "FlashInfer", "ours:auto": "libsoftmax"}


def _pyplot():
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({
        "svg.hashsalt": "libsoftmax", "svg.fonttype": "none", "font.size": 10,
        "font.family": "sans-serif", "axes.spines.top": False, "axes.spines.right": False,
        "axes.grid": True, "grid.alpha": 0.3, "axes.axisbelow": True})
    import matplotlib.pyplot

    return matplotlib.pyplot


def _save(figure, path):
    figure.savefig(path, format="svg", bbox_inches="tight",
                   metadata={"Date": None, "Creator": None})
    _pyplot().close(figure)
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise ValueError(f"{path} has {size} bytes, more than {MAX_BYTES}")
    return path


def _curves(lines, value):
    """{candidate: [(N, value)]} of what was measured, peers first and ours last, on top."""
    curves = {}
    for r in lines:
        if r["status"] == "ok" and r["candidate"] in LABELS:
            curves.setdefault(r["candidate"], []).append((r["N"], r[value]))
    names = [n for n in PEER_COLOURS if n in curves] + [n for n in ("ours:auto",) if n in curves]
    return {name: sorted(curves[name]) for name in names}


def _draw(axes, curves):
    for name, points in curves.items():
        ours = records.is_ours(name)
        axes.plot(*zip(*points), label=LABELS[name], color=OURS_COLOUR if ours else
                  PEER_COLOURS[name], linewidth=2.4 if ours else 1.0, zorder=3 if ours else 2,
                  marker="o", markersize=3.6 if ours else 2.2)


def _length_axis(axes):
    axes.set_xscale("log", base=2)
    axes.set_xlabel("N, elements a row")


def _share_plot(pyplot, lines, dtype, card):
    curves = _curves(lines, "share")
    if not curves:
        return None
    figure, axes = pyplot.subplots(figsize=(8, 4.2))
    axes.axhline(1.0, color="black", linewidth=1.2, linestyle="--", label="copy")
    _draw(axes, curves)
    _length_axis(axes)
    axes.set_ylim(0, max(1.1, 1.05 * max(v for points in curves.values() for _, v in points)))
    axes.set_ylabel("share of copy speed")
    axes.set_title(f"softmax, {dtype}, {card}: buffers from DRAM, about $2^{{27}}$ elements")
    axes.legend(fontsize=8, ncols=2)
    return figure


def _hot_plot(pyplot, lines, dtype, card):
    rows = [m for m in HOT_ROWS if any(r["M"] == m and r["status"] == "ok" for r in lines)]
    if not rows:
        return None
    figure, panels = pyplot.subplots(1, len(rows), figsize=(4 * len(rows), 4.2), sharey=True,
                                     squeeze=False)
    for axes, m in zip(panels[0], rows):
        chosen = [r for r in lines if r["M"] == m]
        copy = sorted({r["N"]: r["copy_us"] for r in chosen if "copy_us" in r}.items())
        axes.plot(*zip(*copy), color="black", linewidth=1.2, linestyle="--", label="copy")
        _draw(axes, _curves(chosen, "us"))
        _length_axis(axes)
        axes.set_yscale("log")
        axes.set_title(f"M = {m}")
    panels[0][0].set_ylabel("microseconds")
    panels[0][0].legend(fontsize=8)
    figure.suptitle(f"softmax, {dtype}, {card}: few rows, buffers in the L2")
    return figure


def _cliff_plot(pyplot, lines, dtype, card):
    points = sorted((r["N"], r["share"]) for r in lines
                    if r["status"] == "ok" and r["candidate"] == "ours:auto")
    if not points:
        return None
    figure, axes = pyplot.subplots(figsize=(8, 3.6))
    axes.axhline(1.0, color="black", linewidth=1.2, linestyle="--", label="copy")
    axes.plot(*zip(*points), color=OURS_COLOUR, linewidth=1.0, label="libsoftmax")
    if points[-1][0] > 8192:
        axes.set_xscale("log", base=2)
    axes.set_xlabel("N, elements a row")
    axes.set_ylim(0, max(1.1, 1.05 * max(v for _, v in points)))
    axes.set_ylabel("share of copy speed")
    axes.set_title(f"softmax, {dtype}, {card}: every step, about $2^{{26}}$ elements")
    axes.legend(fontsize=8)
    return figure


GRIDS = {"cold": _share_plot, "hot": _hot_plot, "cliffs": _cliff_plot}


def draw(lines, folder):
    """Writes a file for each grid and type that was measured; returns their paths."""
    pyplot = _pyplot()
    folder.mkdir(parents=True, exist_ok=True)
    lines = records.newest(lines)
    written = []
    for grid, plot in GRIDS.items():
        chosen = [r for r in lines if r["grid"] == grid]
        for dtype in dict.fromkeys(r["dtype"] for r in chosen):
            of_type = [r for r in chosen if r["dtype"] == dtype]
            figure = plot(pyplot, of_type, dtype, of_type[0]["card"])
            if figure is not None:
                written.append(_save(figure, folder / f"softmax_{grid}_{dtype}.svg"))
    return written
