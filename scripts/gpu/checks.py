# The steps that check: the GPU tests, public reports, Python tests, sanitizers.
import importlib.util
import json
import os
import pathlib
import re
import shutil
import sys
import xml.etree.ElementTree

import outcome
import process

SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")

# Of one test case: the longest take 23 s on an H200, and one that waits for ever is to be named.
CASE_SECONDS = 90

# What compute-sanitizer prints where it cannot watch this machine's GPU at all.
REFUSALS = ("Device not supported",)


def read_summary(path: pathlib.Path):
    """The counts that a test program wrote with --summary, or None."""
    try:
        counts = json.loads(path.read_text(encoding="utf-8"))
        return {
            "passed": int(counts["passed"]),
            "failed": int(counts["failed"]),
            "skipped": int(counts["skipped"]),
            "skipped_names": [str(name) for name in counts.get("skipped_names", [])],
            "failed_names": [str(name) for name in counts.get("failed_names", [])],
            "source_id": counts.get("source_id"),
            # What else a program counts: assertions, entries that other tests drive, ...
            "other": {key: value for key, value in counts.items()
                      if isinstance(value, int) and key not in ("passed", "failed", "skipped")},
        }
    except (OSError, ValueError, KeyError, TypeError):
        return None


def beside_others(threads):
    """For the environment of a program where others want the same cores: idle threads sleep."""
    return {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}


def _program(context, name, file, limit, *arguments, env=None):
    program = context.bin / file
    if not program.is_file():
        return outcome.Outcome(name, outcome.SKIPPED, f"{file} is not in {context.bin}")
    summary = context.work / f"{name}.json"
    summary.unlink(missing_ok=True)
    # Line by line, so that the log has how far a program came that is ended.
    lines = ["stdbuf", "-oL"] if shutil.which("stdbuf") else []
    result = process.run([*lines, program, "--summary", summary, *arguments],
                         context.clock.allow(limit), context.log, env=env, cwd=context.root)
    return outcome.judge(name, read_summary(summary), result, context.source_id)


def _tests(context, name, limit, cases):
    return _program(context, name, "softmax_gpu_tests", limit, cases, "--durations", "yes",
                    "--case-limit", CASE_SECONDS, env=beside_others((os.cpu_count() or 2) // 2))


def gpu_tests(context, limit):
    """The test program, but for the general call's cases."""
    return _tests(context, "tests", limit, "~[general]")


def general_tests(context, limit):
    """The general call's cases."""
    return _tests(context, "general", limit, "[general]")


def reports(context, limit):
    """The public reports."""
    return _program(context, "reports", "softmax_gpu_reports", limit)


def read_junit(path: pathlib.Path):
    try:
        root = xml.etree.ElementTree.parse(path).getroot()
    except (OSError, xml.etree.ElementTree.ParseError):
        return None
    counts = {"passed": 0, "failed": 0, "skipped": 0, "skipped_names": [], "failed_names": []}
    for case in root.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            counts["failed"] += 1
            counts["failed_names"].append(case.get("name", "?"))
        elif case.find("skipped") is not None:
            counts["skipped"] += 1
            reason = case.find("skipped").get("message", "")
            counts["skipped_names"].append(f"{case.get('name', '?')}: {reason}")
        else:
            counts["passed"] += 1
    return counts


def python_tests(context, limit):
    """The Python package's CUDA tests, on the library that is being checked."""
    name = "python"
    tests = context.root / "bindings/python/tests/test_cuda.py"
    if not tests.is_file():
        return outcome.Outcome(name, outcome.FAILED, f"{tests} is not there")
    paths = [str(context.root / "bindings/python/src")]
    if importlib.util.find_spec("pytest") is None:
        carried = context.bin / "python"
        if not (carried / "pytest").is_dir():
            return outcome.Outcome(name, outcome.SKIPPED, "pytest is not installed")
        paths.append(str(carried))
    if not any(importlib.util.find_spec(module) for module in ("torch", "cupy")):
        return outcome.Outcome(name, outcome.SKIPPED, "neither torch nor cupy is installed")
    report = context.work / "python.xml"
    report.unlink(missing_ok=True)
    result = process.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
         f"--junitxml={report}", tests],
        context.clock.allow(limit), context.log,
        env={"LIBSOFTMAX_PATH": str(context.library), "PYTHONPATH": ":".join(paths),
             "PYTHONDONTWRITEBYTECODE": "1", **beside_others(2)},
        cwd=context.root)
    return outcome.judge(name, read_junit(report), result)


def sanitizer_findings(output: str):
    """The number that a sanitizer's last line gives, or None where it wrote none."""
    found = re.findall(r"ERROR SUMMARY: (\d+) error", output)
    races = re.findall(r"RACECHECK SUMMARY: (\d+) hazard", output)
    if not found and not races:
        return None
    return sum(int(number) for number in (found or races)[-1:])


def first_finding(output: str):
    """What a sanitizer says first of what it has found, on one line, or None. A race is two lines."""
    found = re.search(r"^=========\s+((?:Error|Warning|Invalid|Uninitialized|Barrier).*)\n"
                      r"(?:=========\s+((?:and|by|at) .*))?", output, re.MULTILINE)
    return " ".join(part.strip() for part in found.groups() if part) if found else None


def sanitize(context, limit, tool):
    name = tool
    program = context.bin / "softmax_gpu_tests"
    if shutil.which("compute-sanitizer") is None:
        return outcome.Outcome(name, outcome.SKIPPED, "compute-sanitizer is not installed")
    if not program.is_file():
        return outcome.Outcome(name, outcome.SKIPPED, f"softmax_gpu_tests is not in {context.bin}")
    summary = context.work / f"{name}.json"
    summary.unlink(missing_ok=True)
    result = process.run(
        ["compute-sanitizer", "--tool", tool, "--error-exitcode", "86", program, "[sanitizer]",
         "--summary", summary],
        context.clock.allow(limit), context.log, env=beside_others(2), cwd=context.root)
    judged = outcome.judge(name, read_summary(summary), result, context.source_id)
    findings = sanitizer_findings(result.output)
    judged.details["findings"] = findings
    refused = process.first_of(result.output, REFUSALS)
    if refused and findings in (None, 0):
        return outcome.Outcome(name, outcome.SKIPPED, f"compute-sanitizer: {refused}",
                               seconds=result.seconds)
    if findings is None and judged.status != outcome.FAILED:
        judged.status, judged.note = outcome.FAILED, "the sanitizer wrote no summary"
    elif findings:
        first = first_finding(result.output)
        judged.status = outcome.FAILED
        judged.note = f"{findings} findings" + (f", the first: {first}" if first else "")
    return judged
