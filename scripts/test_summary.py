"""Sums up a ctest run for scripts/test: what failed, what was skipped, and whether the committed
record of the GPU tests belongs to this very source. Exits 0 only if nothing failed."""

import json
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "gpu" / "record.json"


def read_results(path):
    """The names of the tests that passed, failed and were skipped. A test that did not run for any
    reason but its own skip code has failed: a missing program must not look like a skip."""
    passed, failed, skipped = [], [], []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = case.get("name")
        note = case.find("skipped")
        if case.get("status") == "run" and case.find("failure") is None and note is None:
            passed.append(name)
        elif note is not None and note.get("message", "").startswith("SKIP_"):
            skipped.append(name)
        else:
            failed.append(name)
    return passed, failed, skipped


def test_numbers(build):
    listing = subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"],
        check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    tests = json.loads(listing.stdout)["tests"]
    return {test["name"]: number for number, test in enumerate(tests, start=1)}


def say(title, names, numbers):
    if names:
        print(f"\n{title}: {len(names)}")
        for name in sorted(names, key=lambda n: numbers.get(n, 0)):
            print(f"  {numbers.get(name, 0):4d}  {name}")


def record_line():
    """What tests/gpu/record.json says of this source. A stale record does not fail a run on a
    machine that could not renew it, but it is never passed over in silence."""
    source_id = subprocess.run([ROOT / "scripts" / "source_id"], check=True, capture_output=True,
                               text=True).stdout.strip()
    if not RECORD.exists():
        return ("!!! NO GPU RECORD: tests/gpu/record.json is missing (this source is "
                f"{source_id}); run scripts/gpu_check on a machine with an NVIDIA GPU.")
    try:
        record = json.loads(RECORD.read_text())
        recorded = record["source_id"]
    except (ValueError, KeyError, TypeError) as error:
        return f"!!! UNREADABLE GPU RECORD: tests/gpu/record.json: {error!r}"
    if recorded != source_id:
        return (f"!!! STALE GPU RECORD: tests/gpu/record.json is of source {recorded}, this source "
                f"is {source_id}; run scripts/gpu_check on a machine with an NVIDIA GPU.")
    if record.get("passed") is not True:
        return f"!!! GPU RECORD OF A FAILED RUN: tests/gpu/record.json, of this source {source_id}."
    return (f"GPU record: tests/gpu/record.json belongs to this very source, {source_id}"
            f" ({record.get('card', 'card not named')}).")


def main():
    results, build, ctest_status = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    passed, failed, skipped = read_results(results) if results.exists() else ([], [], [])
    numbers = test_numbers(build)
    on_gpu = [name for name in skipped if re.search(r"^gpu\.|[._](gpu|cuda)$", name)]
    say("GPU tests skipped, no usable NVIDIA GPU here", on_gpu, numbers)
    say("Skipped for another reason", [name for name in skipped if name not in on_gpu], numbers)
    say("FAILED", failed, numbers)
    print()
    print(record_line())
    # A run that proves nothing is a failure, and so is one that ctest itself calls failed.
    broken = not failed and (ctest_status != 0 or not passed)
    if broken:
        print(f"ctest ended with {ctest_status} and {len(passed)} tests passed.")
    print(f"{len(passed)} passed, {len(failed) + broken} failed, {len(skipped)} skipped")
    return 1 if failed or broken else 0


if __name__ == "__main__":
    sys.exit(main())
