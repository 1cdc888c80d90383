# Runs programs under a time limit, with everything they print in one log file.
import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import threading
import time


@dataclasses.dataclass
class Result:
    code: int | None  # None: ended at the limit, or never started
    output: str
    seconds: float
    note: str = ""  # why code is None

    @property
    def ok(self):
        return self.code == 0


class Log:
    """The log file. Steps may run side by side, so each program's output is written in one go."""

    def __init__(self, path: pathlib.Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = open(path, "w", encoding="utf-8")
        self._lock = threading.Lock()

    def write(self, text: str):
        with self._lock:
            self._file.write(text if text.endswith("\n") else text + "\n")
            self._file.flush()

    def say(self, text: str):
        with self._lock:
            print(text, flush=True)
            self._file.write(text + "\n")
            self._file.flush()


class Clock:
    """The time that is left for the whole run; no step may take more."""

    def __init__(self, seconds: float):
        self._end = time.monotonic() + seconds

    def allow(self, wanted: float) -> float:
        return max(0.0, min(wanted, self._end - time.monotonic()))

    def end(self):
        """No time is left from now on."""
        self._end = time.monotonic()


_under_way: set[subprocess.Popen] = set()  # what `run` has started and not seen end
_ended = threading.Event()


def end_on_signals(clock: Clock):
    """When the run is ended from outside, so are its programs, and nothing else is started: what it
    has found until then is still written."""
    def end(_signal, _frame):
        clock.end()
        _ended.set()
        for process in list(_under_way):
            with contextlib.suppress(ProcessLookupError):  # another thread has just seen it end
                os.killpg(process.pid, signal.SIGKILL)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)


def run(command, limit: float, log: Log, env=None, cwd=None) -> Result:
    """Runs a command to its end or its limit; a command at its limit is ended with its children."""
    command = [str(part) for part in command]
    shown = " ".join(command)
    if limit <= 0:
        log.write(f"\n$ {shown}\n[not started: no time is left]")
        return Result(None, "", 0.0, "not started: no time was left")
    begin = time.monotonic()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            start_new_session=True,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        log.write(f"\n$ {shown}\n[{error}]")
        return Result(None, "", 0.0, f"cannot be started: {error.strerror}")
    _under_way.add(process)
    if _ended.is_set():  # since the limit was asked for
        os.killpg(process.pid, signal.SIGKILL)
    note = ""
    try:
        output, _ = process.communicate(timeout=limit)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        code, note = None, f"ended at its limit of {limit:.0f} s"
    finally:
        _under_way.discard(process)
    seconds = time.monotonic() - begin
    log.write(f"\n$ {shown}\n{output}\n[{note or f'exit code {code}'}, {seconds:.1f} s]")
    return Result(code, output, seconds, note)


def first_of(output: str, texts):
    """The first of the texts that the output holds, or None."""
    return next((text for text in texts if text in output), None)


def write_whole(path: pathlib.Path, text: str):
    """Writes a file that appears only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
