# Stand-ins for the library, the binaries and the tools, for test_gpu_check.py. What they do wrong,
# and how long they take, is in environment variables that begin with FAKE_.

LIBRARY = """
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

# How each program begins. `trace` says when it ran: a line of JSON in the file FAKE_TRACE.
# With FAKE_MEET, a folder, it goes on only when as many as FAKE_MANY have begun.
BEGIN = """#!/usr/bin/env -S python3 -IS
import json, os, re, signal, subprocess, sys, time
fake = lambda what, default="": os.environ.get("FAKE_" + what, default)
begin = time.monotonic()
def trace(who, cases=()):
    line = {"who": who, "begin": begin, "end": time.monotonic(), "cases": list(cases)}
    if fake("TRACE"):
        with open(fake("TRACE"), "a") as out:
            out.write(json.dumps(line) + chr(10))
if not any(word.startswith("--list") for word in sys.argv):
    time.sleep(float(fake("SLEEP", "0")))
    if fake("MEET"):
        open(os.path.join(fake("MEET"), str(os.getpid())), "w").close()
        while len(os.listdir(fake("MEET"))) < int(fake("MANY")):
            time.sleep(0.01)
            if time.monotonic() > begin + 10:
                sys.exit("met too few")
"""

# The main test program's cases. "two GPUs" is always skipped; under a sanitizer it runs one.
CASES = [*(f"row {i}, alone" for i in range(12)), "two GPUs", "host cost", "2^32 columns, rows",
         "no race"]
GENERAL_CASES = ["general: layouts", "general: gradients"]

# The program with the case that FAKE_FAILED, FAKE_CRASH, FAKE_HANG or FAKE_EMPTY names fails,
# crashes, hangs, or runs nothing.
GPU_TESTS = BEGIN + f"CASES = {CASES!r}; GENERAL_CASES = {GENERAL_CASES!r}" + r"""
names = (["no race"] if "[sanitizer]" in sys.argv else
         GENERAL_CASES if "[general]" in sys.argv else CASES)
if fake("HANG") in names:
    subprocess.run(["sleep", "60"])
if fake("CRASH") in names:
    os.kill(os.getpid(), signal.SIGSEGV)
if fake("EMPTY") in names:
    names = []
skipped = [name for name in names if name == "two GPUs" or fake("SKIP_ALL")]
failed = [name for name in names if name == fake("FAILED")]
if not fake("NO_SUMMARY"):
    counts = {"passed": len(names) - len(failed) - len(skipped), "failed": len(failed),
              "skipped": len(skipped), "assertions": 11 * len(names), "skipped_names": skipped,
              "failed_names": failed}
    json.dump(counts, open(sys.argv[sys.argv.index("--summary") + 1], "w"))
trace(fake("TOOL", "tests" if names == CASES else "general"), names)
code = 1 if failed else 77 if names and names == skipped else 0
sys.exit(int(fake("CODE", code)))
"""

REPORTS = BEGIN + """
time.sleep(float(fake("REPORTS_SLEEP", "0")))
counts = {"passed": 5, "failed": 0, "skipped": 1, "skipped_names": ["two GPUs"]}
json.dump(counts, open(sys.argv[sys.argv.index("--summary") + 1], "w"))
trace("reports")
"""

SANITIZER = """#!/bin/sh
tool=$2; shift 4
FAKE_TOOL=$tool "$@"; code=$?
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

LADDER = BEGIN + """
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
                "mode": "cold", "algo": "online", "status": fake("CELL", "ok"),
                "us": 200.0, "copy_us": 100.0, "ratio": 0.5, "GBps": 2684.0, "max_ulp": 1.5}
        print(json.dumps(cell), file=out)
        skipped = {**cell, "algo": "naive", "status": "skipped", "why": "predicted to be slow"}
        print(json.dumps(skipped), file=out)
trace("ncu" if "--profile" in sys.argv else "ladder")
sys.exit(1 if fake("CELL") == "wrong" else 0)
"""

NCU_HEADER = ('"ID","Process ID","Kernel Name","gpu__time_duration.sum",'
              '"lts__t_sectors_srcunit_tex_op_read.sum","lts__t_sectors_srcunit_tex_op_write.sum",'
              '"dram__bytes_read.sum","dram__bytes_write.sum","launch__registers_per_thread"')

NCU = """#!/usr/bin/env -S python3 -IS
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
