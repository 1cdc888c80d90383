"""The Rust bindings: their own tests in every way of linking, and builds that must work or fail.

    test_rust.py rust|rust_release|rust_static|rust_build|rust_cdylib

Public reports: Twinklebear/oidn-rs#21, rust-cuda/cuda-sys#10 (rust, rust_release),
bheisler/RustaCUDA#15 (rust_build), dtolnay/cxx#1089 (rust_cdylib).
"""
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import cargo as c

SUITES = 6  # lib tests of two crates, three files of tests, the examples in the documentation
LEAST_TESTS = 26


class Case(unittest.TestCase):
    def assert_all_pass(self, process):
        self.assertEqual(process.returncode, 0, process.stdout)
        results = re.findall(r"^test result: ok\. (\d+) passed; 0 failed; 0 ignored",
                             process.stdout, re.M)
        self.assertEqual(len(results), SUITES, process.stdout)
        passed = sum(map(int, results))
        self.assertGreaterEqual(passed, LEAST_TESTS, process.stdout)
        print(f"{passed} Rust tests passed")

    def assert_refused(self, process, *words):
        self.assertNotEqual(process.returncode, 0, process.stdout)
        self.assertIn("softmax-sys: ", process.stdout)
        for word in words:
            self.assertIn(word, process.stdout)


class rust(Case):
    def test_all_pass_in_debug_with_the_shared_library(self):
        self.assert_all_pass(c.cargo("test", LD_LIBRARY_PATH=c.library_folder()))

    def test_versions_are_the_header_s(self):
        header = (c.ROOT / "include/softmax.h").read_text()
        version = ".".join(re.findall(r"#define SOFTMAX_VERSION_[A-Z]+ (\d+)", header))
        for crate in ("softmax", "softmax-sys"):
            text = (c.CRATES / crate / "Cargo.toml").read_text()
            stated = re.findall(r'^version = "(.*)"', text, re.M)
            self.assertEqual(stated, [version])
        self.assertIn(f'path = "../softmax-sys", version = "{version}"',
                      (c.CRATES / "softmax/Cargo.toml").read_text())


class rust_release(Case):
    def test_all_pass_in_release_with_the_shared_library(self):
        self.assert_all_pass(c.cargo("test", "--release", LD_LIBRARY_PATH=c.library_folder()))


class rust_static(Case):
    def test_all_pass_with_the_static_library_found_by_pkg_config(self):
        if shutil.which("pkg-config") is None:
            self.fail("pkg-config is needed for this test")
        self.assert_all_pass(c.cargo(
            "test", SOFTMAX_DIR=None, SOFTMAX_STATIC=1, LD_LIBRARY_PATH=None,
            PKG_CONFIG_PATH=c.library_folder() / "pkgconfig"))


