"""Runs one test function of a file, for ctest: see cmake/python_tests.cmake.

A test is a function whose name, after test_, is a sentence. It fails by raising, and skips by
raising Skip, which ends with the exit code that ctest shows as skipped.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types

SKIPPED_EXIT_CODE = 77


class Skip(Exception):
    """The test cannot say anything on this machine; the argument says why."""


def load_config():
    with open(os.environ["SOFTMAX_TEST_CONFIG"], encoding="utf-8") as file:
        config = types.SimpleNamespace(**json.load(file))
    for name in ("source", "build", "shared", "static"):
        setattr(config, name, pathlib.Path(getattr(config, name)))
    return config


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed")


def run(*command, cwd=None, env=None, extra_env=None, fails=False):
    """Runs a command to its end and returns what it printed, stderr included. Its failing, or with
    fails=True its succeeding, fails the test."""
    environment = dict(os.environ if env is None else env)
    environment.update(extra_env or {})
    words = [os.fspath(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                          check=False)
    if (done.returncode != 0) != fails:
        expected = "should have failed" if fails else f"failed with {done.returncode}"
        raise AssertionError(f"{expected}: {' '.join(words)}\n{done.stdout}")
    return done.stdout


@contextlib.contextmanager
def scratch_folder():
    with tempfile.TemporaryDirectory(prefix="softmax-test-") as folder:
        yield pathlib.Path(folder)


def expect(condition, message):
    """An assertion that python -O keeps."""
    if not condition:
        raise AssertionError(message)


def expect_equal(actual, expected, what):
    expect(actual == expected, f"{what}:\n  is       {actual!r}\n  expected {expected!r}")


def expect_in(part, text, what):
    expect(part in text, f"{what}: {part!r} is not in\n{text}")


def expect_raises(function, *arguments, part):
    """For self-tests of checks: the check must refuse, and for this reason."""
    try:
        function(*arguments)
    except AssertionError as refusal:
        expect_in(part, str(refusal), "refused, but for another reason")
        return
    raise AssertionError(f"the check accepted what it must refuse ({part})")


def main(namespace):
    if len(sys.argv) != 2 or not callable(namespace.get(sys.argv[1])):
        print(f"usage: {sys.argv[0]} test_<sentence>", file=sys.stderr)
        return 2
    try:
        namespace[sys.argv[1]]()
    except Skip as reason:
        print(f"skipped: {reason}")
        return SKIPPED_EXIT_CODE
    except AssertionError as failure:
        print(f"failed: {failure}")
        return 1
    return 0
