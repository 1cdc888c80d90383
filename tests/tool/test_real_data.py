"""Logits of real models: the answers of examples/data/expected.json."""

import json

import numpy as np
import pytest

RELATIVE = 1e-4


@pytest.fixture
def expected(data):
    return json.loads((data / "expected.json").read_text("utf-8"))


def percent(text):
    assert text.endswith("%"), text
    return float(text[:-1]) / 100


def close(got, want):
    return abs(got - want) <= RELATIVE * abs(want)


def test_the_file_types_are_those_expected(softmax, data, expected):
    rows = expected["magika_logits"]["rows"]
    softmax.ok("run", data / "magika_logits.npy", "-o", "y.npy")
    y = np.load(softmax.folder / "y.npy")
    assert y.shape == (len(rows), 214) and len(rows) == 34
    labels = (data / "magika_labels.txt").read_text("utf-8").split("\n")[:-1]
    out = softmax.ok("run", data / "magika_logits.npy", "--top", 2, "--labels",
                     data / "magika_labels.txt", "--rows", data / "magika_rows.txt")
    lines = out.splitlines()[1:]
    assert len(lines) == 34
    for row, line, want in zip(y, lines, rows):
        best, second = np.argsort(-row)[:2]
        assert best == want["index"] and labels[best] == want["label"]
        assert labels[second] == want["second_label"]
        assert close(row[best], want["probability"])
        assert close(row[second], want["second_probability"])
        name, label, p, second_label, _ = line.split()
        assert (name, label, second_label) == (want["file"], want["label"], want["second_label"])
        assert close(percent(p), want["probability"])


def test_the_text_lines_are_those_expected(softmax, data, expected):
    lines = expected["ocr_logits"]["lines"]
    softmax.ok("run", data / "ocr_logits.npy", "-o", "y.npy", "--dtype", "f32")
    y = np.load(softmax.folder / "y.npy")
    assert y.dtype == np.float32 and y.shape == (56, 18710)
    want_index = [index for line in lines for index in line["best_index"]]
    want_p = [p for line in lines for p in line["best_probability"]]
    assert list(y.argmax(-1)) == want_index
    assert all(close(got, want) for got, want in zip(y.max(-1), want_p))
    out = softmax.ok("run", data / "ocr_logits.npy", "--labels", data / "ocr_labels.txt", "--ctc", 0,
                     "--ctc-steps", 28)
    shown = out.splitlines()[1:]
    assert len(shown) == len(lines) == 2
    for line, want in zip(shown, lines):
        last = want["first_row"] + want["rows"] - 1
        least = int(np.argmin(want["best_probability"]))
        assert line.startswith(f"{want['first_row']}-{last}")
        assert f"  {want['text']}  " in line
        assert f"row {want['first_row'] + least}  " in line
        assert close(percent(line.split()[-1]), min(want["best_probability"]))


def test_the_attention_goes_where_expected(softmax, data, expected):
    want = expected["minilm_attention"]
    softmax.ok("run", data / "minilm_attention.npy", "-o", "y.npy")
    y = np.load(softmax.folder / "y.npy")
    tokens = (data / "minilm_tokens.txt").read_text("utf-8").split("\n")[:-1]
    assert y.shape == (12, 17, 17) and len(tokens) == 17
    for name in ("strongest", "strongest_between_words", "strongest_from_pronoun"):
        entry = want[name]
        assert close(y[entry["head"], entry["query"], entry["key"]], entry["probability"])
        out = softmax.ok("run", data / "minilm_attention.npy", "--top", 1, "--labels",
                         data / "minilm_tokens.txt", "--rows", data / "minilm_tokens.txt", "--row",
                         f"{entry['head']},{entry['query']}")
        index, query, key, p = out.splitlines()[1].split()
        assert index == f"{entry['head']},{entry['query']}"
        assert (query, key) == (entry["query_token"], entry["key_token"])
        assert close(percent(p), entry["probability"])
    assert y.max() == y[want["strongest"]["head"], want["strongest"]["query"],
                        want["strongest"]["key"]]
