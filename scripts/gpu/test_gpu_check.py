# Tests gpu_check itself with stand-ins for the binaries and the tools: it must pass what is good,
# and above all must not pass what is not. Needs a C compiler and no GPU:
#   python3 scripts/gpu/test_gpu_check.py
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "gpu"))

import checks  # noqa: E402
import measures  # noqa: E402
import stand_ins  # noqa: E402
import tables  # noqa: E402


class WholeRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.id = subprocess.run([ROOT / "scripts/source_id"], capture_output=True, text=True,
                                check=True).stdout.strip()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.library = cls.compile_library(pathlib.Path(folder.name), cls.id, 1)

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)
        self.bin = self.folder / "bin"
        self.tools = self.folder / "tools"
        self.out = self.folder / "out"
        self.bin.mkdir()
        shutil.copy(self.library, self.bin)
        self.make_program(self.bin / "softmax_gpu_tests", stand_ins.GPU_TESTS)
        self.make_program(self.bin / "softmax_gpu_reports", stand_ins.REPORTS)
        self.make_program(self.bin / "ladder", stand_ins.LADDER % self.id)
        self.make_program(self.tools / "compute-sanitizer", stand_ins.SANITIZER)
        self.make_program(self.tools / "ncu", stand_ins.NCU % stand_ins.NCU_HEADER)

    def make_program(self, path, text):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    @staticmethod
    def compile_library(folder, source_id, devices):
        source = folder / "library.c"
        library = folder / "libsoftmax.so"
        source.write_text(stand_ins.LIBRARY % (source_id, devices), encoding="utf-8")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        return library

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
        self.check("--only", "ladder", "--only", "ncu")
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
        self.check("--only", "tests")
        self.assertFalse((self.out / "tests/gpu/record.json").exists())

    def record_of_whole_run(self, arguments=(), **environment):
        # The Python step fails here where its file or its CUDA is missing, and skips otherwise:
        # either way the rest of the record is what this test looks at.
        code, output = self.check(*arguments, steps_skipped=(), **environment)
        return code, output, json.loads((self.out / "tests/gpu/record.json").read_text())

    def test_a_whole_run_records_every_step(self):
        _, output, record = self.record_of_whole_run()
        self.assertEqual(record["source_id"], self.id, output)
        self.assertEqual(record["card"], "NVIDIA Stand-In")
        self.assertEqual(record["cuda_runtime"], "13.0.88")
        steps = {step["name"]: step for step in record["steps"]}
        self.assertEqual(list(steps), ["tests", "general", "reports", "python", "memcheck",
                                       "racecheck", "initcheck", "synccheck", "ladder", "ncu"])
        self.assertEqual(steps["general"]["passed"], len(stand_ins.GENERAL_CASES))
        self.assertEqual(steps["tests"]["passed"], len(stand_ins.CASES) - 1)
        self.assertEqual(steps["tests"]["failed"], 0)
        self.assertEqual(steps["tests"]["skipped_names"], ["two GPUs"])
        self.assertEqual(steps["tests"]["assertions"], 11 * len(stand_ins.CASES))
        self.assertEqual(steps["memcheck"]["passed"], 1)
        self.assertEqual(steps["racecheck"]["findings"], 0)
        self.assertEqual(steps["ladder"]["skipped"], 1)

    def test_a_library_of_another_source_never_passes(self):
        self.compile_library(self.bin, "0123456789abcdef", 1)
        code, output, record = self.record_of_whole_run()
        self.assertEqual(code, 1, output)
        self.assertFalse(record["passed"])
        self.assertEqual(record["library_source_id"], "0123456789abcdef")
        self.assertEqual(self.results(), [])

    def test_a_benchmark_of_another_source_fails_its_step(self):
        self.make_program(self.bin / "ladder", stand_ins.LADDER % "0123456789abcdef")
        code, output = self.check("--only", "ladder")
        self.assertEqual(code, 1, output)
        self.assertEqual(self.results(), [])

    def test_no_gpu_is_an_error(self):
        self.compile_library(self.bin, self.id, 0)
        code, output = self.check()
        self.assertEqual(code, 2, output)
        self.assertIn("no NVIDIA GPU here", output)

    def test_failures_fail(self):
        for environment in ({"FAKE_FAILED": "row 3, alone"}, {"FAKE_FAILED": "host cost"},
                            {"FAKE_CODE": "3"}, {"FAKE_NO_SUMMARY": "1"}, {"FAKE_SKIP_ALL": "1"},
                            {"FAKE_FAILED": "row 3, alone", "FAKE_CODE": "77"}):
            with self.subTest(**environment):
                code, output = self.check("--only", "tests", **environment)
                self.assertEqual(code, 1 if "FAKE_SKIP_ALL" not in environment else 0, output)
                self.assertNotRegex(output, r"tests +passed")

    def test_a_program_that_ends_badly_fails_its_step(self):
        for wrong, note in (("CRASH", "exit code -11"), ("EMPTY", "ran no test")):
            with self.subTest(wrong=wrong):
                code, output = self.check("--only", "tests", **{f"FAKE_{wrong}": "row 3, alone"})
                self.assertEqual(code, 1, output)
                self.assertRegex(output, rf"tests: failed \({note}")

    def test_a_program_that_hangs_is_ended_with_its_children(self):
        begin = time.monotonic()
        code, output = self.check("--only", "tests", "--limit", "3", FAKE_HANG="row 3, alone")
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"tests: failed \(ended at its limit of \d s")

    def trace(self, *arguments, **environment):
        """Runs gpu_check; returns what ran, with its begin and its end."""
        path = self.folder / "trace"
        code, output = self.check(*arguments, FAKE_TRACE=str(path), **environment)
        self.assertEqual(code, 0, output)
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def test_the_sanitizers_run_side_by_side(self):
        # Each waits until as many have begun.
        meeting = self.folder / "meeting"
        meeting.mkdir()
        only = [word for step in checks.SANITIZERS for word in ("--only", step)]
        self.trace(*only, FAKE_MEET=str(meeting), FAKE_MANY=str(len(checks.SANITIZERS)))

    def test_both_parts_of_the_tests_run_side_by_side(self):
        meeting = self.folder / "meeting"
        meeting.mkdir()
        self.trace("--only", "tests", "--only", "general", FAKE_MEET=str(meeting), FAKE_MANY="2")

    def test_groups_run_one_after_another_and_all_others_alone(self):
        runs = self.trace()
        groups = [{"tests", "general"}, set(checks.SANITIZERS), {"ladder"}, {"ncu"}, {"reports"}]
        self.assertEqual({run["who"] for run in runs}, set.union(*groups))
        by_group = [[run for run in runs if run["who"] in group] for group in groups]
        for earlier, later in zip(by_group, by_group[1:]):
            self.assertLess(max(run["end"] for run in earlier),
                            min(run["begin"] for run in later))

    def test_nothing_begins_after_a_failure_where_that_is_wanted(self):
        path = self.folder / "trace"
        code, output = self.check("--stop-early", FAKE_TRACE=str(path), FAKE_FAILED="host cost")
        self.assertEqual(code, 1, output)
        lines = path.read_text(encoding="utf-8").splitlines()
        self.assertEqual({json.loads(line)["who"] for line in lines}, {"tests", "general"})

    def test_a_run_goes_on_from_the_record_of_one_that_failed(self):
        record_path = self.out / "tests/gpu/record.json"
        self.record_of_whole_run(FAKE_FAILED="row 3, alone")
        before = self.results()
        runs = self.trace("--resume", record_path, "--skip", "reports", steps_skipped=())
        self.assertEqual({run["who"] for run in runs}, {"tests"})
        (self.folder / "trace").unlink()
        code, output, record = self.record_of_whole_run(arguments=("--resume", record_path))
        status = {step["name"]: step["status"] for step in record["steps"]}
        self.assertEqual({status[name] for name in ("tests", "general", "reports", "ladder",
                                                    "ncu", *checks.SANITIZERS)}, {"passed"}, output)
        self.assertEqual(list(status)[:3], ["tests", "general", "reports"])
        self.assertEqual(self.results(), before)
        racecheck = next(step for step in record["steps"] if step["name"] == "racecheck")
        self.assertEqual(racecheck["findings"], 0)  # what a step counted comes along
        self.assertEqual(record["passed"], "failed" not in status.values())
        self.assertEqual(code, 0 if record["passed"] else 1, output)

    def test_a_record_of_another_source_or_no_record_is_no_beginning(self):
        record_path = self.out / "tests/gpu/record.json"
        self.record_of_whole_run()
        record = json.loads(record_path.read_text(encoding="utf-8"))
        for key, value in (("source_id", "0123456789abcdef"), ("device", "another card"),
                           ("steps", None)):
            path = self.folder / "other.json"
            path.write_text(json.dumps({**record, key: value}), encoding="utf-8")
            code, output = self.check("--resume", path)
            self.assertEqual(code, 2, output)
            self.assertRegex(output, "is of source .*, not of|is no record")
        code, output = self.check("--resume", self.folder / "nothing.json")
        self.assertEqual(code, 2, output)

    def test_the_log_has_each_program_in_one_piece(self):
        self.check("--skip", "ncu")
        log = (self.out / "gpu_check/log.txt").read_text(encoding="utf-8")
        sections = [section.strip().splitlines() for section in log.split("\n$ ")[1:]]
        for section in sections:
            ends = [line for line in section if line.startswith(("[exit code", "[[Errno"))]
            self.assertEqual(len(ends), 1, section)
        self.assertEqual(sum("softmax_gpu_tests" in section[0] for section in sections), 4 + 2)

    def test_the_pack_has_what_was_written_and_the_log(self):
        archive = self.folder / "back" / "check.tar.gz"
        self.record_of_whole_run(arguments=("--pack", archive))
        with tarfile.open(archive) as tar:
            held = {member.name: tar.extractfile(member).read() for member in tar.getmembers()}
        card = "bench/results/NVIDIA_Stand-In"
        self.assertEqual(set(held), {"tests/gpu/record.json", f"{card}/ladder.jsonl",
                                     f"{card}/ladder.md", f"{card}/ncu.json",
                                     "build-gpu/gpu_check/log.txt"})
        for name in set(held) - {"build-gpu/gpu_check/log.txt"}:
            self.assertEqual(held[name], (self.out / name).read_bytes())
        self.assertIn(b"softmax_gpu_tests --summary", held["build-gpu/gpu_check/log.txt"])
        self.assertIn(b"wrote ", held["build-gpu/gpu_check/log.txt"])
        self.assertEqual([path.name for path in archive.parent.iterdir()], [archive.name])

    def test_the_pack_of_a_failed_run_has_its_log(self):
        archive = self.folder / "check.tar.gz"
        code, output = self.check("--only", "tests", "--pack", archive, FAKE_FAILED="host cost")
        self.assertEqual(code, 1, output)
        with tarfile.open(archive) as tar:
            self.assertEqual(tar.getnames(), ["build-gpu/gpu_check/log.txt"])

    def test_the_pack_has_the_documents_that_tables_fills(self):
        archive = self.folder / "documents.tar.gz"
        code, output = self.check("--tables", "--pack", archive)
        self.assertEqual(code, 0, output)
        with tarfile.open(archive) as tar:
            self.assertIn("docs/algorithms.md", tar.getnames())

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
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            with self.subTest(number=number):
                self.end_from_outside(number)
                shutil.rmtree(self.out)

    def end_from_outside(self, number):
        run = subprocess.Popen(
            [sys.executable, ROOT / "scripts/gpu_check", "--bin", self.bin, "--out", self.out],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}",
                 "FAKE_REPORTS_SLEEP": "60"})
        self.addCleanup(run.kill)
        said = ""
        while "ncu: passed" not in said:
            line = run.stdout.readline()
            self.assertNotEqual(line, "", said)
            said += line
        begin = time.monotonic()
        run.send_signal(number)
        said += run.communicate(timeout=30)[0]
        self.assertLess(time.monotonic() - begin, 20, said)
        was_killed = number == signal.SIGKILL
        self.assertEqual(run.returncode, -number if was_killed else 1, said)
        record = json.loads((self.out / "tests/gpu/record.json").read_text(encoding="utf-8"))
        self.assertFalse(record["passed"])
        status = {step["name"]: step["status"] for step in record["steps"]}
        self.assertEqual({status[name] for name in checks.SANITIZERS}, {"passed"})
        self.assertEqual({status[name] for name in ("tests", "general", "ladder", "ncu")},
                         {"passed"})
        self.assertEqual(status.get("reports"), None if was_killed else "failed")

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
