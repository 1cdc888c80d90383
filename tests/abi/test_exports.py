"""libsoftmax.so exports what softmax.map lists and softmax.h declares: no name more or less."""

import public_header
from binary import check_exports
from harness import expect_raises, load_config, main, run, scratch_folder

CONFIG = load_config()
MAP = (CONFIG.source / "cmake" / "softmax.map").read_text(encoding="utf-8")
FUNCTIONS = public_header.functions(
    (CONFIG.source / "include" / "softmax.h").read_text(encoding="utf-8"))


def link_variant(folder, map_text, extra_code=""):
    """The real library's objects, linked anew with another export list."""
    (folder / "bad.map").write_text(map_text, encoding="utf-8")
    (folder / "extra.c").write_text(extra_code, encoding="utf-8")
    library = folder / "libbad.so"
    run(CONFIG.cc, "-shared", "-fPIC", folder / "extra.c", "-Wl,--whole-archive", CONFIG.static,
        "-Wl,--no-whole-archive", f"-Wl,--version-script={folder / 'bad.map'}",
        "-Wl,--unresolved-symbols=ignore-all", "-o", library)
    return library


def test_exports_are_exactly_the_list_and_the_header():
    check_exports(CONFIG.shared, MAP, FUNCTIONS)


def test_the_export_check_accepts_a_library_linked_anew_with_the_list():
    with scratch_folder() as folder:
        check_exports(link_variant(folder, MAP), MAP, FUNCTIONS)


def test_the_export_check_refuses_one_name_more():
    with scratch_folder() as folder:
        more = MAP.replace("softmax_version;", "softmax_version; softmax_unlisted;")
        library = link_variant(folder, more, "int softmax_unlisted(void) { return 1; }\n")
        expect_raises(check_exports, library, MAP, FUNCTIONS, part="softmax_unlisted")


def test_the_export_check_refuses_one_name_less():
    with scratch_folder() as folder:
        library = link_variant(folder, MAP.replace("    softmax_forward;\n", ""))
        expect_raises(check_exports, library, MAP, FUNCTIONS, part="['softmax_forward']")


def test_the_export_check_refuses_cuda_and_cxx_names():
    with scratch_folder() as folder:
        leaky = MAP.replace("local:", "cudaLeak; _ZSt4leak; local:")
        code = "int cudaLeak(void) { return 1; }\nint _ZSt4leak(void) { return 2; }\n"
        library = link_variant(folder, leaky, code)
        expect_raises(check_exports, library, MAP, FUNCTIONS, part="['_ZSt4leak', 'cudaLeak']")


def test_the_export_check_refuses_a_list_that_the_header_does_not_declare():
    expect_raises(check_exports, CONFIG.shared, MAP, FUNCTIONS - {"softmax_create"},
                  part="['softmax_create']")
    expect_raises(check_exports, CONFIG.shared, MAP, FUNCTIONS | {"softmax_promised"},
                  part="['softmax_promised']")


if __name__ == "__main__":
    raise SystemExit(main(globals()))
