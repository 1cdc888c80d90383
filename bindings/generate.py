#!/usr/bin/env python3
"""Generates what the bindings know of the C interface from include/softmax.h.

    bindings/generate.py            writes the generated files
    bindings/generate.py --check    fails if they are not what the header says

The generated files are committed: using the bindings needs neither this script nor the header.
"""
import argparse
import difflib
import sys
from pathlib import Path
from typing import Dict

import header as header_reader
from header import CType, Function, Header, HeaderError, layout

ROOT = Path(__file__).resolve().parent.parent
PYTHON_FILE = "bindings/python/src/libsoftmax/_abi.py"
RUST_FILE = "bindings/rust/softmax-sys/src/bindings.rs"

# --- Python -------------------------------------------------------------------------------------

PYTHON_FIELDS = {"char": "c_char", "int32_t": "c_int32", "int64_t": "c_int64",
                 "uint64_t": "c_uint64", "size_t": "c_size_t", "float": "c_float",
                 "double": "c_double"}
# Arguments go through types that refuse what does not fit, where ctypes' own would cut it off.
PYTHON_ARGUMENTS = {"int32_t": "Int32", "int64_t": "Int64", "size_t": "Size"}


def python_field(header: Header, ctype: CType) -> str:
    if ctype.pointers or ctype.base in header.opaque:
        return "c_void_p"
    return PYTHON_FIELDS[header.aliases.get(ctype.base, ctype.base)]


def python_argument(header: Header, ctype: CType) -> str:
    base = header.aliases.get(ctype.base, ctype.base)
    if ctype.pointers == 0:
        if base in header.opaque:
            return "Address"
        if any(base == callback.name for callback in header.callbacks):
            return base
        return PYTHON_ARGUMENTS[base]
    if base == "char":
        return "c_char_p"
    if any(base == struct.name for struct in header.structs):
        return f"POINTER({base})"
    if base in header.opaque:  # an output
        return "POINTER(c_void_p)"
    if base == "int32_t":
        return "POINTER(c_int32)"
    if base in ("void", "float"):
        return "Address"
    raise HeaderError(f"no Python type for {ctype}")


def python_result(header: Header, ctype: CType) -> str:
    if ctype.pointers == 1 and ctype.base == "char":
        return "c_char_p"
    if ctype.pointers == 0 and ctype.base == "void":
        return "None"
    if ctype.pointers:
        raise HeaderError(f"no Python type for the result {ctype}")
    return PYTHON_FIELDS[header.aliases.get(ctype.base, ctype.base)]


def python_callback(header: Header, callback: Function) -> str:
    arguments = []
    for _, ctype in callback.parameters:
        if ctype.pointers == 1 and ctype.base == "char":
            arguments.append("c_char_p")
        else:
            arguments.append(python_field(header, ctype))
    return f"CFUNCTYPE({', '.join([python_result(header, callback.result)] + arguments)})"


def python_text(header: Header) -> str:
    out = ['"""The C interface in ctypes.', "",
           "Generated from include/softmax.h by bindings/generate.py; do not edit.", '"""',
           "from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double,",
           "                    c_int32, c_int64, c_size_t, c_uint64, c_void_p)",
           "",
           "from ._checked import Address, Int32, Int64, Size",
           "",
           'HEADER_VERSION = "%d.%d.%d"' % header.version,
           ""]
    out += [f"{name} = {value}" for name, value in header.constants.items()]
    for struct in header.structs:
        out += ["", "", f"class {struct.name}(Structure):", "    _fields_ = ["]
        for member in struct.fields:
            times = "" if member.length is None else f" * {member.length}"
            out.append(f'        ("{member.name}", {python_field(header, member.type)}{times}),')
        out.append("    ]")
    out += ["", ""]
    for callback in header.callbacks:
        out.append(f"{callback.name} = {python_callback(header, callback)}")
    out += ["", "# name: (size, {field: offset}) in bytes, as a C compiler lays the structs out.",
            "LAYOUT = {"]
    for struct in header.structs:
        size, _, offsets = layout(struct, header.aliases)
        out.append(f'    "{struct.name}": ({size}, {{')
        out += [f'        "{name}": {offset},' for name, offset in offsets.items()]
        out.append("    }),")
    out += ["}", "", "# name: (restype, argtypes) of every exported function.", "FUNCTIONS = {"]
    for function in header.functions:
        arguments = [python_argument(header, ctype) for _, ctype in function.parameters]
        out.append(f'    "{function.name}": (')
        out.append(f"        {python_result(header, function.result)},")
        out.append(f"        [{', '.join(arguments)}],")
        out.append("    ),")
    out += ["}", ""]
    return "\n".join(out)


# --- Rust ---------------------------------------------------------------------------------------

RUST_SCALARS = {"char": "c_char", "int32_t": "i32", "int64_t": "i64", "uint64_t": "u64",
                "size_t": "usize", "float": "f32", "double": "f64", "void": "c_void"}
RUST_CONSTANTS = [("SOFTMAX_SUCCESS", "softmax_status_t"), ("SOFTMAX_STATUS_", "softmax_status_t"),
                  ("SOFTMAX_ALGO_", "softmax_algo_t"), ("SOFTMAX_DTYPE_", "softmax_dtype_t"),
                  ("SOFTMAX_FLAG_", "u64"), ("SOFTMAX_MAX_NDIM", "usize"), ("SOFTMAX_", "i32")]


