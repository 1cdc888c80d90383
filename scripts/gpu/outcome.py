# What came of a step, and the short table of all of them.
import dataclasses

SKIP_CODE = 77  # how the project's test programs say that they skipped everything
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclasses.dataclass
class Outcome:
    name: str
    status: str
    note: str = ""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    skipped_names: list = dataclasses.field(default_factory=list)
    failed_names: list = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    details: dict = dataclasses.field(default_factory=dict)  # further counts, for the record
    data: dict = dataclasses.field(default_factory=dict)  # what was measured; not in the record

    def as_json(self):
        values = dataclasses.asdict(self)
        values["seconds"] = round(self.seconds, 1)
        values |= values.pop("details")
        del values["data"]
        return {key: value for key, value in values.items() if value not in ("", [], {})}

    @classmethod
    def of_json(cls, values):
        own = {field.name for field in dataclasses.fields(cls)} - {"details", "data"}
        return cls(**{key: value for key, value in values.items() if key in own},
                   details={key: value for key, value in values.items() if key not in own})


def judge(name, counts, result, source_id=None) -> Outcome:
    """The outcome of a test program from its counts and its exit. A program that ran no test, or
    whose exit contradicts its counts, has not passed."""
    outcome = Outcome(name, FAILED, seconds=result.seconds)
    if counts is not None:
        outcome.passed = counts["passed"]
        outcome.failed = counts["failed"]
        outcome.skipped = counts["skipped"]
        outcome.skipped_names = counts.get("skipped_names", [])
        outcome.failed_names = counts.get("failed_names", [])
        outcome.details.update(counts.get("other", {}))
    if result.code is None:
        outcome.note = result.note
    elif result.code == SKIP_CODE and not outcome.failed:
        outcome.status = SKIPPED
        outcome.note = (result.output.strip().splitlines() or ["all skipped"])[-1]
    elif counts is None:
        outcome.note = f"exit code {result.code} and no readable summary"
    elif counts["failed"] > 0:
        outcome.note = "failed: " + ", ".join(outcome.failed_names[:3])
    elif source_id and counts.get("source_id") not in (None, source_id):
        outcome.note = f"built from source {counts['source_id']}, not {source_id}"
    elif result.code != 0:
        outcome.note = f"exit code {result.code}"
    elif counts["passed"] == 0 and counts["skipped"] > 0:
        outcome.status = SKIPPED
        outcome.note = f"all skipped: {outcome.skipped_names[0]}" if outcome.skipped_names else ""
    elif counts["passed"] == 0:
        outcome.note = "ran no test"
    else:
        outcome.status = PASSED
    return outcome


def table(outcomes) -> str:
    rows = [("step", "result", "passed", "failed", "skipped", "seconds", "")]
    for o in outcomes:
        rows.append((o.name, o.status, str(o.passed), str(o.failed), str(o.skipped),
                     f"{o.seconds:.1f}", o.note))
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    lines = []
    for row in rows:
        cells = [row[i].ljust(widths[i]) if i < 2 else row[i].rjust(widths[i]) for i in range(6)]
        lines.append("  ".join(cells + [row[6]]).rstrip())
    return "\n".join(lines)
