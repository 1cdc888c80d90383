# What every candidate of a cell can be asked; ours and each peer fill it in.


class Absent(Exception):
    """A candidate cannot run a cell; the message is the one line that says why."""


class Candidate:
    name = "?"
    in_place = False  # whether y may be x

    def prepare(self, cells, buffers):
        """Compiles for these cells what can be compiled before the first is measured."""

    def refuse(self, cell):
        """Why this candidate cannot run the cell, or None."""
        if cell.in_place and not self.in_place:
            return "has no in-place form"
        return None

    def bind(self, cell, x, y):
        """A function without arguments that enqueues the cell's call on the current stream. It
        returns the output where that is not y. Raises Absent."""
        raise NotImplementedError

    def facts(self, cell, x, y):
        """What else is to be recorded about the call."""
        del cell, x, y
        return {}

    def close(self):
        """Ends what still runs on this candidate's behalf."""


def first_line(error):
    """An error as one line of a sensible length."""
    text = (str(error).strip().splitlines() or [""])[0].strip()
    return (f"{type(error).__name__}: {text}" if text else type(error).__name__)[:200]
