"""Converts texts of any common type to one of the two forms that the extension module reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

LARGEST_ID = 2**32 - 1


def prepared(argument: str, texts: Any) -> list | tuple[Any, list[int]]:
    """A list of texts, or an array of all token ids with the end of each text.

    Arrays of `uint32` are not copied; other integers are converted. Strings and lists are
    returned unchanged.
    """
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"{argument} is a {type(texts).__name__}; it must be a list of texts")
    if isinstance(texts, list):
        return _flattened(argument, texts) if texts and _is_array(texts[0]) else texts
    if getattr(texts, "is_nested", False):
        return _from_nested(argument, texts)
    if hasattr(texts, "detach") and hasattr(texts, "numpy"):
        texts = texts.detach().cpu().numpy()
    if _is_array(texts):
        return _from_array(argument, texts)
    # pandas series, tuples, generators.
    if not isinstance(texts, Iterable):
        raise TypeError(f"{argument} is a {type(texts).__name__}; it must be a list of texts")
    return prepared(argument, list(texts))


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array_interface__") or (hasattr(value, "detach") and hasattr(value, "numpy"))


def _from_array(argument: str, array: Any) -> list | tuple[Any, list[int]]:
    if array.dtype.kind in "OUS":
        return prepared(argument, array.tolist())
    if array.ndim != 2:
        raise ValueError(f"{argument} must have two dimensions, texts and tokens; it has {array.ndim}")
    rows, columns = array.shape
    return _ids(argument, array).reshape(-1), [columns * (row + 1) for row in range(rows)]


def _flattened(argument: str, texts: list) -> tuple[Any, list[int]]:
    import numpy

    arrays = []
    for number, text in enumerate(texts):
        array = numpy.asarray(text.detach().cpu() if hasattr(text, "detach") else text)
        if array.ndim != 1:
            raise ValueError(f"{argument}: text {number} has {array.ndim} dimensions; a text has one")
        arrays.append(_ids(f"{argument}: text {number}", array))
    ends = numpy.cumsum([len(array) for array in arrays]).tolist()
    return numpy.concatenate(arrays), ends


def _from_nested(argument: str, tensor: Any) -> tuple[Any, list[int]]:
    """A nested tensor of torch, whose jagged layout has all values in one row."""
    if not hasattr(tensor, "offsets") or tensor.dim() != 2 or tensor.is_cuda:
        return _flattened(argument, list(tensor.unbind()))
    values, offsets = tensor.values().detach().numpy(), tensor.offsets().tolist()
    return _ids(argument, values)[offsets[0] :], [end - offsets[0] for end in offsets[1:]]


def _ids(argument: str, array: Any) -> Any:
    """The array as contiguous `uint32`; the array itself if it already is."""
    import numpy

    if array.dtype.kind not in "iu":
        if array.size:
            raise TypeError(f"{argument} holds {array.dtype}; token ids are integers")
        array = array.astype(numpy.uint32)
    if array.dtype != numpy.uint32 and array.size and not 0 <= int(array.min()) <= int(array.max()) <= LARGEST_ID:
        wrong = int(array.min()) if array.min() < 0 else int(array.max())
        raise ValueError(f"{argument} holds {wrong}; token ids go from 0 to {LARGEST_ID}")
    return numpy.ascontiguousarray(array, dtype=numpy.uint32)
