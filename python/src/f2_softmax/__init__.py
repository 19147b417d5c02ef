"""F²-Softmax for Python: diversity metrics of generated text, frequency classes, and a torch layer.

- `f2_softmax.metrics`: Self-BLEU, Distinct, MS-Jaccard and others, as `f2 eval` computes them.
- `f2_softmax.mefmax`: frequency classes from token counts.
- `f2_softmax.torch`: `F2Softmax`, an output layer for PyTorch. Import it explicitly; it requires torch.
- the program `f2`, which the wheel installs; `python -m f2_softmax` also runs it.
"""

from importlib.metadata import version as _version

from . import metrics
from .classes import Selection, mefmax, ranks

__all__ = ["Selection", "mefmax", "metrics", "ranks"]
__version__ = _version("f2-softmax")
