# What is measured: a cell is one problem in one mode, a grid is a named list of cells.
import dataclasses

SIZE_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "f64": 8}
COLD_ELEMENTS = 1 << 27
CLIFF_ELEMENTS = 1 << 26

COLD_N = (8, 32, 33, 64, 100, 128, 256, 512, 769, 1000, 1024, 1025, 3000, 4096, 5120, 8192, 12289,
          16384, 24577, 32768, 50257, 65536, 65537, 100352, 128256, 131073, 151936, 151937, 201088,
          262144, 1 << 20, 1 << 22, 1 << 24)
HOT_M = (1, 16, 64, 132, 133, 256, 1000)
HOT_N = (128, 1024, 4096, 32000, 50257, 128256, 262144, 1 << 20)
SHORT_N = (64, 1000, 4096, 32768, 50257, 128256, 262144, 1 << 20)
OFFSET_N = (8, 64, 100, 1000, 1024, 4096, 8192, 50257, 128256, 151937, 262144)
# Peers that compile for every row length do so for these only, unless --all-compile is given:
# a compilation takes seconds, and a cell some tens of milliseconds.
COMPILE_N = frozenset((64, 1024, 4096, 32000, 32768, 128256, 262144, 1 << 20))
COMPILE_HOT_M = frozenset((1, 64))

DENSE_UP_TO = 300
CLIFFS_UP_TO = 4200
CLIFF_STEP = 64


@dataclasses.dataclass(frozen=True)
class Cell:
    grid: str
    mode: str  # cold or hot
    x_dtype: str
    M: int
    N: int
    y_dtype: str = ""  # as x_dtype, unless given
    op: str = "softmax"  # or log
    offset: int = 0  # elements by which the buffers miss an aligned address
    in_place: bool = False

    def __post_init__(self):
        if not self.y_dtype:
            object.__setattr__(self, "y_dtype", self.x_dtype)

    @property
    def elements(self):
        return self.M * self.N

    @property
    def bytes(self):
        """What the call has to move: every input byte once and every output byte once."""
        return self.elements * (SIZE_BYTES[self.x_dtype] + SIZE_BYTES[self.y_dtype])

    @property
    def dtype(self):
        return self.x_dtype if self.x_dtype == self.y_dtype else f"{self.x_dtype}->{self.y_dtype}"

    def __str__(self):
        words = [self.mode, self.dtype, f"{self.M}x{self.N}"]
        words += [self.op] if self.op != "softmax" else []
        words += [f"offset {self.offset}"] if self.offset else []
        words += ["in place"] if self.in_place else []
        return " ".join(words)


def cliff_lengths(around=()):
    """Row lengths of the cliff sweep. Every step is sampled on both sides, so that a neighbour's
    cost can be held against it."""
    lengths = set(range(1, DENSE_UP_TO + 1))
    first = (DENSE_UP_TO // CLIFF_STEP + 1) * CLIFF_STEP
    for middle in range(first, CLIFFS_UP_TO + 1, CLIFF_STEP):
        lengths.update((middle - 1, middle, middle + 1))
    for limit in around:
        lengths.update(range(max(1, limit - 2), limit + 4))
    return sorted(lengths)


def _rows(n, elements=COLD_ELEMENTS):
    return max(1, elements // n)


def _cold(grid, lengths, dtypes, **fields):
    return [Cell(grid, "cold", dtype, _rows(n), n, **fields) for n in lengths for dtype in dtypes]


def _quick():
    cold = [Cell("quick", "cold", dtype, _rows(n), n)
            for n in (64, 1000, 4096, 50257, 128256) for dtype in ("f32", "bf16")]
    hot = [Cell("quick", "hot", "bf16", m, n) for m, n in ((1, 1024), (1, 128256), (64, 32000))]
    return cold + hot


def _mixed():
    return [cell for n in SHORT_N
            for cell in (Cell("mixed", "cold", "bf16", _rows(n), n, "f32"),)]


GRIDS = {
    "cold": lambda _: _cold("cold", COLD_N, ("f32", "f16", "bf16")),
    "hot": lambda _: [Cell("hot", "hot", dtype, m, n)
                      for n in HOT_N for m in HOT_M for dtype in ("f32", "bf16")],
    "cliffs": lambda around: [Cell("cliffs", "cold", dtype, _rows(n, CLIFF_ELEMENTS), n)
                              for dtype in ("f32", "bf16") for n in cliff_lengths(around)],
    "log": lambda _: _cold("log", SHORT_N, ("f32", "bf16"), op="log"),
    "mixed": lambda _: _mixed(),
    "in-place": lambda _: _cold("in-place", SHORT_N, ("f32", "bf16"), in_place=True),
    "offset": lambda _: _cold("offset", OFFSET_N, ("f32", "f16", "bf16"), offset=1),
    "quick": lambda _: _quick(),
}


def cells(name, around=(), dtypes=(), lengths=(), rows=(), **changes):
    """The cells of a grid; dtypes, lengths and rows keep those alone. `lengths` that the grid does
    not have are added to it, and `changes` are made to every cell."""
    chosen = GRIDS[name](around)
    missing = [n for n in lengths if all(cell.N != n for cell in chosen)]
    for n in missing:
        models = {dataclasses.replace(c, N=n, M=c.M if c.mode == "hot" else
                                      _rows(n, CLIFF_ELEMENTS if name == "cliffs"
                                            else COLD_ELEMENTS)): None for c in chosen}
        chosen += models
    chosen = [c for c in chosen
              if (not dtypes or c.x_dtype in dtypes) and (not lengths or c.N in lengths)
              and (not rows or c.M in rows)]
    return [dataclasses.replace(c, **changes) for c in chosen]
