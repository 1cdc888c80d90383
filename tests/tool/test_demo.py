"""scripts/demo, the part after the build: what it prints holds the expected answers."""

import json
import subprocess

from program import PROGRAM, SOURCE

SKIPS_INSTALLING = ["--program", PROGRAM]


def demo(*arguments, cwd="/"):
    return subprocess.run([f"{SOURCE}/scripts/demo", *arguments], cwd=cwd, capture_output=True,
                          stdin=subprocess.DEVNULL, check=False)


def test_demo(data):
    done = demo(*SKIPS_INSTALLING)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    expected = json.loads((data / "expected.json").read_text("utf-8"))
    for row in expected["magika_logits"]["rows"]:
        shown = [line for line in lines if line[:1] == [row["file"]]]
        assert len(shown) == 1
        assert (shown[0][1], shown[0][3]) == (row["label"], row["second_label"])
        assert abs(float(shown[0][2].rstrip("%")) / 100 / row["probability"] - 1) < 1e-4
    text = done.stdout.decode()
    for line in expected["ocr_logits"]["lines"]:
        assert f"  {line['text']}  " in text
    labels = (data / "ocr_labels.txt").read_text("utf-8").split("\n")
    steps = [line for line in lines if line[:1] == ["line"]]
    want = [(labels[index], p) for line in expected["ocr_logits"]["lines"]
            for index, p in zip(line["best_index"], line["best_probability"])]
    assert len(steps) == len(want) == 56
    for step, (label, p) in zip(steps, want):
        assert step[4] == label and abs(float(step[5].rstrip("%")) / 100 / p - 1) < 1e-4
    pronoun = expected["minilm_attention"]["strongest_from_pronoun"]
    shown = [line for line in lines if line[:2] == ["1,8", pronoun["query_token"]]]
    assert len(shown) == 1 and shown[0][2] == pronoun["key_token"]
    assert abs(float(shown[0][3].rstrip("%")) / 100 / pronoun["probability"] - 1) < 1e-4


def test_demo_refuses_what_it_does_not_know():
    for arguments in (["--program"], ["--help-me"], ["a", "b"], ["--program", "/absent"]):
        done = demo(*arguments)
        assert done.returncode == 2 and done.stdout == b"" and done.stderr.count(b"\n") == 1


def test_demo_fails_where_the_program_fails():
    done = demo("--program", "/bin/false")
    assert done.returncode != 0
