"""Decoupled decoding of F² models: `model.generate(..., custom_generate=FOLDER)`.

The options are those of `F2ForCausalLM.generate` in modeling_f2.py.
"""


def generate(*args, model, **kwargs):
    """Draws a class before each token, then a token of that class.

    `transformers` passes `model` by name, so that `inputs` may still be given by position.
    """
    if not hasattr(model.config, "class_ends"):
        raise ValueError(f"{type(model).__name__} has no frequency classes to draw from")
    return type(model).generate(model, *args, **kwargs)
