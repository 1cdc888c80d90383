"""The quick starts of the bindings' READMEs run as they stand, and print what they say."""
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import cargo as c


def blocks(readme, language):
    """The code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", readme.read_text(), re.M | re.S)


class Python(unittest.TestCase):
    def test_the_quick_start_runs(self):
        examples = blocks(c.ROOT / "bindings/python/README.md", "python")
        self.assertEqual(len(examples), 2)
        self.assertLessEqual(len(examples[0].splitlines()), 22)
        run = 0
        for example in examples:
            if "# needs: torch, cuda" in example:  # scripts of the GPU machine run this one
                compile(example, "README", "exec")
                continue
            with tempfile.TemporaryDirectory() as folder:
                result = subprocess.run([sys.executable, "-c", example], cwd=folder, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(result.returncode, 0, result.stdout)
            self.assertIn("Choice(algo=", result.stdout)
            self.assertIn("SOFTMAX_STATUS_NOT_SUPPORTED_ALGO 2001", result.stdout)
            run += 1
        self.assertEqual(run, 1)


class Rust(unittest.TestCase):
    @unittest.skipIf(shutil.which("cargo") is None, "there is no cargo")
    def test_the_quick_start_builds_and_prints_what_its_comments_say(self):
        readme = c.ROOT / "bindings/rust/README.md"
        (dependencies,), (example,) = blocks(readme, "toml"), blocks(readme, "rust")
        # The path is relative to the repository there.
        dependencies = dependencies.replace('"bindings/', f'"{c.ROOT}/bindings/')
        folder = c.make_crate("quick_start", dependencies, example, "main.rs")
        commands = blocks(readme, "sh")
        self.assertEqual(commands, ["SOFTMAX_DIR=/opt/softmax SOFTMAX_STATIC=1 cargo run\n"])
        process = c.cargo("run", "--quiet", folder=folder, SOFTMAX_STATIC=1, LD_LIBRARY_PATH=None)
        self.assertEqual(process.returncode, 0, process.stdout)
        said = re.findall(r"println!\(.*\); // (.*)$", example, re.M)
        self.assertEqual(len(said), 3)
        self.assertEqual(process.stdout.splitlines(), said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
