"""The generated bindings are what softmax.h says, and a C compiler agrees; this check can fail.

Runs with python3 alone, under pytest or as a program.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "include/softmax.h"
GENERATE = ROOT / "bindings/generate.py"
COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")

sys.path.insert(0, str(GENERATE.parent))
import header as header_reader  # noqa: E402


def generate_check(header_path):
    return subprocess.run([sys.executable, GENERATE, "--check", "--header", header_path],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class GeneratedFiles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def check_of_changed_header(self, old, new):
        text = HEADER.read_text()
        self.assertEqual(text.count(old), 1, f"{old!r} must be in softmax.h once")
        changed = Path(self.folder.name) / "softmax.h"
        changed.write_text(text.replace(old, new))
        return generate_check(changed)

    def test_committed_files_are_what_the_header_says(self):
        result = generate_check(HEADER)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_every_kind_of_change_is_seen(self):
        changes = [
            ("SOFTMAX_STATUS_BAD_SHAPE = 1003", "SOFTMAX_STATUS_BAD_SHAPE = 1013"),
            ("SOFTMAX_ALGO_AUTO = 0,", "SOFTMAX_ALGO_AUTO = 0, SOFTMAX_ALGO_NEXT = 16,"),
            ("#define SOFTMAX_MAX_NDIM 8", "#define SOFTMAX_MAX_NDIM 9"),
            ("#define SOFTMAX_VERSION_MINOR 1", "#define SOFTMAX_VERSION_MINOR 2"),
            ("char reason[128];", "char reason[64];"),
            ("int64_t causal_offset;", "int32_t causal_offset;"),
            ("int64_t smem_bytes;", ""),
            ("SOFTMAX_API int32_t softmax_version(void);",
             "SOFTMAX_API int64_t softmax_version(void);"),
            ("SOFTMAX_API int32_t softmax_version(void);", ""),
            ("const float *row_scale;", "float *row_scale;"),
        ]
        for old, new in changes:
            with self.subTest(change=new or f"without {old}"):
                result = self.check_of_changed_header(old, new)
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertIn("run bindings/generate.py", result.stdout)

    def test_prose_is_not_a_change(self):
        result = self.check_of_changed_header("/* a pointer that is needed is NULL */",
                                              "/* enum { SOFTMAX_X = 1 }; */")
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_what_the_reader_does_not_understand_is_an_error(self):
        for new in ("#define SOFTMAX_MAX_NDIM (4 + 4)", "typedef union { int a; } softmax_u;",
                    "int softmax_unmarked(void);", "enum { SOFTMAX_NO_VALUE };",
                    "#pragma pack(1)", "typedef struct softmax_s { int a : 3; } softmax_s;"):
            with self.subTest(new=new):
                result = self.check_of_changed_header("#define SOFTMAX_MAX_NDIM 8",
                                                      "#define SOFTMAX_MAX_NDIM 8\n" + new)
                self.assertEqual(result.returncode, 2, result.stdout)

    def test_functions_are_those_of_the_export_list(self):
        exported = set(re.findall(r"^\s*(\w+);", (ROOT / "cmake/softmax.map").read_text(), re.M))
        parsed = header_reader.parse(HEADER.read_text())
        self.assertEqual({function.name for function in parsed.functions}, exported)


@unittest.skipIf(COMPILER is None, "no C compiler")
class CCompiler(unittest.TestCase):
    """Asks a C compiler for every number that the generated files state."""

    def probe(self, header_path):
        """(stated, found): dictionaries from an expression of C to its value."""
        parsed = header_reader.parse(HEADER.read_text())
        stated = dict(parsed.constants)
        for struct in parsed.structs:
            size, alignment, offsets = header_reader.layout(struct, parsed.aliases)
            stated[f"sizeof({struct.name})"] = size
            stated[f"_Alignof({struct.name})"] = alignment
            stated.update((f"offsetof({struct.name}, {field})", offset)
                          for field, offset in offsets.items())
        for alias, base in parsed.aliases.items():
            stated[f"sizeof({alias})"] = header_reader.SCALARS[base]
        for opaque in parsed.opaque:
            stated[f"sizeof({opaque})"] = header_reader.POINTER_BYTES
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "probe.c"
            source.write_text(
                f'#include "{header_path}"\n#include <stdio.h>\nint main(void) {{\n'
                + "".join(f'  printf("%s=%lld\\n", "{e}", (long long)({e}));\n' for e in stated)
                + "  return 0;\n}\n")
            program = Path(folder) / "probe"
            subprocess.run([COMPILER, "-std=c11", source, "-o", program], check=True)
            lines = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
        found = {}
        for line in lines.splitlines():
            expression, _, value = line.rpartition("=")
            found[expression] = int(value)
        return stated, found

    def test_every_constant_size_and_offset_is_the_compiler_s(self):
        stated, found = self.probe(HEADER)
        self.assertGreater(len(stated), 120)
        self.assertEqual(stated, found)

    def test_the_comparison_can_fail(self):
        with tempfile.TemporaryDirectory() as folder:
            changed = Path(folder) / "softmax.h"
            text = HEADER.read_text()
            changed.write_text(text.replace("uint64_t workspace_bytes; /* scratch",
                                            "uint64_t more, workspace_bytes; /* scratch"))
            self.assertNotEqual(changed.read_text(), text)
            stated, found = self.probe(changed)
        self.assertEqual(stated["offsetof(softmax_choice_t, algo)"], 16)
        self.assertEqual(found["offsetof(softmax_choice_t, algo)"], 24)

    def test_the_prototypes_are_the_compiler_s(self):
        """Declares each function again as it was read: C refuses another type for one name."""
        parsed = header_reader.parse(HEADER.read_text())

        def spell(ctype):
            return ("const " if ctype.const else "") + ctype.base + " " + "*" * ctype.pointers

        lines = [f'#include "{HEADER}"']
        for function in parsed.functions:
            arguments = ", ".join(spell(ctype) for _, ctype in function.parameters) or "void"
            lines.append(f"{spell(function.result)} {function.name}({arguments});")
        command = [COMPILER, "-std=c11", "-Werror", "-fsyntax-only", "-x", "c", "-"]
        subprocess.run(command, input="\n".join(lines), text=True, check=True)
        wrong = "\n".join(lines).replace("int64_t , int64_t", "int64_t , int32_t", 1)
        result = subprocess.run(command, input=wrong, text=True, stderr=subprocess.PIPE)
        self.assertNotEqual(result.returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
