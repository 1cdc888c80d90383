"""Reads libraries with binutils: exported names, dynamic entries, symbols of an archive; and the
checks on what was read, which self-tests give bad libraries to."""

import re

from harness import expect, run


def exports(library):
    """Defined dynamic symbols without their version; the version's own name is not one."""
    names = set()
    for line in run("nm", "-D", "--defined-only", library).splitlines():
        _, kind, name = line.split()
        if kind != "A":
            names.add(name.split("@")[0])
    return names


def map_names(map_text):
    """The global names of a linker version script."""
    body = re.search(r"global:(.*?)local:", map_text, re.DOTALL)
    expect(body is not None, "no global: ... local: in the version script")
    return set(re.findall(r"(\w+);", body.group(1)))


def dynamic_entries(library, tag):
    return re.findall(rf"\({tag}\).*\[(.*)\]", run("readelf", "--wide", "-d", library))


def check_exports(library, map_text, header_functions):
    exported, listed = exports(library), map_names(map_text)
    more, fewer = sorted(exported - listed), sorted(listed - exported)
    expect(not more, f"exported, but not in softmax.map: {more}")
    expect(not fewer, f"in softmax.map, but not exported: {fewer}")
    undeclared, unlisted = sorted(listed - header_functions), sorted(header_functions - listed)
    expect(not undeclared, f"in softmax.map, but not declared in softmax.h: {undeclared}")
    expect(not unlisted, f"declared in softmax.h, but not in softmax.map: {unlisted}")


def check_soname(library, abi_version):
    soname = dynamic_entries(library, "SONAME")
    expect(soname == [f"libsoftmax.so.{abi_version}"], f"SONAME is {soname}")


def check_needs_no_cuda(library):
    needed = dynamic_entries(library, "NEEDED")
    expect(needed, "no NEEDED entry at all: this is not the library")
    bad = [name for name in needed if re.match(r"lib(cuda|cudart|nv)", name)]
    expect(not bad, f"NEEDED: {bad}")


def check_no_weak_cuda_symbols(archive):
    """A weak cuda symbol in the archive could be bound to another program's CUDA runtime."""
    lines = run("nm", "--no-sort", archive).splitlines()
    expect(any(line.endswith(" T softmax_forward") for line in lines),
           "no softmax_forward: this is not the library")
    bad = [line for line in lines if re.search(r" [wWvVu] _{0,2}(cuda|cu[A-Z])", line)]
    expect(not bad, f"weak CUDA symbols: {bad}")


def check_hardened(library):
    flags = run("readelf", "--wide", "-d", library)
    expect("BIND_NOW" in flags or "NOW" in flags, "not linked with -z now")
    headers = run("readelf", "--wide", "-l", library)
    expect("GNU_RELRO" in headers, "no RELRO segment")
    stack = re.search(r"GNU_STACK.*? (R[ W][ E]) ", headers)
    expect(stack is not None and "E" not in stack.group(1), "executable stack")
    expect("TEXTREL" not in flags, "text relocations")
