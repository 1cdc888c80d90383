# Tests gpu_check itself with stand-ins for the binaries and the tools: it must pass what is good,
# and above all must not pass what is not. Needs a C compiler and no GPU:
#   python3 scripts/gpu/test_gpu_check.py
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "gpu"))

import checks  # noqa: E402
import measures  # noqa: E402
import tables  # noqa: E402

STAND_IN_LIBRARY = """
#include <stddef.h>
#include <stdint.h>
const char *softmax_build_info(void) { return "libsoftmax 0.1.0, source %s, CUDA 13.0.88 for 90"; }
int32_t softmax_device_count(int32_t *count) { *count = %d; return 0; }
int32_t softmax_create(void **handle, int32_t device) { (void)device; *handle = NULL; return 0; }
int32_t softmax_destroy(void *handle) { (void)handle; return 0; }
size_t softmax_last_error(char *buf, size_t cap) { (void)cap; buf[0] = 0; return 0; }
size_t softmax_handle_description(void *handle, char *buf, size_t cap) {
  static const char text[] = "NVIDIA Stand-In, sm_90, 132 SMs";
  (void)handle;
  for (size_t i = 0; i < sizeof text && i < cap; ++i) buf[i] = text[i];
  return sizeof text - 1;
}
"""

# A test program: counts from the environment, by step where {STEP} is set by the wrapper.
TEST_PROGRAM = """#!/usr/bin/env python3
import json, os, sys, time
time.sleep(float(os.environ.get("FAKE_SLEEP", "0")))
if "FAKE_NO_SUMMARY" not in os.environ:
    failed = int(os.environ.get("FAKE_FAILED", "0"))
    json.dump({"assertions": 77, "passed": int(os.environ.get("FAKE_PASSED", "5")), "failed": failed, "skipped": 1,
               "skipped_names": ["two GPUs"], "failed_names": ["row of one"] * failed},
              open(sys.argv[sys.argv.index("--summary") + 1], "w"))
sys.exit(int(os.environ.get("FAKE_CODE", "0")))
"""

SANITIZER = """#!/bin/sh
tool=$2; shift 4
"$@"; code=$?
case $tool in
  racecheck)
    [ -z "${FAKE_RACES:-}" ] || printf '%s\\n' \\
      '========= Error: Race reported between Write access at void kernel<float>(RowArgs)+0x10 in a.cuh:7' \\
      '=========     and Read access at void kernel<float>(RowArgs)+0x90 in a.cuh:9 [64 hazards]'
    echo "========= RACECHECK SUMMARY: ${FAKE_RACES:-0} hazards displayed (0 errors, 0 warnings)" ;;
  memcheck) [ -n "${FAKE_MUTE:-}" ] || echo "========= ERROR SUMMARY: ${FAKE_ERRORS:-0} errors" ;;
  *) echo "========= ERROR SUMMARY: 0 errors" ;;
esac
exit $code
"""

LADDER = """#!/usr/bin/env python3
import json, os, sys
path = sys.argv[sys.argv.index("--json") + 1]
with open(path, "w") as out:
    run = {"record": "run", "card": "NVIDIA Stand-In", "driver": "", "cuda_runtime": "13.0",
           "date": "2000-01-01T00:00:00Z", "source_id": "%s", "multiprocessors": 132,
           "threads_per_multiprocessor": 2048, "registers_per_multiprocessor": 65536,
           "l2_bytes": 62914560}
    print(json.dumps(run), file=out)
    if "--profile" in sys.argv:
        for algo in ("copy", "naive", "online"):
            launch = {"record": "launch", "dtype": "f32", "M": 8192, "N": 8192, "algo": algo}
            if algo != "copy":
                launch.update(threads=256, rows_per_block=1)
            print(json.dumps(launch), file=out)
    else:
        cell = {"record": "cell", "section": "published", "dtype": "f32", "M": 8192, "N": 8192,
                "mode": "cold", "algo": "online", "status": os.environ.get("FAKE_CELL", "ok"),
                "us": 200.0, "copy_us": 100.0, "ratio": 0.5, "GBps": 2684.0, "max_ulp": 1.5}
        print(json.dumps(cell), file=out)
        skipped = {**cell, "algo": "naive", "status": "skipped", "why": "predicted to be slow"}
        print(json.dumps(skipped), file=out)
sys.exit(1 if os.environ.get("FAKE_CELL", "ok") == "wrong" else 0)
"""

