"""Reads softmax.h as text: its functions, structs and constants, and its share of prose."""

import re

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def without_comments(text):
    return COMMENT.sub(" ", text)


def functions(text):
    """Every function that is declared SOFTMAX_API."""
    code = re.sub(r"^\s*#.*$", "", without_comments(text), flags=re.MULTILINE)
    return set(re.findall(r"\bSOFTMAX_API\b[^;(]*?(\w+)\s*\(", code))


def structs(text):
    """Each struct that has fields, with the names of its fields in order."""
    result = {}
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", without_comments(text),
                                 re.DOTALL):
        result[name] = re.findall(r"(\w+)(?:\[\w+\])?;", body)
    return result


def constants(text):
    """Every enumerator, and the macros that have a number."""
    code = without_comments(text)
    names = []
    for body in re.findall(r"\benum \{(.*?)\};", code, re.DOTALL):
        names += re.findall(r"(SOFTMAX_\w+)\s*=", body)
    names += re.findall(r"^#define (SOFTMAX_MAX_\w+) \d+", code, re.MULTILINE)
    return names


def includes(text):
    return set(re.findall(r'^\s*#\s*include\s*([<"][^>"]*[>"])', without_comments(text),
                          re.MULTILINE))


def prose_share(text):
    """The share of comments in what is not white space."""
    def visible(part):
        return len(re.sub(r"\s", "", part))
    return visible("".join(COMMENT.findall(text))) / visible(text)
