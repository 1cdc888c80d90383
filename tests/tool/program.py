"""Runs the softmax program and says what must hold after a refusal."""

import os
import subprocess

PROGRAM = os.environ.get("SOFTMAX_PROGRAM", "")
SOURCE = os.environ.get("SOFTMAX_SOURCE", "")


class Program:
    def __init__(self, folder):
        self.folder = folder

    def start(self, *arguments, **options):
        words = [PROGRAM, *(os.fspath(word) if not isinstance(word, (int, float)) else str(word)
                            for word in arguments)]
        options.setdefault("cwd", self.folder)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        environment = {k: v for k, v in os.environ.items() if k != "SOFTMAX_LOG"}
        environment.update(options.pop("env", {}))
        return subprocess.Popen(words, env=environment, **options)

    def run(self, *arguments, **options):
        """Returns (exit code, stdout, stderr)."""
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=120)
        return process.returncode, (out or b"").decode(), (err or b"").decode()

    def ok(self, *arguments, **options):
        """Runs it to success, without a word on stderr, and returns stdout."""
        code, out, err = self.run(*arguments, **options)
        assert code == 0, f"exit code {code}: {err}"
        assert err == ""
        return out

    def refuses(self, *arguments, code=2, **options):
        """Runs it to a refusal: the exit code, one line on stderr, nothing on stdout, and the folder
        as it was. Returns the line without the program's name."""
        before = self.files()
        got, out, err = self.run(*arguments, **options)
        assert got == code, f"exit code {got}, not {code}: {out}{err}"
        assert out == ""
        assert err.startswith("softmax: ") and err.endswith("\n") and err.count("\n") == 1, repr(err)
        assert self.files() == before
        return err[len("softmax: "):-1]

    def files(self):
        """Name and content of every regular file in the folder, and the names of all others."""
        return {path.name: path.read_bytes()
                if path.is_file() and path.stat().st_size < 1 << 24 and os.access(path, os.R_OK)
                else None for path in self.folder.iterdir()}