def rust_type(header: Header, ctype: CType) -> str:
    base = RUST_SCALARS.get(ctype.base, ctype.base)
    if any(base == callback.name for callback in header.callbacks):
        base = f"Option<{base}>"  # NULL is allowed wherever a callback is
    return "*const " * (ctype.pointers > 0 and ctype.const) + \
        "*mut " * (ctype.pointers - ctype.const if ctype.pointers else 0) + base


RUST_KEYWORDS = {"as", "fn", "impl", "in", "loop", "match", "mod", "move", "ref", "type", "use",
                 "where"}


def rust_signature(header: Header, function: Function, opening: str, closing: str) -> str:
    """`opening(a: A, b: B) -> R closing`, over several lines where one would be too long."""
    arguments = [f"{name}_: " if name in RUST_KEYWORDS else f"{name}: "
                 for name, _ in function.parameters]
    arguments = [name + rust_type(header, ctype)
                 for name, (_, ctype) in zip(arguments, function.parameters)]
    if function.result != CType("void"):
        closing = f" -> {rust_type(header, function.result)}{closing}"
    line = f"{opening}({', '.join(arguments)}){closing}"
    if len(line) <= 100:
        return line
    indent = " " * (len(opening) - len(opening.lstrip()))
    return "\n".join([f"{opening}("] + [f"{indent}    {a}," for a in arguments]
                     + [f"{indent}){closing}"])


RUST_OFFSET = """#[cfg(test)]
macro_rules! offset_of {
    ($type:ty, $field:ident) => {{
        let value = core::mem::MaybeUninit::<$type>::uninit();
        let start = value.as_ptr();
        unsafe { core::ptr::addr_of!((*start).$field) as usize - start as usize }
    }};
}
"""


def rust_layout_test(header: Header, struct) -> list:
    size, alignment, offsets = layout(struct, header.aliases)
    out = [f"const _: () = assert!(size_of::<{struct.name}>() == {size});",
           f"const _: () = assert!(align_of::<{struct.name}>() == {alignment});",
           "",
           "#[test]",
           f"fn fields_of_{struct.name}_are_where_c_has_them() {{"]
    out += [f"    assert_eq!(offset_of!({struct.name}, {name}), {offset});"
            for name, offset in offsets.items()]
    return out + ["}", ""]


def rust_text(header: Header) -> str:
    out = ["// The C interface.", "//",
           "// Generated from include/softmax.h by bindings/generate.py; do not edit.",
           "",
           "use core::ffi::c_void;",
           "use core::mem::{align_of, size_of};",
           "use std::os::raw::c_char;",
           "",
           'pub const HEADER_VERSION: &str = "%d.%d.%d";' % header.version, ""]
    for name, base in header.aliases.items():
        out.append(f"pub type {name} = {RUST_SCALARS[base]};")
    for name, tag in header.opaque.items():
        out += ["", f"/// Opaque: what a [`{name}`] points to.", "#[repr(C)]",
                f"pub struct {tag} {{", "    _private: [u8; 0],",
                "    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,",
                "}", f"pub type {name} = *mut {tag};"]
    for callback in header.callbacks:
        out += ["", f"pub type {callback.name} =",
                rust_signature(header, callback, '    unsafe extern "C" fn', ";")]
    out.append("")
    for name, value in header.constants.items():
        ctype = next(t for prefix, t in RUST_CONSTANTS if name.startswith(prefix))
        out.append(f"pub const {name}: {ctype} = {value};")
    for struct in header.structs:
        out += ["", "#[repr(C)]", "#[derive(Clone, Copy, Debug)]", f"pub struct {struct.name} {{"]
        for member in struct.fields:
            rust = rust_type(header, member.type)
            rust = rust if member.length is None else f"[{rust}; {member.length}]"
            out.append(f"    pub {member.name}: {rust},")
        out.append("}")
    out += ["", "const _: () = assert!(size_of::<usize>() == 8); // as size_t", "", RUST_OFFSET]
    for struct in header.structs:
        out += rust_layout_test(header, struct)
    out.append('extern "C" {')
    out += [rust_signature(header, function, f"    pub fn {function.name}", ";")
            for function in header.functions]
    out += ["}", ""]
    return "\n".join(out)


# --- The command --------------------------------------------------------------------------------

def generate(header_path: Path) -> Dict[str, str]:
    header = header_reader.parse(header_path.read_text(encoding="utf-8"))
    return {PYTHON_FILE: python_text(header), RUST_FILE: rust_text(header)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    parser.add_argument("--header", type=Path, default=ROOT / "include/softmax.h")
    arguments = parser.parse_args()
    try:
        files = generate(arguments.header)
    except (HeaderError, OSError) as error:
        print(f"generate.py: {arguments.header}: {error}", file=sys.stderr)
        return 2
    drift = 0
    for name, text in files.items():
        path = ROOT / name
        if not arguments.check:
            path.write_text(text, encoding="utf-8")
            continue
        committed = path.read_text(encoding="utf-8") if path.exists() else ""
        difference = list(difflib.unified_diff(committed.splitlines(), text.splitlines(),
                                               name, f"what {arguments.header} says", lineterm=""))
        if difference:
            drift += 1
            print("\n".join(difference))
    if drift:
        print(f"generate.py: {drift} files differ from the header; run bindings/generate.py",
              file=sys.stderr)
    return 1 if drift else 0


if __name__ == "__main__":
    sys.exit(main())