NCU_HEADER = ('"ID","Process ID","Kernel Name","gpu__time_duration.sum",'
              '"lts__t_sectors_srcunit_tex_op_read.sum","lts__t_sectors_srcunit_tex_op_write.sum",'
              '"dram__bytes_read.sum","dram__bytes_write.sum","launch__registers_per_thread"')

NCU = """#!/usr/bin/env python3
import os, subprocess, sys
if "--query-metrics" in sys.argv:
    for name in ("gpu__time_duration", "lts__t_sectors_srcunit_tex_op_read",
                 "lts__t_sectors_srcunit_tex_op_write", "dram__bytes_read", "dram__bytes_write"):
        print(name + "   Counter   unit   # words")
    sys.exit(0)
program = sys.argv.index("--log-file") + 2
subprocess.run(sys.argv[program:], check=True)
with open(sys.argv[program - 1], "w") as out:
    print("==PROF== Connected", file=out)
    print('''%s''', file=out)
    print('"","","","ns","sector","sector","byte","byte","register/thread"', file=out)
    names = ["copy_kernel", "naive_kernel", os.environ.get("FAKE_KERNEL", "online_kernel")]
    for i, name in enumerate(names):
        print(f'"{i}","7","void {name}<float>(RowArgs)","155,000","8,388,608","8388608",'
              f'"268435456","268435456","34"', file=out)
"""


class WholeRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.id = subprocess.run([ROOT / "scripts/source_id"], capture_output=True, text=True,
                                check=True).stdout.strip()

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)
        self.bin = self.folder / "bin"
        self.tools = self.folder / "tools"
        self.out = self.folder / "out"
        self.make_library(self.id, 1)
        for name in ("softmax_gpu_tests", "softmax_gpu_reports"):
            self.make_program(self.bin / name, TEST_PROGRAM)
        self.make_program(self.bin / "ladder", LADDER % self.id)
        self.make_program(self.tools / "compute-sanitizer", SANITIZER)
        self.make_program(self.tools / "ncu", NCU % NCU_HEADER)

    def make_program(self, path, text):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def make_library(self, source_id, devices):
        self.bin.mkdir(exist_ok=True)
        source = self.folder / "library.c"
        source.write_text(STAND_IN_LIBRARY % (source_id, devices), encoding="utf-8")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.bin / "libsoftmax.so", source],
                       check=True)

    def check(self, *arguments, steps_skipped=("python",), **environment):
        """Runs gpu_check; returns its exit code and its output."""
        skip = [word for step in steps_skipped for word in ("--skip", step)]
        done = subprocess.run(
            [sys.executable, ROOT / "scripts/gpu_check", "--bin", self.bin, "--out", self.out, *skip,
             *arguments],
            capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}", **environment})
        return done.returncode, done.stdout + done.stderr

    def results(self):
        return sorted(path.name for path in (self.out / "bench").rglob("*") if path.is_file())

    def test_all_good_is_passed_and_results_are_written(self):
        code, output = self.check()
        self.assertEqual(code, 0, output)
        self.assertEqual(self.results(), ["ladder.jsonl", "ladder.md", "ncu.json"])
        ncu = json.loads((self.out / "bench/results/NVIDIA_Stand-In/ncu.json").read_text())
        self.assertEqual([launch["algo"] for launch in ncu["launches"]],
                         ["copy", "naive", "online"])
        self.assertEqual(ncu["launches"][0]["duration_ns"], 155000.0)

    def test_autos_table_has_the_types_side_by_side(self):
        results = tables.Results(pathlib.Path("/nonexistent"))
        results.run = {"card": "Stand-In", "driver": "1", "cuda_runtime": "13.0",
                       "date": "2026-11-30", "source_id": "0"}
        fields = {"section": "sweep", "M": 1, "algo": "auto", "status": "ok"}
        results.cells = [
            {**fields, "dtype": "f32", "N": 64, "ratio": 1.014, "kernel": "softmax_warp_f32"},
            {**fields, "dtype": "bf16", "N": 64, "ratio": 0.931, "kernel": "softmax_tile_bf16"},
            {**fields, "dtype": "f32", "N": 8, "ratio": 0.5, "kernel": "softmax_warp_online_f32"}]
        table = tables.auto(results)
        self.assertIn("| 8 | 0.50 | WARP_ONLINE | – |  |\n| 64 | 1.01 | WARP | 0.93 | TILE |",
                      table)

    def test_tables_are_made_of_the_results(self):
        self.check()
        results = tables.Results(self.out / "bench/results/NVIDIA_Stand-In")
        self.assertIn("| online | 200.0 | 2684 | 0.50 | 1.50 | ~800 | 0.83 |",
                      tables.headline(results))
        # 8,388,608 sectors of 32 bytes are 8192 x 8192 f32 once.
        self.assertIn("| online | 155.0 | 8,388,608 | 1.00 | 1.00 | 1.00 | 1.00 |",
                      tables.counters(results))
        # 34 registers are given out as 40: 6 blocks of 256 threads, on 132 multiprocessors.
        self.assertIn("| online | 256 | 34 | 6 | 792 | 25 MiB | 19859 |",
                      tables.in_flight(results))

    def test_a_part_of_the_steps_makes_no_record(self):
        self.check()
        self.assertFalse((self.out / "tests/gpu/record.json").exists())

    def record_of_whole_run(self, **environment):
        # The Python step fails here where its file or its CUDA is missing, and skips otherwise:
        # either way the rest of the record is what this test looks at.
        code, output = self.check(steps_skipped=(), **environment)
        return code, output, json.loads((self.out / "tests/gpu/record.json").read_text())

    def test_a_whole_run_records_every_step(self):
        _, output, record = self.record_of_whole_run()
        self.assertEqual(record["source_id"], self.id, output)
        self.assertEqual(record["card"], "NVIDIA Stand-In")
        self.assertEqual(record["cuda_runtime"], "13.0.88")
        steps = {step["name"]: step for step in record["steps"]}
        self.assertEqual(list(steps), ["tests", "reports", "python", "memcheck", "racecheck",
                                       "initcheck", "synccheck", "ladder", "ncu"])
        self.assertEqual(steps["tests"]["passed"], 5)
        self.assertEqual(steps["tests"]["skipped_names"], ["two GPUs"])
        self.assertEqual(steps["tests"]["assertions"], 77)
        self.assertEqual(steps["racecheck"]["findings"], 0)
        self.assertEqual(steps["ladder"]["skipped"], 1)

    def test_a_library_of_another_source_never_passes(self):
        self.make_library("0123456789abcdef", 1)
        code, output, record = self.record_of_whole_run()
        self.assertEqual(code, 1, output)
        self.assertFalse(record["passed"])
        self.assertEqual(record["library_source_id"], "0123456789abcdef")
        self.assertEqual(self.results(), [])

    def test_a_benchmark_of_another_source_fails_its_step(self):
        self.make_program(self.bin / "ladder", LADDER % "0123456789abcdef")
        code, output = self.check("--only", "ladder")
        self.assertEqual(code, 1, output)
        self.assertEqual(self.results(), [])

    def test_no_gpu_is_an_error(self):
        self.make_library(self.id, 0)
        code, output = self.check()
        self.assertEqual(code, 2, output)
        self.assertIn("no NVIDIA GPU here", output)

    def test_failures_fail(self):
        for environment in ({"FAKE_FAILED": "1"}, {"FAKE_CODE": "3"}, {"FAKE_NO_SUMMARY": "1"},
                            {"FAKE_PASSED": "0"}, {"FAKE_FAILED": "1", "FAKE_CODE": "77"}):
            with self.subTest(**environment):
                code, output = self.check("--only", "tests", **environment)
                self.assertEqual(code, 1 if environment != {"FAKE_PASSED": "0"} else 0, output)
                self.assertNotRegex(output, r"tests +passed")

    def test_sanitizer_findings_and_silence_fail(self):
        for environment in ({"FAKE_RACES": "2"}, {"FAKE_ERRORS": "1"}, {"FAKE_MUTE": "1"}):
            with self.subTest(**environment):
                code, output = self.check("--only", "memcheck", "--only", "racecheck", **environment)
                self.assertEqual(code, 1, output)

    def test_the_first_finding_is_in_the_table(self):
        code, output = self.check("--only", "racecheck", FAKE_RACES="2")
        self.assertEqual(code, 1, output)
        self.assertIn("2 findings, the first: Error: Race reported between Write access at void "
                      "kernel<float>(RowArgs)+0x10 in a.cuh:7 and Read access at", output)
        self.assertIsNone(checks.first_finding("========= ERROR SUMMARY: 0 errors\n"))

    def test_a_step_at_the_limit_of_the_run_fails(self):
        code, output = self.check("--only", "tests", "--limit", "2", FAKE_SLEEP="30")
        self.assertEqual(code, 1, output)
        self.assertIn("ended at its limit", output)

    def test_a_run_that_is_ended_from_outside_records_what_it_has(self):
        # Without python's own tests there is no whole run: they are a stand-in's too.
        self.make_program(self.bin / "softmax_gpu_reports",
                          TEST_PROGRAM.replace("FAKE_SLEEP", "FAKE_REPORTS_SLEEP"))
        run = subprocess.Popen(
            [sys.executable, ROOT / "scripts/gpu_check", "--bin", self.bin, "--out", self.out],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}",
                 "FAKE_REPORTS_SLEEP": "60"})
        self.addCleanup(run.kill)
        said = ""
        while "tests: passed" not in said:
            line = run.stdout.readline()
            self.assertNotEqual(line, "", said)
            said += line
        begin = time.monotonic()
        run.send_signal(signal.SIGTERM)
        said += run.communicate(timeout=30)[0]
        self.assertLess(time.monotonic() - begin, 20, said)
        self.assertEqual(run.returncode, 1, said)
        record = json.loads((self.out / "tests/gpu/record.json").read_text(encoding="utf-8"))
        self.assertFalse(record["passed"])
        status = {step["name"]: step["status"] for step in record["steps"]}
        self.assertEqual(status["tests"], "passed")
        self.assertEqual({status[name] for name in ("reports", "memcheck", "ladder", "ncu")},
                         {"failed"})

    def test_a_wrong_cell_fails_and_keeps_the_old_results(self):
        code, output = self.check("--only", "ladder", FAKE_CELL="wrong")
        self.assertEqual(code, 1, output)
        self.assertEqual(self.results(), [])

    def test_a_kernel_that_was_not_planned_fails(self):
        code, output = self.check("--only", "ncu", FAKE_KERNEL="shared_kernel")
        self.assertEqual(code, 1, output)

    def test_missing_programs_and_tools_are_skipped_by_name(self):
        (self.bin / "ladder").unlink()
        (self.tools / "compute-sanitizer").unlink()
        code, output = self.check("--only", "ladder", "--only", "memcheck",
                                  PATH=f"{self.tools}:/usr/bin:/bin")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"ladder +skipped .*ladder is not in")
        self.assertRegex(output, r"memcheck +skipped .*compute-sanitizer is not installed")


