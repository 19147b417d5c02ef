"""Configuration of a GPT-2 decoder with a frequency-factorised softmax head (F²-Softmax)."""

from transformers import GPT2Config


class F2Config(GPT2Config):
    """A GPT-2 configuration with frequency classes.

    Token ids are frequency ranks. Class `c` holds the ids from `class_ends[c - 1]` (0 for the
    first class) up to, not including, `class_ends[c]`; the last end is `vocab_size`.
    """

    model_type = "f2_gpt2"

    def __init__(self, class_ends=None, **kwargs):
        super().__init__(**kwargs)
        self.class_ends = [self.vocab_size] if class_ends is None else list(class_ends)
        starts = [0, *self.class_ends[:-1]]
        if any(end <= start for start, end in zip(starts, self.class_ends)):
            raise ValueError(f"class_ends must rise from above 0; got {self.class_ends}")
        if self.class_ends[-1:] != [self.vocab_size]:
            raise ValueError(
                f"the last of class_ends must be vocab_size = {self.vocab_size}; got {self.class_ends}"
            )
