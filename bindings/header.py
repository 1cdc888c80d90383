"""Reads include/softmax.h: constants, opaque types, aliases, structs, callbacks and functions.

It understands the C that softmax.h is written in and nothing more: a declaration that it does not
understand is an error, so nothing of the header can be lost silently.
"""
import re
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple


class HeaderError(Exception):
    """The header holds something that this reader does not understand."""


@dataclass(frozen=True)
class CType:
    """`base` with `pointers` stars; `const` speaks of what a pointer points to."""

    base: str
    pointers: int = 0
    const: bool = False


@dataclass(frozen=True)
class Field:
    name: str
    type: CType
    length: Optional[int] = None  # of an array member


@dataclass(frozen=True)
class Struct:
    name: str
    fields: Tuple[Field, ...]


@dataclass(frozen=True)
class Function:
    name: str
    result: CType
    parameters: Tuple[Tuple[str, CType], ...]


@dataclass
class Header:
    constants: Dict[str, int] = field(default_factory=dict)
    aliases: Dict[str, str] = field(default_factory=dict)  # typedef int32_t softmax_status_t
    opaque: Dict[str, str] = field(default_factory=dict)  # handle type -> struct tag
    structs: List[Struct] = field(default_factory=list)
    callbacks: List[Function] = field(default_factory=list)
    functions: List[Function] = field(default_factory=list)

    @property
    def version(self) -> Tuple[int, int, int]:
        parts = [self.constants["SOFTMAX_VERSION_" + p] for p in ("MAJOR", "MINOR", "PATCH")]
        return parts[0], parts[1], parts[2]


# Size and alignment in bytes, on every target with 64-bit pointers.
SCALARS = {
    "char": 1,
    "int32_t": 4,
    "int64_t": 8,
    "uint64_t": 8,
    "size_t": 8,
    "float": 4,
    "double": 8,
}
POINTER_BYTES = 8


def layout(struct: Struct, aliases: Dict[str, str]) -> Tuple[int, int, Dict[str, int]]:
    """Size, alignment and field offsets in bytes, by the C rules for natural alignment."""
    offset, widest, offsets = 0, 1, {}
    for member in struct.fields:
        if member.type.pointers:
            size = POINTER_BYTES
        else:
            size = SCALARS[aliases.get(member.type.base, member.type.base)]
        offset = (offset + size - 1) // size * size
        offsets[member.name] = offset
        offset += size * (1 if member.length is None else member.length)
        widest = max(widest, size)
    return (offset + widest - 1) // widest * widest, widest, offsets


_IDENTIFIER = r"[A-Za-z_]\w*"


