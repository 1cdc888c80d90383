"""The table of the most likely classes, and greedy CTC decoding."""

import unicodedata

import numpy as np

from reference import logits


def save_probabilities(path, rows):
    """Logits whose softmax is the given rows."""
    with np.errstate(divide="ignore"):
        np.save(path, np.log(np.array(rows, np.float64)).astype(np.float32))


GOLDEN = """\
row        top 1         p  top 2         p  top 3         p
plain      cat    75.0000%  dog    25.0000%  鳥      0.0000%
日本語     鳥     60.0000%  dog    30.0000%  cat    10.0000%
ties       cat    33.3333%  dog    33.3333%  鳥     33.3333%
tab\\tname  dog    99.9999%  cat    <0.0001%  鳥     <0.0001%
"""


def test_the_table_is_aligned_also_where_characters_are_wide(softmax):
    save_probabilities(softmax.folder / "x.npy",
                       [[.75, .25, 0], [.1, .3, .6], [1, 1, 1], [4e-7, 1, 3e-7]])
    (softmax.folder / "labels").write_text("cat\ndog\n鳥\n")
    (softmax.folder / "rows").write_text("plain\n日本語\nties\ntab\tname")
    out = softmax.ok("run", "x.npy", "--top", 3, "--labels", "labels", "--rows", "rows")
    assert out == GOLDEN
    # The golden text itself: every line ends at one cell, counted by another table of widths.
    assert {cells(line) for line in out.splitlines()} == {60}


def cells(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else
               0 if unicodedata.combining(c) else 1 for c in text)


def test_golden_table_without_labels(softmax):
    save_probabilities(softmax.folder / "x.npy", [[.5, .25, .125, .125], [.1, .1, .1, .7]])
    assert softmax.ok("run", "x.npy", "--top", 2) == (
        "row  top 1         p  top 2         p\n"
        "0    0      50.0000%  1      25.0000%\n"
        "1    3      70.0000%  0      10.0000%\n")


def test_golden_table_of_log_probabilities(softmax):
    save_probabilities(softmax.folder / "x.npy", [[.5, .5, 0]])
    assert softmax.ok("run", "x.npy", "--top", 3, "--log") == (
        "row  top 1      log p  top 2      log p  top 3  log p\n"
        "0    0      -0.693147  1      -0.693147  2       -inf\n")


def test_a_row_of_nan_is_shown_as_such(softmax):
    np.save(softmax.folder / "x.npy", np.array([[0, np.nan], [1, 1], [np.inf, 0]], np.float32))
    assert softmax.ok("run", "x.npy", "--top", 1) == (
        "row  top 1                  p\n"
        "0    the row is NaN       nan\n"
        "1    0               50.0000%\n"
        "2    the row is NaN       nan\n")


def test_k_beyond_the_classes_shows_them_all(softmax):
    np.save(softmax.folder / "x.npy", np.zeros(2, np.float64))
    assert softmax.ok("run", "x.npy", "--top", 10 ** 12) == (
        "row  top 1         p  top 2         p\n"
        "0    0      50.0000%  1      50.0000%\n")


def test_the_limit_hides_rows_and_says_how_many(softmax):
    np.save(softmax.folder / "x.npy", np.zeros((60, 2), np.float32))
    lines = softmax.ok("run", "x.npy", "--top", 1).splitlines()
    assert len(lines) == 52 and lines[-1] == "... and 10 more rows; --limit 0 shows all"
    assert len(softmax.ok("run", "x.npy", "--top", 1, "--limit", 0).splitlines()) == 61
    lines = softmax.ok("run", "x.npy", "--top", 1, "--limit", 3).splitlines()
    assert len(lines) == 5 and lines[-1] == "... and 57 more rows; --limit 0 shows all"


