"""Offsets, sizes and constants are those of the first release: tests/abi/layout.txt.

Structs grow by appending and constants are only added, so the record may only grow too. To add to
it after a deliberate change: python3 tests/abi/test_layout.py --write (with SOFTMAX_TEST_CONFIG).
"""

import sys

import public_header
from harness import expect, expect_raises, load_config, main, run, scratch_folder

CONFIG = load_config()
HEADER = CONFIG.source / "include" / "softmax.h"
RECORD = CONFIG.source / "tests" / "abi" / "layout.txt"


def measure(header_text):
    """Compiles a program that prints the layout, and runs it."""
    lines = []
    for struct, fields in public_header.structs(header_text).items():
        lines.append(f'printf("{struct} size %zu\\n", sizeof({struct}));')
        for field in fields:
            lines.append(f'printf("{struct}.{field} offset %zu size %zu\\n", '
                         f"offsetof({struct}, {field}), sizeof((({struct} *)0)->{field}));")
    for name in public_header.constants(header_text):
        lines.append(f'printf("{name} = %d\\n", (int){name});')
    with scratch_folder() as folder:
        (folder / "softmax.h").write_text(header_text, encoding="utf-8")
        (folder / "layout.c").write_text(
            '#include <stdio.h>\n#include "softmax.h"\nint main(void) {\n' + "\n".join(lines) +
            "\nreturn 0;\n}\n", encoding="utf-8")
        run(CONFIG.cc, "-std=c99", folder / "layout.c", "-o", folder / "layout")
        return run(folder / "layout").splitlines()


def check_layout(measured, recorded):
    expect(len(recorded) > 50, "the record is empty or cut")
    gone = [line for line in recorded if line not in measured]
    new = [line for line in measured if line not in recorded]
    expect(not gone, f"recorded, but no longer so: {gone}; now: {new}")
    expect(not new, f"not yet in {RECORD.name}: {new}")


def test_structs_and_constants_are_as_recorded():
    check_layout(measure(HEADER.read_text(encoding="utf-8")),
                 RECORD.read_text(encoding="utf-8").splitlines())


def test_every_struct_of_the_header_is_measured():
    structs = public_header.structs(HEADER.read_text(encoding="utf-8"))
    expect(set(structs) == {"softmax_desc_t", "softmax_args_t", "softmax_choice_t"},
           f"structs found: {sorted(structs)}")
    expect(all(fields[0] == "struct_size" for fields in structs.values()),
           "a struct does not begin with struct_size")


def test_the_layout_check_can_fail():
    text = HEADER.read_text(encoding="utf-8")
    recorded = RECORD.read_text(encoding="utf-8").splitlines()
    for old, new, part in (
            ("int32_t axis;", "int64_t axis;", "softmax_desc_t.axis"),
            ("char kernel[64];", "char kernel[32];", "softmax_choice_t.kernel"),
            ("SOFTMAX_ALGO_ONLINE = 5", "SOFTMAX_ALGO_ONLINE = 7", "SOFTMAX_ALGO_ONLINE = 5"),
            ("int32_t reserved; /* 0, or NEWER_FIELD */\n} softmax_desc_t;",
             "int32_t reserved;\n  uint64_t later;\n} softmax_desc_t;", "later")):
        expect(old in text, f"the header no longer has {old!r}")
        expect_raises(check_layout, measure(text.replace(old, new)), recorded, part=part)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        RECORD.write_text("\n".join(measure(HEADER.read_text(encoding="utf-8"))) + "\n",
                          encoding="utf-8")
        raise SystemExit(0)
    raise SystemExit(main(globals()))
