# Tests scripts/tune on made-up measurements: which stem has which range, and when few rows get a
# schedule of their own. Needs no GPU: python3 scripts/gpu/test_tune.py
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "gpu"))

import tuning  # noqa: E402

RUN = {"record": "run", "card": "NVIDIA Stand-In", "compute_capability": "9.0",
       "date": "2026-11-30T12:00:00Z", "source_id": "0123456789abcdef"}
CLASSES = tuning.order_classes(ROOT)
# BLOCK and CLUSTER share an order of additions; here as if GRID did too.
SHARED = {**CLASSES, "grid": CLASSES["cluster"]}
F32, F32_ODD = tuning.TABLES[:2]


def cell(algo, n, us, dtype="f32", m=None):
    """A timed cell beside a copy of 100 us; hot where M is given."""
    return {"record": "cell", "dtype": dtype, "M": m or 4096, "N": n, "algo": algo,
            "mode": "hot" if m else "cold", "status": "ok", "us": us, "ratio": 100 / us}


def cold(times, dtype="f32"):
    """Cells of {algo: {N: us}}."""
    return [cell(algo, n, us, dtype) for algo, by_n in times.items() for n, us in by_n.items()]


def rows(lines, table=F32):
    """The tuning rows without their comments."""
    text = tuning.lines_of(tuning.Timings([RUN] + lines), table, SHARED)
    return [line.strip() for line in text if line.strip().startswith("{")]


class Ranges(unittest.TestCase):
    def test_a_stem_has_the_lengths_at_which_it_is_the_fastest(self):
        lines = cold({"warp": {256: 100, 512: 100, 1024: 103},
                      "block": {256: 200, 512: 150, 1024: 101, 2048: 100},
                      "vector": {256: 300, 512: 300, 1024: 300, 2048: 300}})
        self.assertEqual(rows(lines), ["{512, SOFTMAX_ALGO_WARP},",
                                       "{kNoLimit, SOFTMAX_ALGO_BLOCK},"])

    def test_a_stem_keeps_its_range_where_another_is_hardly_better(self):
        lines = cold({"warp": {256: 100, 512: 101.4, 1024: 100},
                      "block": {256: 120, 512: 100, 1024: 120}})
        self.assertEqual(rows(lines), ["{kNoLimit, SOFTMAX_ALGO_WARP},"])
        lines = cold({"warp": {256: 100, 512: 101.7}, "block": {256: 120, 512: 100}})
        self.assertEqual(rows(lines), ["{256, SOFTMAX_ALGO_WARP},",
                                       "{kNoLimit, SOFTMAX_ALGO_BLOCK},"])

    def test_a_stem_that_declines_ends_its_range(self):
        lines = cold({"warp": {1024: 100}, "vector": {1024: 101, 2048: 500}})
        lines.append({**cell("warp", 2048, 1.0), "status": "declined", "why": "too long"})
        self.assertEqual(rows(lines), ["{1024, SOFTMAX_ALGO_WARP},",
                                       "{kNoLimit, SOFTMAX_ALGO_VECTOR},"])

    def test_a_wrong_answer_is_not_fast(self):
        lines = cold({"vector": {1024: 101}})
        lines.append({**cell("warp", 1024, 1.0), "status": "wrong"})
        self.assertEqual(rows(lines), ["{kNoLimit, SOFTMAX_ALGO_VECTOR},"])

    def test_odd_rows_are_those_of_broken_16_byte_words(self):
        lines = cold({"warp": {1024: 100}, "tile": {1023: 100}})
        self.assertEqual(rows(lines), ["{kNoLimit, SOFTMAX_ALGO_WARP},"])
        self.assertEqual(rows(lines, F32_ODD), ["{kNoLimit, SOFTMAX_ALGO_TILE},"])
        half = [t for t in tuning.TABLES if t.dtype == "bf16"]
        self.assertTrue(half[1].has("bf16", 12) and half[0].has("bf16", 32))

    def test_ragged_rows_are_whole_words_that_fill_lanes_badly(self):
        ragged = next(t for t in tuning.TABLES if t.name == "kSm90F32Ragged")
        lines = cold({"warp": {32: 100, 36: 120}, "tile": {32: 120, 36: 100}})
        self.assertEqual(rows(lines), ["{kNoLimit, SOFTMAX_ALGO_WARP},"])
        self.assertEqual(rows(lines, ragged), ["{kNoLimit, SOFTMAX_ALGO_TILE},"])
        # To the ladder they are words as any others.
        self.assertTrue(tuning.LADDER_TABLES[0].has("f32", 36))

    def test_few_whole_words_are_not_warps_where_many_are_tiles(self):
        lines = cold({"warp": {36: 120}, "tile": {36: 100}})
        lines += [cell("warp", 36, 1, m=1), cell("tile", 36, 2, m=1)]
        ragged = next(t for t in tuning.TABLES if t.name == "kSm90F32Ragged")
        self.assertEqual(rows(lines, ragged), ["{kNoLimit, SOFTMAX_ALGO_TILE, 0, SOFTMAX_ALGO_AUTO,"
                                               " 1, SOFTMAX_ALGO_WARP},"])

    def test_a_table_that_was_not_measured_says_so(self):
        self.assertEqual(tuning.lines_of(tuning.Timings([RUN]), F32, CLASSES),
                         ["// kSm90F32: not measured"])

    def test_the_ladders_table_has_the_ladder_alone(self):
        lines = cold({"warp": {1024: 100}, "vector": {1024: 200}})
        self.assertEqual(rows(lines, tuning.LADDER_TABLES[0]), ["{kNoLimit, SOFTMAX_ALGO_VECTOR},"])