def test_rows_of_more_dimensions_are_named_and_chosen_by_their_index(softmax):
    x = logits((2, 3, 4)).astype(np.float32)
    np.save(softmax.folder / "x.npy", x)
    (softmax.folder / "axis").write_text("a\nb\nc\n")
    out = softmax.ok("run", "x.npy", "--top", 1, "--rows", "axis").splitlines()
    assert [line.split()[:2] for line in out[1:]] == [
        [f"{i},{j}", "abc"[j]] for i in range(2) for j in range(3)]
    assert [line.split()[2] for line in out[1:]] == [str(i) for i in x.argmax(-1).ravel()]
    chosen = softmax.ok("run", "--row", "1,2", "x.npy", "--top", 1, "--rows", "axis").splitlines()
    assert [chosen[1].split()] == [out[6].split()] and len(chosen) == 2
    under = softmax.ok("run", "x.npy", "--row", 1, "--top", 1, "--rows", "axis").splitlines()
    assert [line.split() for line in under[1:]] == [line.split() for line in out[4:]]


def test_labels_are_split_at_line_feeds_alone_and_not_stripped(softmax):
    np.save(softmax.folder / "x.npy", np.array([5, 4, 3, 2, 1, 0], np.float32))
    labels = " lead\x0bing\n\u3000\n\n\u2028end\r\ntrail \n\x1b[31mred"
    (softmax.folder / "labels").write_bytes(labels.encode())
    out = softmax.ok("run", "x.npy", "--top", 6, "--labels", "labels")
    for shown in ('" lead\\x0bing"', '"\u3000"', ' ""  ', "\\u2028end\\r", '"trail "', "\\x1b[31mred"):
        assert shown in out
    assert len(out.splitlines()) == 2


def test_invalid_utf_8_is_escaped(softmax):
    np.save(softmax.folder / "x.npy", np.array([2, 1], np.float32))
    (softmax.folder / "labels").write_bytes(b"\xff\xc0\x80\xed\xa0\x80ok\xe6\n\xc3\xa9\n")
    out = softmax.ok("run", "x.npy", "--top", 2, "--labels", "labels")
    assert "\\xff\\xc0\\x80\\xed\\xa0\\x80ok\\xe6" in out and "é" in out


def test_every_character_of_the_text_model_has_its_width(softmax, data):
    """All lines of a table of one-class-a-row end at one cell: 18710 characters at once."""
    labels = (data / "ocr_labels.txt").read_text("utf-8").split("\n")[:-1]
    np.save(softmax.folder / "x.npy", np.zeros((len(labels), 1), np.float32))
    out = softmax.ok("run", "x.npy", "--top", 1, "--rows", data / "ocr_labels.txt", "--limit", 0)
    lines = out.split("\n")[1:-1]
    assert len(lines) == len(labels)
    widths = {cells(line) for line in lines}
    assert len(widths) == 1


def test_the_output_and_the_table_may_be_asked_for_together(softmax):
    x = logits((5, 9)).astype(np.float16)
    np.save(softmax.folder / "x.npy", x)
    out = softmax.ok("run", "x.npy", "--top", 1, "-o", "y.npy")
    assert np.load(softmax.folder / "y.npy").dtype == np.float16
    assert [int(line.split()[1]) for line in out.splitlines()[1:]] == list(x.argmax(-1))


def steps(path, classes, best):
    x = np.zeros((len(best), classes), np.float32)
    for step, index in enumerate(best):
        x[step, index] = 20 if index >= 0 else np.nan
    np.save(path, x)


def decode(softmax, *options):
    out = softmax.ok("run", "x.npy", "--labels", "labels", "--ctc", 0, *options)
    return out.splitlines()


def test_ctc_collapses_repeats_and_drops_blanks(softmax):
    (softmax.folder / "labels").write_text("-\na\nb\n<space>\n")
    steps(softmax.folder / "x.npy", 4, [1, 1, 0, 1, 2, 2, 3, 1, 0, 0])
    assert decode(softmax)[1].split()[:3] == ["0-9", "aab", "a"]
    # Nothing is carried over from one line to the next.
    lines = decode(softmax, "--ctc-steps", 2)
    assert [line.split()[1] for line in lines[1:]] == ["a", "a", "b", '"', '""']
    lines = decode(softmax, "--ctc-steps", 1)
    assert [line.split()[0] for line in lines[1:]] == [f"{i}-{i}" for i in range(10)]


def test_ctc_shows_a_row_of_nan(softmax):
    (softmax.folder / "labels").write_text("-\na\nb\n<space>\n")
    steps(softmax.folder / "x.npy", 4, [1, -1, 2, 0])
    line = decode(softmax)[1].split()
    assert line == ["0-3", "a\ufffdb", "row", "1", "nan"]
