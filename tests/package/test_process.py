"""The library in a process that forks, and in one that unloads it."""

import subprocess
import sys

from harness import expect_equal, load_config, main

CONFIG = load_config()

PRELUDE = """
import _ctypes, ctypes, os, sys
def compute(library):
    library.softmax_forward.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p,
                                        ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    handle = ctypes.c_void_p()
    assert library.softmax_create(ctypes.byref(handle), ctypes.c_int32(-2)) == 0
    rows, cols = 300, 1000
    data = (ctypes.c_float * (rows * cols))(*([0.5, -1.0, 2.0, 0.0] * (rows * cols // 4)))
    bits = []
    for algo in (0, 1, 5):
        copy = type(data)(*data)
        assert library.softmax_forward(handle, algo, copy, rows, cols, None) == 0
        bits.append(bytes(copy))
    library.softmax_destroy.argtypes = [ctypes.c_void_p]
    assert library.softmax_destroy(handle) == 0
    return bits
"""

FORK = PRELUDE + """
library = ctypes.CDLL(sys.argv[1])
before = compute(library)
child = os.fork()
if child == 0:
    os._exit(0 if compute(library) == before else 1)
print("child:", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print("parent:", compute(library) == before)
"""

UNLOAD = PRELUDE + """
first = None
for _ in range(3):
    library = ctypes.CDLL(sys.argv[1])
    bits = compute(library)
    assert first is None or bits == first
    first = bits
    _ctypes.dlclose(library._handle)
print("unloaded")
"""


def run_python(program):
    done = subprocess.run([sys.executable, "-c", program, str(CONFIG.shared)], text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout


def test_a_forked_child_computes_the_same_bits():
    # OpenMP's threads stay with the parent: a child that waits for them hangs.
    expect_equal(run_python(FORK), (0, "child: 0\nparent: True\n"), "the program")


def test_the_library_can_be_closed_and_opened_again():
    # OpenMP's threads idle in code that must not be unloaded.
    expect_equal(run_python(UNLOAD), (0, "unloaded\n"), "the program")


if __name__ == "__main__":
    raise SystemExit(main(globals()))
