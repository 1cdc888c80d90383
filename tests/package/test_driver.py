"""The library and the NVIDIA driver, as far as that can be tried without one: stand-ins for
libcuda.so.1 that are found before any real one."""

import ctypes
import os
import subprocess
import sys

from harness import Skip, expect_in, load_config, main, run, scratch_folder

CONFIG = load_config()

# A driver for CUDA 11.4: it says so, and every other call that the runtime may look up succeeds.
OLD_DRIVER = """
#include <string.h>
int cuDriverGetVersion(int *version) { *version = 11040; return 0; }
int cuInit(unsigned flags) { (void)flags; return 0; }
"""

ASK = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
handle = ctypes.c_void_p(1)
text = ctypes.create_string_buffer(256)
status = library.softmax_create(ctypes.byref(handle), ctypes.c_int32(0))
library.softmax_last_error(text, ctypes.c_size_t(256))
print("device 0:", status, handle.value, text.value.decode())
status = library.softmax_create(ctypes.byref(handle), ctypes.c_int32(-1))
print("auto:", status, handle.value is not None)
device = ctypes.c_int32(7)
library.softmax_handle_device(handle, ctypes.byref(device))
print("auto takes:", device.value)
"""


def ask(library_path):
    environment = dict(os.environ, LD_LIBRARY_PATH=str(library_path))
    done = subprocess.run([sys.executable, "-c", ASK, str(CONFIG.shared)], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise AssertionError(f"the process ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def test_an_old_driver_is_refused_with_2005_and_both_versions():
    if not CONFIG.cuda:
        raise Skip("a build without CUDA never looks for a driver")
    with scratch_folder() as folder:
        source = folder / "driver.c"
        source.write_text(OLD_DRIVER, encoding="utf-8")
        run(CONFIG.cc, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", source, "-o",
            folder / "libcuda.so.1")
        answer = ask(folder)
    expect_in("device 0: 2005 None", answer, "the status, and no handle")
    expect_in("CUDA 11.4", answer, "the driver's version")
    runtime = ctypes.CDLL(str(CONFIG.shared)).softmax_build_info
    runtime.restype = ctypes.c_char_p
    version = runtime().decode().split("CUDA ")[1].split(" ")[0]
    expect_in(f"needs one for {'.'.join(version.split('.')[:2])}", answer, "the version it needs")
    expect_in("auto: 0 True", answer, "AUTO's status")
    expect_in("auto takes: -2", answer, "AUTO's device, the CPU")


def test_a_driver_that_is_no_library_is_as_none():
    if not CONFIG.cuda:
        raise Skip("a build without CUDA never looks for a driver")
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        pass
    else:
        raise Skip("the loader would find this machine's own driver behind the stand-in")
    with scratch_folder() as folder:
        (folder / "libcuda.so.1").write_text("not an ELF file", encoding="utf-8")
        answer = ask(folder)
    expect_in("device 0: 2005 None", answer, "the status, and no handle")
    expect_in("no NVIDIA driver", answer, "the reason")
    expect_in("auto takes: -2", answer, "AUTO's device, the CPU")


if __name__ == "__main__":
    raise SystemExit(main(globals()))