class FewRows(unittest.TestCase):
    LINES = cold({"cluster": {65536: 100}, "grid": {65536: 120}, "vector": {65536: 300}})

    def few(self, times):
        return rows(self.LINES + [cell(algo, 65536, us, m=m)
                                  for algo, by_m in times.items() for m, us in by_m.items()])

    def test_a_schedule_of_the_same_order_is_named_up_to_where_it_stops_winning(self):
        self.assertEqual(
            self.few({"cluster": {1: 6, 16: 7, 64: 10}, "grid": {1: 4, 16: 6, 64: 12}}),
            ["{kNoLimit, SOFTMAX_ALGO_CLUSTER, 16, SOFTMAX_ALGO_GRID},"])

    def test_a_schedule_that_wins_nowhere_or_only_later_is_not_named(self):
        self.assertEqual(self.few({"cluster": {1: 4, 16: 7}, "grid": {1: 4.03, 16: 5}}),
                         ["{kNoLimit, SOFTMAX_ALGO_CLUSTER},"])

    def test_another_order_of_additions_is_for_m_adaptive_alone(self):
        self.assertEqual(
            self.few({"cluster": {1: 6, 16: 7, 64: 10}, "vector": {1: 3, 16: 8, 64: 50}}),
            ["{kNoLimit, SOFTMAX_ALGO_CLUSTER, 0, SOFTMAX_ALGO_AUTO, 1, SOFTMAX_ALGO_VECTOR},"])

    def test_m_adaptive_has_to_beat_what_few_rows_take_anyway(self):
        self.assertEqual(
            self.few({"cluster": {1: 6, 16: 7}, "grid": {1: 3, 16: 7}, "vector": {1: 5, 16: 9}}),
            ["{kNoLimit, SOFTMAX_ALGO_CLUSTER, 1, SOFTMAX_ALGO_GRID},"])

    def test_lengths_without_such_a_measurement_follow_the_one_before(self):
        lines = cold({"cluster": {65536: 100, 98304: 100, 131072: 100}, "vector": {65536: 500}})
        lines += [cell(algo, n, us, m=1) for n in (65536, 131072)
                  for algo, us in (("cluster", 6), ("grid", 4))]
        self.assertEqual(rows(lines), ["{kNoLimit, SOFTMAX_ALGO_CLUSTER, 1, SOFTMAX_ALGO_GRID},"])


