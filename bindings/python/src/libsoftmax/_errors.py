"""The exception that a failed call of the library raises."""
from __future__ import annotations


class SoftmaxError(RuntimeError):
    """A call that the library refused, or that failed.

    status      the number, SOFTMAX_STATUS_* of softmax.h; status // 1000 is its category
    name        the constant's name, such as "SOFTMAX_STATUS_BAD_SHAPE"
    cuda_error  the cudaError_t behind it, or 0
    """

    def __init__(self, status: int, name: str, sentence: str, cuda_error: int = 0) -> None:
        super().__init__(f"{sentence} [{name}]")
        self.status = status
        self.name = name
        self.cuda_error = cuda_error
