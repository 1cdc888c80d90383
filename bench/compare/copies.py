# The yardstick: the better of cudaMemcpyAsync and a 16-byte streaming copy over the same bytes.
import torch

from .candidate import first_line

# Loads in flight a thread, waves of blocks over the card (0: a block a tile), streaming hints.
SHAPES = {"cold": ((4, 0, 1), (8, 0, 1), (4, 8, 1), (4, 16, 1), (8, 8, 1)),
          "hot": ((1, 0, 0), (4, 0, 0), (4, 0, 1), (8, 4, 0))}
THREADS = 256

SOURCE = r"""
template <int kLoads, int kStreaming>
__device__ __forceinline__ void copy_tiles(const uint4 *x, uint4 *y, long long n) {
  const long long tile = 256LL * kLoads;
  for (long long at = blockIdx.x * tile; at < n; at += gridDim.x * tile) {
    uint4 v[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const long long i = at + k * 256 + threadIdx.x;
      if (i < n) v[k] = kStreaming ? __ldcs(x + i) : x[i];
    }
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const long long i = at + k * 256 + threadIdx.x;
      if (i < n) {
        if (kStreaming) __stcs(y + i, v[k]); else y[i] = v[k];
      }
    }
  }
}
#define COPY(name, loads, streaming)                                                    \
  extern "C" __global__ void __launch_bounds__(256)                                     \
  name(const uint4 *x, uint4 *y, long long n, const unsigned char *x_tail,              \
       unsigned char *y_tail, int tail) {                                               \
    copy_tiles<loads, streaming>(x, y, n);                                              \
    if (blockIdx.x == 0 && threadIdx.x < tail) y_tail[threadIdx.x] = x_tail[threadIdx.x]; \
  }
COPY(copy_1_0, 1, 0)
COPY(copy_4_0, 4, 0)
COPY(copy_4_1, 4, 1)
COPY(copy_8_0, 8, 0)
COPY(copy_8_1, 8, 1)
"""


class Copies:
    def __init__(self, device, say):
        self._device = device
        self._say = say
        self._chosen = {}  # (mode, size class) -> shape
        self._module = None
        try:
            import cupy
            self._module = cupy.RawModule(code=SOURCE, options=("-std=c++17",))
            self._module.get_function("copy_4_1")
            self._stream = cupy.cuda.ExternalStream(device.stream_address)
        except Exception as error:  # pylint: disable=broad-except
            self._module = None
            say(f"the streaming copy is Triton's, not CUDA C: {first_line(error)}")

    def measure(self, cell, pairs):
        """{"copy_us", "copy_kind"} for a cell. Raises only where no copy can be timed at all."""
        memcpy = [lambda x=x, y=y: y.copy_(x) for x, y in pairs]
        best = {"copy_us": self._device.time(cell.mode, memcpy)["us"], "copy_kind": "memcpy"}
        try:
            launches = self._streaming(cell, pairs)
            us = self._device.time(cell.mode, launches)["us"] if launches else best["copy_us"]
        except Exception as error:  # pylint: disable=broad-except
            self._say(f"no streaming copy of {cell}: {first_line(error)}")
            return best
        return {"copy_us": us, "copy_kind": "kernel"} if us < best["copy_us"] else best

    def _streaming(self, cell, pairs):
        if self._module is None:
            return self._triton(cell, pairs)
        size_class = (cell.mode, (cell.bytes // 2).bit_length())
        if size_class not in self._chosen:
            launches = {shape: self._bind(pairs, *shape) for shape in SHAPES[cell.mode]}
            self._chosen[size_class] = min(
                launches, key=lambda shape: self._device.quick_us(cell.mode, launches[shape]))
        return self._bind(pairs, *self._chosen[size_class])

    def _bind(self, pairs, loads, waves, streaming):
        import numpy

        kernel = self._module.get_function(f"copy_{loads}_{streaming}")
        bound = []
        for x, y in pairs:
            size = x.numel()
            vectors, tail = size // 16, size % 16
            tiles = max(1, -(-vectors // (THREADS * loads)))
            blocks = min(tiles, waves * self._device.multiprocessors) if waves else tiles
            arguments = (numpy.uint64(x.data_ptr()), numpy.uint64(y.data_ptr()),
                         numpy.int64(vectors), numpy.uint64(x.data_ptr() + 16 * vectors),
                         numpy.uint64(y.data_ptr() + 16 * vectors), numpy.int32(tail))

            def launch(blocks=blocks, arguments=arguments):
                with self._stream:
                    kernel((blocks,), (THREADS,), arguments)

            bound.append(launch)
        return bound

    def _triton(self, cell, pairs):
        """Where there is no CuPy: the same copy by Triton; none of bytes that are no words."""
        from . import triton_rows

        if any(x.numel() % 4 for x, _ in pairs):
            return None
        return [triton_rows.bind_copy(x.view(torch.int32), y.view(torch.int32),
                                      streaming=cell.mode == "cold") for x, y in pairs]
