# The steps that measure: the ladder benchmark, and its kernels' counters by Nsight Compute.
import csv
import json
import pathlib
import shutil

import outcome
import process

# Quantity, unit of its base, and the metrics that can give it, best first. Sectors are counted as
# the multiprocessors ask for them; the plain lts__t_sectors_op_* also count what one half of a
# two-part L2 asks of the other.
METRICS = (
    ("duration_ns", ("gpu__time_duration.sum",)),
    ("l2_read_sectors", ("lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_op_read.sum")),
    ("l2_write_sectors",
     ("lts__t_sectors_srcunit_tex_op_write.sum", "lts__t_sectors_op_write.sum")),
    ("l2_read_sectors_all", ("lts__t_sectors_op_read.sum",)),
    ("l2_write_sectors_all", ("lts__t_sectors_op_write.sum",)),
    ("dram_read_bytes", ("dram__bytes_read.sum", "dram__bytes_op_read.sum")),
    ("dram_write_bytes", ("dram__bytes_write.sum", "dram__bytes_op_write.sum")),
    ("warps_active_percent", ("sm__warps_active.avg.pct_of_peak_sustained_active",)),
    ("registers", ("launch__registers_per_thread",)),
)
# What ncu prints where the machine gives no access to the counters at all.
REFUSALS = ("ERR_NVGPUCTRPERM", "LibraryNotLoaded")
REQUIRED = ("duration_ns", "l2_read_sectors", "l2_write_sectors", "dram_read_bytes",
            "dram_write_bytes")


def read_json_lines(path: pathlib.Path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def ladder(context, limit):
    """Times the ladder; its results are in ladder.jsonl of the work folder."""
    name = "ladder"
    program = context.bin / "ladder"
    if not program.is_file():
        return outcome.Outcome(name, outcome.SKIPPED, f"ladder is not in {context.bin}")
    results = context.work / "ladder.jsonl"
    results.unlink(missing_ok=True)
    command = [program, "--json", results] + (["--quick"] if context.quick else [])
    result = process.run(command, context.clock.allow(limit), context.log)
    counts = None
    if results.is_file():
        lines = read_json_lines(results)
        cells = [line for line in lines if line["record"] == "cell"]
        by_status = {status: [c for c in cells if c["status"] == status]
                     for status in ("ok", "wrong", "skipped")}

        def names(cells):
            return [f"{c['algo']} {c['dtype']} {c['M']}x{c['N']} {c['mode']}" for c in cells]

        counts = {
            "passed": len(by_status["ok"]),
            "failed": len(by_status["wrong"]),
            "skipped": len(by_status["skipped"]),
            "skipped_names": [f"{n}: {c['why']}" for n, c in
                              zip(names(by_status["skipped"]), by_status["skipped"])],
            "failed_names": names(by_status["wrong"]),
            "source_id": lines[0]["source_id"],
        }
    return outcome.judge(name, counts, result, context.source_id)


def choose_metrics(context):
    """Quantity -> metric that this ncu knows on this card."""
    result = process.run(["ncu", "--query-metrics"], context.clock.allow(30), context.log)
    known = {line.split()[0] for line in result.output.splitlines() if line.split()}
    chosen = {}
    for quantity, candidates in METRICS:
        for metric in candidates:
            # launch__* describe the launch and are not among the counters that are listed.
            if metric.split(".")[0] in known or metric.startswith("launch__") or not result.ok:
                chosen[quantity] = metric
                break
    return chosen


def parse_ncu_csv(text: str, chosen: dict):
    """One dict of quantities a kernel, in launch order, from `ncu --csv --page raw`."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        raise ValueError("ncu wrote no table")
    rows = [row for row in csv.DictReader(lines[first:]) if row.get("ID", "").strip().isdigit()]
    kernels = []
    for row in sorted(rows, key=lambda r: int(r["ID"])):
        kernel = {"kernel": row["Kernel Name"]}
        for quantity, metric in chosen.items():
            value = (row.get(metric) or "").replace(",", "")
            try:
                kernel[quantity] = float(value)
            except ValueError:
                kernel[quantity] = None  # "n/a"
        kernels.append(kernel)
    return kernels


def profile(context, limit):
    """Counts sectors and DRAM bytes of one launch of each algorithm; data["launches"]."""
    name = "ncu"
    program = context.bin / "ladder"
    if shutil.which("ncu") is None:
        return outcome.Outcome(name, outcome.SKIPPED, "ncu is not installed")
    if not program.is_file():
        return outcome.Outcome(name, outcome.SKIPPED, f"ladder is not in {context.bin}")
    chosen = choose_metrics(context)
    missing = [quantity for quantity in REQUIRED if quantity not in chosen]
    if missing:
        return outcome.Outcome(name, outcome.SKIPPED,
                               "this ncu has no counter for " + ", ".join(missing))
    plan_file = context.work / "ncu_plan.jsonl"
    table_file = context.work / "ncu.csv"
    for path in (plan_file, table_file):
        path.unlink(missing_ok=True)
    # The clocks are left as they are; only what is launched between the profiler's start and stop
    # is measured; caches are flushed before every launch (ncu's default).
    command = ["ncu", "--clock-control", "none", "--profile-from-start", "off", "--csv", "--page",
               "raw", "--print-units", "base", "--metrics", ",".join(chosen.values()),
               "--log-file", table_file, program, "--profile", "--json", plan_file]
    command += ["--quick"] if context.quick else []
    result = process.run(command, context.clock.allow(limit), context.log)
    judged = outcome.Outcome(name, outcome.FAILED, seconds=result.seconds)
    refused = process.first_of(result.output, REFUSALS)
    if refused:
        judged.status, judged.note = outcome.SKIPPED, f"this machine lets no one count: {refused}"
        return judged
    if not result.ok:
        judged.note = result.note or f"exit code {result.code}"
        return judged
    text = table_file.read_text(encoding="utf-8", errors="replace")
    context.log.write(text)
    plan = read_json_lines(plan_file)
    card, plan = plan[0], [line for line in plan if line["record"] == "launch"]
    try:
        kernels = parse_ncu_csv(text, chosen)
    except (ValueError, KeyError) as error:
        judged.note = f"unreadable: {error}"
        return judged
    if len(kernels) != len(plan):
        judged.note = f"{len(kernels)} kernels were measured, {len(plan)} launched"
        return judged
    launches = []
    for launch, kernel in zip(plan, kernels):
        del launch["record"]
        if f"{launch['algo']}_kernel" not in kernel["kernel"]:
            judged.note = f"{kernel['kernel']} was measured where {launch['algo']} was launched"
            return judged
        launches.append({**launch, **kernel})
        complete = all(kernel[quantity] is not None for quantity in REQUIRED)
        judged.passed += complete
        judged.failed += not complete
    judged.data["launches"] = launches
    judged.data["metrics"] = chosen
    judged.data["card"] = card
    if judged.failed:
        judged.note = "counters are missing"
    else:
        judged.status = outcome.PASSED
    return judged