class Text(unittest.TestCase):
    def test_a_row_says_its_scores_and_what_lost(self):
        lines = cold({"warp": {512: 100, 1024: 105}, "block": {512: 200, 1024: 125},
                      "tile": {512: 125}, "naive": {512: 1000, 1024: 1000}})
        text = tuning.text_of(tuning.Timings([RUN] + lines), [F32], CLASSES)
        self.assertIn("    // 512: 1.00, 1024: 0.95. block 0.50, 0.80; tile 0.80, -\n", text)
        self.assertIn("One NVIDIA Stand-In (compute capability 9.0), 2026-11-30", text)
        self.assertTrue(all(len(line) <= 100 for line in text.splitlines()))

    def test_the_printed_rows_compile_and_are_sound(self):
        lines = cold({"warp": {512: 100, 1024: 200}, "cluster": {1024: 100, 2**20: 100},
                      "grid": {2**20: 200, 2**21: 100}})
        lines += [cell("cluster", 1024, 9, m=1), cell("grid", 1024, 4, m=1),
                  cell("warp", 1024, 2, m=1)]
        text = tuning.text_of(tuning.Timings([RUN] + lines), [F32], CLASSES)
        self.assertIn("{std::int64_t{1} << 20, SOFTMAX_ALGO_CLUSTER, ", text)
        source = ('#include "select/tuning.h"\nnamespace softmax {\n' + text +
                  "static_assert(is_sound(kSm90F32, sizeof kSm90F32 / sizeof kSm90F32[0]), \"\");\n"
                  "}\n")
        done = subprocess.run(
            [os.environ.get("CXX", "c++"), "-std=c++17", "-fsyntax-only", "-x", "c++", "-",
             f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}"],
            input=source, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_order_classes_are_the_sources(self):
        self.assertNotEqual(CLASSES["cluster"], CLASSES["grid"])
        self.assertNotEqual(CLASSES["block"], CLASSES["grid"])
        self.assertLessEqual(set(tuning.STEMS), set(CLASSES))


# In place of the benchmark: WARP is best up to 3000 and declines above; BLOCK takes the rest. Few
# rows: no difference.
LADDER = """#!/usr/bin/env python3
import json, os, sys
value = lambda name: sys.argv[sys.argv.index(name) + 1]
if "FAKE_FAILS" in os.environ:
    sys.exit("no device")
out = [%s]
for n in map(int, value("--cols").split(",")):
    for m in map(int, value("--rows").split(",")) if "--rows" in sys.argv else [None]:
        for algo, us in (("warp", 100.0), ("block", 110.0)):
            out.append({"record": "cell", "dtype": value("--dtypes"), "M": m or 9, "N": n,
                        "algo": algo, "mode": "hot" if m else "cold", "max_ulp": 9.0,
                        "status": "declined" if algo == "warp" and n > 3000 else
                                  os.environ.get("FAKE_STATUS", "ok"),
                        "us": us, "ratio": 100 / us})
open(value("--json"), "w").write("".join(json.dumps(line) + "\\n" for line in out))
"""


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        (self.path / "ladder").write_text(LADDER % repr(RUN), encoding="utf-8")
        (self.path / "ladder").chmod(0o755)

    def tune(self, *arguments, **environment):
        done = subprocess.run([sys.executable, ROOT / "scripts/tune", *arguments],
                              capture_output=True, text=True, check=False,
                              env={**os.environ, **environment})
        return done.returncode, done.stdout, done.stderr

    def measure(self, *arguments, **environment):
        return self.tune("--bin", self.path, "--out", self.path / "out", *arguments, **environment)

    def test_it_looks_closer_between_two_algorithms(self):
        code, out, _ = self.measure("--dtypes", "f32")
        self.assertEqual(code, 0)
        # 2048 and 3072 are measured first; 3000 is between, and 2816 is the third quarter.
        self.assertIn("{2816, SOFTMAX_ALGO_WARP},", out)
        self.assertIn("{2815, SOFTMAX_ALGO_WARP},", out)  # odd rows
        self.assertIn("// kSm90Half: not measured", out)

    def test_from_prints_what_the_measurement_printed(self):
        _, measured, _ = self.measure("--small-m", "--dtypes", "bf16,f64")
        code, again, _ = self.tune("--from", self.path / "out/tune.jsonl")
        self.assertEqual((code, again), (0, measured))
        self.assertEqual((self.path / "out/tune.txt").read_text(encoding="utf-8"), measured)
        lines = tuning.read_lines(self.path / "out/tune.jsonl")
        self.assertEqual(sum(line["record"] == "run" for line in lines), 1)
        self.assertEqual({line["M"] for line in lines if line.get("mode") == "hot"}, {1, 16, 64})

    def test_a_benchmark_that_fails_is_not_a_table(self):
        code, out, err = self.measure(FAKE_FAILS="1")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("no device", err)

    def test_a_wrong_cell_fails_the_run(self):
        code, _, err = self.measure("--dtypes", "f32", FAKE_STATUS="wrong")
        self.assertEqual(code, 1)
        self.assertIn("is wrong", err)

    def test_no_time_is_said_to_be_none(self):
        code, _, err = self.measure("--limit", "0")
        self.assertEqual(code, 1)
        self.assertIn("no time was left", err)

    def test_its_options_are_checked(self):
        self.assertEqual(self.tune()[0], 2)
        self.assertEqual(self.tune("--bin", self.path)[0], 2)
        self.assertEqual(self.measure("--dtypes", "f16")[0], 2)


if __name__ == "__main__":
    unittest.main()