class Parts(unittest.TestCase):
    def test_sanitizer_summaries_are_read(self):
        self.assertEqual(checks.sanitizer_findings("========= ERROR SUMMARY: 3 errors"), 3)
        self.assertEqual(checks.sanitizer_findings("========= ERROR SUMMARY: 1 error"), 1)
        self.assertEqual(checks.sanitizer_findings(
            "========= RACECHECK SUMMARY: 4 hazards displayed (4 errors, 0 warnings)"), 4)
        self.assertIsNone(checks.sanitizer_findings("a summary of nothing"))

    def test_a_counter_without_a_value_is_none(self):
        text = '"ID","Kernel Name","m"\n"","",""\n"0","k","n/a"\n"1","k","1,234.5"\n'
        values = [k["q"] for k in measures.parse_ncu_csv(text, {"q": "m"})]
        self.assertEqual(values, [None, 1234.5])

    def test_generated_parts_say_when_nothing_was_measured(self):
        empty = tables.Results(pathlib.Path("/nonexistent"))
        for name in tables.BLOCKS:
            text = f"a\n<!-- generated by scripts/gpu_check: {name} -->\nold\n" \
                   "<!-- end of the generated part -->\nb\n"
            filled = tables.fill(text, empty)
            self.assertIn(tables.NOT_MEASURED, filled)
            self.assertNotIn("old", filled)
            self.assertEqual(tables.fill(filled, empty), filled)


if __name__ == "__main__":
    unittest.main()
