"""F²-Softmax as a PyTorch layer. Needs torch 2.4 or newer, and nothing else of this package."""

from .layer import F2Output, F2Softmax

__all__ = ["F2Output", "F2Softmax"]