class rust_build(Case):
    """What build.rs finds, and what it says when it finds nothing."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.empty = Path(self.folder.name)

    def build(self, **changes):
        return c.cargo("build", "-p", "softmax-sys", **changes)

    def test_without_anything_the_message_names_the_variables(self):
        process = self.build(SOFTMAX_DIR=None, PKG_CONFIG_LIBDIR=self.empty, PKG_CONFIG_PATH=None)
        self.assert_refused(process, "Set SOFTMAX_DIR", "PKG_CONFIG_PATH")
        process = self.build(SOFTMAX_DIR=None, PKG_CONFIG="/no/such/pkg-config")
        self.assert_refused(process, "Set SOFTMAX_DIR", "/no/such/pkg-config cannot be run")

    def test_a_prefix_without_the_library_is_named(self):
        process = self.build(SOFTMAX_DIR=self.empty)
        self.assert_refused(process, f'SOFTMAX_DIR is "{self.empty}"', "libsoftmax.so")
        process = self.build(SOFTMAX_DIR=self.empty, SOFTMAX_STATIC=1)
        self.assert_refused(process, f'SOFTMAX_DIR is "{self.empty}"', "libsoftmax.a")

    def test_a_wrong_value_of_softmax_static_is_refused(self):
        self.assert_refused(self.build(SOFTMAX_STATIC="yes"), "SOFTMAX_STATIC", "1 or 0")

    def test_the_shared_library_needs_no_variable_of_cuda(self):
        process = self.build(CUDA_HOME=None, CUDA_PATH=None)
        self.assertEqual(process.returncode, 0, process.stdout)

    def static_prefix(self, private):
        """A prefix whose softmax.pc says what a build with CUDA says."""
        pkgconfig = self.empty / "lib/pkgconfig"
        pkgconfig.mkdir(parents=True)
        shutil.copy(next(c.PREFIX.glob("lib*/**/libsoftmax.a")), self.empty / "lib")
        if private is not None:
            (pkgconfig / "softmax.pc").write_text(f"Name: softmax\nLibs.private: {private}\n")
        return self.empty

    def test_a_static_link_without_softmax_pc_is_refused(self):
        process = self.build(SOFTMAX_DIR=self.static_prefix(None), SOFTMAX_STATIC=1)
        self.assert_refused(process, "softmax.pc", "static link")

    def test_cuda_s_static_runtime_is_found_by_either_variable_or_in_its_usual_place(self):
        prefix = self.static_prefix("-lhwy -lcudart_static -lstdc++ -ldl -lrt -lpthread")
        toolkit = self.empty / "toolkit"
        (toolkit / "lib64").mkdir(parents=True)
        (toolkit / "lib64/libcudart_static.a").write_bytes(b"!<arch>\n")
        searched = f"cargo:rustc-link-search=native={toolkit / 'lib64'}"
        for name in ("CUDA_HOME", "CUDA_PATH"):
            with self.subTest(only=name):
                changes = {"CUDA_HOME": None, "CUDA_PATH": None, name: toolkit}
                process = c.cargo("build", "-vv", "-p", "softmax-sys", SOFTMAX_DIR=prefix,
                                  SOFTMAX_STATIC=1, **changes)
                self.assertEqual(process.returncode, 0, process.stdout)
                self.assertIn(searched, process.stdout)
        process = self.build(SOFTMAX_DIR=prefix, SOFTMAX_STATIC=1, CUDA_HOME=None, CUDA_PATH=None)
        usual = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
        if any(Path("/usr/local/cuda", f, "libcudart_static.a").is_file() for f in usual):
            self.assertEqual(process.returncode, 0, process.stdout)
        else:
            self.assert_refused(process, "CUDA_HOME", "CUDA_PATH", "libcudart_static.a")


class rust_cdylib(Case):
    """A cdylib with the static library in it links with every linker that there is, and loads."""

    CARGO_TOML = """
[lib]
crate-type = ["cdylib"]
[dependencies]
softmax = {{ path = "{path}" }}
"""
    LOAD = """
import ctypes, sys
data = (ctypes.c_float * 6)(1, 2, 3, 0, 0, 0)
function = ctypes.CDLL(sys.argv[1]).plugin_softmax
function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
assert function(data, 2, 3) == 0
assert abs(sum(data) - 2) < 1e-6 and abs(data[2] - 0.66524096) < 1e-6, list(data)
"""

    def linker_of(self, library):
        """The linker that made a file, by the mark that it left."""
        text = subprocess.run(["readelf", "-SW", "-p", ".comment", library],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        if "LLD " in text:
            return "lld"
        return "gold" if ".note.gnu.gold-version" in text else "bfd"

    def link(self, folder, linker):
        process = c.cargo("rustc", "--release", "--", "-C", f"link-arg=-fuse-ld={linker}",
                          folder=folder, SOFTMAX_STATIC=1, LD_LIBRARY_PATH=None)
        self.assertEqual(process.returncode, 0, process.stdout)
        library = c.WORK / "cargo/release/libplugin.so"
        self.assertEqual(self.linker_of(library), linker)
        needed = subprocess.run(["readelf", "-d", library], stdout=subprocess.PIPE, text=True,
                                check=True).stdout
        self.assertNotIn("libsoftmax.so", needed)
        self.assertIn("libstdc++.so", needed)
        loaded = subprocess.run([sys.executable, "-c", self.LOAD, library], text=True,
                                env=c.environment(LD_LIBRARY_PATH=None), stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
        self.assertEqual(loaded.returncode, 0, loaded.stdout)

    def test_every_linker_of_this_machine_links_it(self):
        source = (c.ROOT / "tests/bindings/rust_cdylib/lib.rs").read_text()
        toml = self.CARGO_TOML.format(path=c.CRATES / "softmax")
        folder = c.make_crate("plugin", toml, source, "lib.rs")
        linkers = [name for name in ("bfd", "gold", "lld") if shutil.which(f"ld.{name}")]
        self.assertIn("bfd", linkers)
        for linker in linkers:
            with self.subTest(linker=linker):
                self.link(folder, linker)
        print("linked with " + ", ".join(linkers))


if __name__ == "__main__":
    c.require()
    unittest.main(verbosity=2)
