"""softmax.h compiles everywhere, asks for nothing, and is mostly specification."""

import os

import public_header
from harness import (Skip, expect, expect_equal, expect_raises, load_config, main, need, run,
                     scratch_folder)

CONFIG = load_config()
HEADER = CONFIG.source / "include" / "softmax.h"
TEXT = HEADER.read_text(encoding="utf-8")
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Wpadded", "-Werror"]


def compile_in_all_standards(cc, cxx, header):
    with scratch_folder() as folder:
        # Included twice: the guard is part of the check.
        text = (f'#include "{header}"\n#include "{header}"\n'
                "int main(void) { return SOFTMAX_SUCCESS; }\n")
        for suffix, compiler, standards in (("c", cc, ("c99", "c11")),
                                            ("cc", cxx, ("c++11", "c++17", "c++20"))):
            source = folder / f"use.{suffix}"
            source.write_text(text, encoding="utf-8")
            for standard in standards:
                run(compiler, f"-std={standard}", *WARNINGS, "-c", source, "-o", folder / "use.o",
                    "-MD", "-MF", folder / "use.d")
                # A CUDA header would be found by luck on a machine that has it on a default path.
                read = (folder / "use.d").read_text(encoding="utf-8").split()
                expect(not any("cuda" in os.path.basename(name) for name in read),
                       f"a CUDA header is read: {read}")


def test_the_header_compiles_without_warnings_in_c99_to_cxx20():
    compile_in_all_standards(CONFIG.cc, CONFIG.cxx, HEADER)


def test_the_header_compiles_without_warnings_with_clang():
    need("clang", "clang++")
    compile_in_all_standards("/usr/bin/clang", "/usr/bin/clang++", HEADER)


def test_the_compile_check_can_fail():
    with scratch_folder() as folder:
        for defect, part in (("struct padded { char c; int i; };", "padd"),
                             ("static int unused_in_c;", "unused"),
                             ("#include <cuda_runtime.h>", "cuda_runtime")):
            bad = folder / "softmax.h"
            bad.write_text(TEXT.replace("#include <stddef.h>", f"#include <stddef.h>\n{defect}"),
                           encoding="utf-8")
            expect_raises(compile_in_all_standards, CONFIG.cc, CONFIG.cxx, bad, part=part)


def test_the_header_includes_stddef_and_stdint_only():
    expect_equal(public_header.includes(TEXT), {"<stddef.h>", "<stdint.h>"}, "includes")


def test_the_header_is_60_to_80_percent_prose():
    share = public_header.prose_share(TEXT)
    print(f"prose: {share:.1%} of the header's characters, white space aside")
    expect(0.60 <= share <= 0.80, f"{share:.1%} of the header is prose")


def test_a_cuda_stream_passes_without_a_cast():
    if not CONFIG.cuda:
        raise Skip("this build has no CUDA headers")
    with scratch_folder() as folder:
        source = folder / "stream.cc"
        for order in (("cuda_runtime.h", "softmax.h"), ("softmax.h", "cuda_runtime.h")):
            source.write_text("".join(f"#include <{name}>\n" for name in order) +
                              "#include <type_traits>\n"
                              "static_assert(std::is_same<cudaStream_t, softmax_stream_t>::value,"
                              ' "one type");\n', encoding="utf-8")
            run(CONFIG.cxx, "-std=c++17", "-fsyntax-only", f"-I{HEADER.parent}",
                *[f"-I{folder}" for folder in CONFIG.cuda_include.split(";")], source)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
