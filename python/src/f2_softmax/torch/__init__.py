"""F²-Softmax as a PyTorch layer. Requires torch 2.4 or newer, and no other part of this package."""

from .layer import F2Output, F2Softmax

__all__ = ["F2Output", "F2Softmax"]
