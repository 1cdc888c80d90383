"""How many kernels the library has: every instance costs build time, size and load time."""

import re

import kernel_stacks
from harness import Skip, expect, expect_raises, load_config, main, need, run, scratch_folder

CONFIG = load_config()
CEILING = 470
DOCUMENT = CONFIG.source / "docs/algorithms.md"
# Registers that spill go to local memory: that is traffic to L2. Up to this much a thread has been
# measured not to matter; eight times as much took a third of a kernel's speed.
MOST_STACK_BYTES = 64
# Known to spill more, (part of the name, bytes): rows so few that nobody waits for memory; float64,
# which waits for arithmetic; 16-bit rows off a word's boundary with results of 32 bits; the general
# call's, whose stack is that of the rows that they leave for float64, and of given statistics.
SPILLING = (
    ("13column_kernel", 192), ("18held_column_kernel", 216), ("18column_runs_kernel", 176),
    ("19general_rows_kernel", 304), ("20general_alone_kernel", 120),
    ("20general_stats_kernel", 192), ("25general_persistent_kernel", 152),
    ("19general_wide_kernel", 144), ("23general_backward_kernel", 192),
    ("11grid_kernel", 176), ("14cluster_kernel", 120), ("12block_kernelIdd", 200),
    ("12block_kernelI6__halff", 80), ("12block_kernelI13__nv_bfloat16f", 80),
    ("18grid_lagged_kernelI6__halff", 80), ("18grid_lagged_kernelI13__nv_bfloat16f", 80),
)


def kernels(archive):
    """The kernels of an archive, by the mangled name that nvcc's host code keeps for each: its
    launch stub or, where that was inlined, the stub's static variables."""
    return set(re.findall(r"\b__device_stub_\w+", run("nm", "-C", "--defined-only", archive)))


def check_count(count, text):
    stated = re.findall(r"^\*\*Kernels per architecture: (\d+)\.\*\*", text, re.MULTILINE)
    expect(len(stated) == 1, f"{len(stated)} lines state a number of kernels")
    expect(count == int(stated[0]), f"{count} kernels, and {stated[0]} are stated")
    expect(count <= CEILING, f"{count} kernels, the ceiling is {CEILING}")


def test_the_kernels_are_as_many_as_the_documentation_says_and_few():
    if not CONFIG.cuda:
        raise Skip("built without CUDA: there are no kernels")
    need("nm")
    count = len(kernels(CONFIG.static))
    print(f"{count} kernels for each of {CONFIG.cuda_architectures}")
    check_count(count, DOCUMENT.read_text(encoding="utf-8"))


def check_stacks(stacks):
    expect(len(stacks) > 0, "no kernel was found")
    for (architecture, name), size in sorted(stacks.items()):
        most = max([MOST_STACK_BYTES, *(size for part, size in SPILLING if part in name)])
        expect(size <= most, f"{name} for {architecture}: {size} bytes of stack a thread, at most "
                             f"{most} are allowed")


def test_no_kernel_has_registers_that_spill_much():
    if not CONFIG.cuda:
        raise Skip("built without CUDA: there are no kernels")
    tool = kernel_stacks.find_cuobjdump()
    if tool is None:
        raise Skip("cuobjdump is not installed")
    stacks = kernel_stacks.of_library(tool, CONFIG.shared)
    print(f"{len(stacks)} kernels, {sum(size > 0 for size in stacks.values())} with a stack")
    # Every kernel that the archive counts, for each architecture.
    names = {name for _, name in stacks}
    count = len(kernels(CONFIG.static))
    expect(len(names) == count, f"{len(names)} kernels in the library, {count} in the archive")
    check_stacks(stacks)


def test_the_stack_check_refuses_what_it_should():
    text = (" Fatbin elf code:\n arch = sm_90\n Function _Z1av:\n"
            "  REG:64 STACK:{} SHARED:512 LOCAL:0 CONSTANT[0]:640\n")
    check_stacks(kernel_stacks.parse(text.format(MOST_STACK_BYTES)))
    expect_raises(check_stacks, kernel_stacks.parse(text.format(MOST_STACK_BYTES + 8)),
                  part="bytes of stack")
    expect_raises(check_stacks, kernel_stacks.parse("nothing"), part="no kernel")


def test_the_kernel_count_refuses_what_it_should():
    need("nm", "ar")
    with scratch_folder() as folder:
        source = folder / "stubs.c"
        source.write_text("void __device_stub__ZN1aEv(void) {}\n"
                          "static int handle __asm__(\"__device_stub__ZN1bEv.handle\") = 1;\n"
                          "int *use(void) { return &handle; }\n"
                          "void not_a_kernel(void) {}\n", encoding="utf-8")
        run(CONFIG.cc, "-O2", "-c", source, "-o", folder / "stubs.o")
        run("ar", "rcs", folder / "libstubs.a", folder / "stubs.o")
        found = kernels(folder / "libstubs.a")
        expect(found == {"__device_stub__ZN1aEv", "__device_stub__ZN1bEv"}, f"found {found}")
    check_count(2, "**Kernels per architecture: 2.** More.\n")
    expect_raises(check_count, 3, "**Kernels per architecture: 2.**", part="2 are stated")
    expect_raises(check_count, 2, "No number.", part="0 lines")
    expect_raises(check_count, CEILING + 1, f"**Kernels per architecture: {CEILING + 1}.**",
                  part="ceiling")


if __name__ == "__main__":
    raise SystemExit(main(globals()))