def _strip(text: str) -> Tuple[str, Dict[str, int]]:
    """Takes comments and preprocessor lines out; returns the C that is left, and the #defines."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    lines: List[str] = []
    defines: Dict[str, int] = {}
    skipping = 0  # depth of #ifdef __cplusplus, whose content is not C
    depth: List[bool] = []
    for line in text.split("\n"):
        if not line.lstrip().startswith("#"):
            if not skipping:
                lines.append(line)
            continue
        words = line.split()
        if words[0] in ("#ifdef", "#ifndef", "#if"):
            is_cplusplus = words == ["#ifdef", "__cplusplus"]
            depth.append(is_cplusplus)
            skipping += is_cplusplus
        elif words[0] == "#endif":
            skipping -= depth.pop()
        elif words[0] == "#define":
            if len(words) == 3 and re.fullmatch(r"-?\d+", words[2]):
                defines[words[1]] = int(words[2])
            elif words[1] not in ("SOFTMAX_H", "SOFTMAX_API"):
                raise HeaderError(f"a #define that is no integer: {line.strip()}")
        elif words[0] not in ("#include", "#else"):
            raise HeaderError(f"a preprocessor line that is not understood: {line.strip()}")
    return "\n".join(lines), defines


def _type(text: str) -> CType:
    words = re.sub(r"\*", " * ", text).split()
    pointers = words.count("*")
    const = "const" in words
    names = [w for w in words if w not in ("*", "const")]
    if len(names) != 1 or (const and words[0] != "const"):
        raise HeaderError(f"a type that is not understood: {text!r}")
    return CType(names[0], pointers, const)


def _declarator(text: str) -> Tuple[str, CType, Optional[str]]:
    """`const float *x` or `int64_t shape[SOFTMAX_MAX_NDIM]` -> name, type, array length."""
    match = re.fullmatch(rf"\s*(.*?)({_IDENTIFIER})\s*(?:\[\s*(\w+)\s*\])?\s*", text, re.S)
    if not match:
        raise HeaderError(f"a declaration that is not understood: {text!r}")
    return match.group(2), _type(match.group(1)), match.group(3)


def _parameters(text: str) -> Tuple[Tuple[str, CType], ...]:
    if text.strip() == "void":
        return ()
    parameters = []
    for part in text.split(","):
        name, ctype, length = _declarator(part)
        if length is not None:
            raise HeaderError(f"an array parameter: {part!r}")
        parameters.append((name, ctype))
    return tuple(parameters)


def _integer(text: str, constants: Dict[str, int]) -> int:
    text = text.strip()
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if text in constants:
        return constants[text]
    raise HeaderError(f"not an integer or a known constant: {text!r}")


_DECLARATIONS = [
    ("enum", re.compile(r"enum\s*\{([^{}]*)\}\s*;")),
    ("opaque", re.compile(rf"typedef\s+struct\s+({_IDENTIFIER})\s*\*\s*({_IDENTIFIER})\s*;")),
    ("struct", re.compile(
        rf"typedef\s+struct\s+({_IDENTIFIER})\s*\{{([^{{}}]*)\}}\s*({_IDENTIFIER})\s*;")),
    ("callback", re.compile(
        rf"typedef\s+(\w+)\s*\(\s*\*\s*({_IDENTIFIER})\s*\)\s*\(([^()]*)\)\s*;")),
    ("alias", re.compile(rf"typedef\s+({_IDENTIFIER})\s+({_IDENTIFIER})\s*;")),
    ("function", re.compile(rf"SOFTMAX_API\s+([^;()]*?)({_IDENTIFIER})\s*\(([^()]*)\)\s*;")),
]


def parse(text: str) -> Header:
    """The declarations of softmax.h's text."""
    body, defines = _strip(text)
    header = Header(constants=dict(defines))
    position = 0
    while body[position:].strip():
        position += len(body[position:]) - len(body[position:].lstrip())
        for kind, pattern in _DECLARATIONS:
            match = pattern.match(body, position)
            if match:
                break
        else:
            line = body.count("\n", 0, position) + 1
            raise HeaderError(f"not understood: {body[position:position + 60]!r} (C line {line})")
        position = match.end()
        if kind == "enum":
            for entry in match.group(1).split(","):
                if not entry.strip():
                    continue
                name, equals, value = entry.partition("=")
                if not equals:
                    raise HeaderError(f"a constant without a value: {entry.strip()}")
                header.constants[name.strip()] = _integer(value, header.constants)
        elif kind == "opaque":
            header.opaque[match.group(2)] = match.group(1)
        elif kind == "alias":
            header.aliases[match.group(2)] = match.group(1)
        elif kind == "struct":
            fields = []
            for part in match.group(2).split(";"):
                if not part.strip():
                    continue
                name, ctype, length = _declarator(part)
                count = None if length is None else _integer(length, header.constants)
                fields.append(Field(name, ctype, count))
            header.structs.append(Struct(match.group(3), tuple(fields)))
        else:
            function = Function(match.group(2), _type(match.group(1)), _parameters(match.group(3)))
            (header.callbacks if kind == "callback" else header.functions).append(function)
    if not header.functions or not header.structs:
        raise HeaderError("no functions or no structs: this is not softmax.h")
    return header
