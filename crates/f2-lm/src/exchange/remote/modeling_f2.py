"""A GPT-2 decoder with a frequency-factorised softmax head (Choi et al., *F²-Softmax*, EMNLP 2020).

p(token) = p(class) · p(token | class): a softmax over frequency classes times a softmax over the
tokens of the class. `forward` returns the log-probabilities of the full posterior as logits, so
that everything which applies a softmax to logits works unchanged. `generate` draws a class first
and a token in it second, as the model is meant to be decoded.
"""

import torch
from torch import nn
from transformers import GPT2Model, GPT2PreTrainedModel, LogitsProcessor, LogitsProcessorList
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import CausalLMOutputWithPast

from .configuration_f2 import F2Config


class F2Head(nn.Linear):
    """Class vectors `weight` [classes, width], and token vectors unless they are tied."""

    def __init__(self, config):
        super().__init__(config.n_embd, len(config.class_ends), bias=False)
        self.ranges = list(zip([0, *config.class_ends[:-1]], config.class_ends))
        self.tokens = None
        if not config.tie_word_embeddings:
            self.tokens = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, hidden, tied):
        """Log-probabilities [..., vocabulary] of hidden states [..., width], in float32 or wider."""
        tokens = tied if self.tokens is None else self.tokens.weight
        class_logits = nn.functional.linear(hidden, self.weight)
        token_logits = nn.functional.linear(hidden, tokens)
        dtype = torch.promote_types(hidden.dtype, torch.float32)
        classes = torch.log_softmax(class_logits, -1, dtype=dtype)
        parts = [
            classes[..., c : c + 1] + torch.log_softmax(token_logits[..., start:end], -1, dtype=dtype)
            for c, (start, end) in enumerate(self.ranges)
        ]
        return torch.cat(parts, -1)


class ClassDraw(LogitsProcessor):
    """Draws a class for each text and removes the tokens of all others.

    Temperature, top-k, nucleus and other truncations that follow then act inside the class.
    `token_ks` holds a k for each class, if top-k is to be applied here instead.
    """

    def __init__(self, ranges, temperature, top_k=None, top_p=1.0, token_ks=None):
        if not temperature >= 0:
            raise ValueError(f"class_temperature must be a number from 0 up; got {temperature}")
        if top_k is not None and not 1 <= top_k <= len(ranges):
            raise ValueError(f"class_top_k must be from 1 to {len(ranges)}; got {top_k}")
        if not 0 < top_p <= 1:
            raise ValueError(f"class_top_p must be above 0 and up to 1; got {top_p}")
        self.ranges, self.temperature, self.top_k, self.top_p = ranges, temperature, top_k, top_p
        sizes = torch.tensor([end - start for start, end in ranges])
        self.class_of_token = torch.repeat_interleave(torch.arange(len(ranges)), sizes)
        self.token_ks = None if token_ks is None else torch.tensor(token_ks)

    def __call__(self, input_ids, scores):
        logs = torch.stack([scores[:, start:end].logsumexp(-1) for start, end in self.ranges], -1)
        chosen = self.draw(logs)
        outside = self.class_of_token.to(scores.device) != chosen[:, None]
        scores = scores.masked_fill(outside, float("-inf"))
        if self.token_ks is None:
            return scores
        last = self.token_ks.to(scores.device)[chosen][:, None] - 1
        kth = scores.sort(-1, descending=True).values.gather(-1, last)
        return scores.masked_fill(scores < kth, float("-inf"))

    def draw(self, logs):
        """A class for each row of `logs` [texts, classes]."""
        if self.temperature == 0:
            return logs.argmax(-1)
        p = torch.softmax(logs.double() / self.temperature, -1)
        if self.top_k is not None:
            p = p.where(p >= p.topk(self.top_k).values[:, -1:], 0.0)
        if self.top_p < 1:
            p = self.nucleus(p / p.sum(-1, keepdim=True))
        return torch.multinomial(p, 1)[:, 0]

    def nucleus(self, p):
        """The likeliest classes whose mass does not exceed `top_p`, at least one, and their ties.

        Unlike the nucleus of Holtzman et al., the class that crosses `top_p` is dropped.
        """
        ordered = p.sort(-1, descending=True).values
        kept = (ordered.cumsum(-1) <= self.top_p + 1e-12).sum(-1, keepdim=True).clamp(min=1)
        return p.where(p >= ordered.gather(-1, kept - 1), 0.0)


def grown_ks(ranges, k, growth):
    """The k of each class: `k` times its size relative to the smallest, to the power `growth`."""
    if not 0 <= growth < float("inf"):
        raise ValueError(f"top_k_growth must be a number from 0 up; got {growth}")
    if not k:
        raise ValueError("top_k_growth needs top_k, the k of the smallest class")
    sizes = [end - start for start, end in ranges]

    def grown(size):
        try:
            return int(min(size, k * (size / min(sizes)) ** growth + 0.5))
        except OverflowError:
            return size

    return [grown(size) for size in sizes]


class F2ForCausalLM(GPT2PreTrainedModel, GenerationMixin):
    """A GPT-2 trunk with an F² head."""

    config_class = F2Config

    def __init__(self, config):
        super().__init__(config)
        self.transformer = GPT2Model(config)
        self.lm_head = F2Head(config)
        self.post_init()

    def get_output_embeddings(self):
        # No single matrix gives the logits. Tied token vectors are read from the embedding.
        return None

    def resize_token_embeddings(self, *args, **kwargs):
        raise ValueError("the vocabulary of an F² model is bound to its frequency classes")

    def forward(
        self,
        input_ids=None,
        past_key_values=None,
        attention_mask=None,
        token_type_ids=None,
        position_ids=None,
        inputs_embeds=None,
        labels=None,
        use_cache=None,
        logits_to_keep=0,
        return_dict=None,
        **kwargs,
    ):
        """`labels` are shifted here, as in `GPT2LMHeadModel`; those of -100 are ignored."""
        trunk = self.transformer(
            input_ids,
            past_key_values=past_key_values,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            use_cache=use_cache,
            return_dict=True,
            **kwargs,
        )
        hidden = trunk.last_hidden_state
        if isinstance(logits_to_keep, int):
            hidden = hidden[:, -logits_to_keep:] if logits_to_keep else hidden
        else:
            hidden = hidden[:, logits_to_keep]
        logits = self.lm_head(hidden, self.transformer.wte.weight)
        loss = None
        if labels is not None:
            loss = self.loss_function(logits, labels, vocab_size=self.config.vocab_size, **kwargs)
        output = CausalLMOutputWithPast(
            loss=loss,
            logits=logits,
            past_key_values=trunk.past_key_values,
            hidden_states=trunk.hidden_states,
            attentions=trunk.attentions,
        )
        return output.to_tuple() if return_dict is False else output

    @torch.no_grad()
    def generate(
        self,
        inputs=None,
        generation_config=None,
        logits_processor=None,
        *args,
        joint=None,
        class_temperature=None,
        class_top_k=None,
        class_top_p=None,
        top_k_growth=None,
        **kwargs,
    ):
        """`GenerationMixin.generate`, with a class drawn before each token.

        Without `do_sample` the likeliest class is taken, and the likeliest token in it. With it,
        `temperature`, `top_k`, `top_p` and the other options of tokens act inside the class.

        joint: choose from the full posterior instead. Beam search always does.
        class_temperature: sharpens (below 1) or flattens (above 1) the classes' probabilities; 0
            takes the likeliest class. 1 with `do_sample`, else 0.
        class_top_k: keeps the likeliest classes.
        class_top_p: keeps the likeliest classes up to this mass, never beyond it: 1 as in the
            paper's text (the default), 0.9 as in its authors' code.
        top_k_growth: with `do_sample`, a class of n tokens keeps top_k * (n / n_min) ** top_k_growth
            of them, where n_min are those of the smallest class. 0 (the default) keeps top_k of each.

        All five may also be set in the generation config, where `f2 export` writes those the model
        was tuned with; arguments take precedence.
        """
        given = [self.generation_config, generation_config]

        def option(name, default):
            of_configs = [getattr(config, name, None) for config in given if config is not None]
            values = [value for value in [*of_configs, kwargs.get(name)] if value is not None]
            return values[-1] if values else default

        searches, samples = option("num_beams", 1) > 1, option("do_sample", False)
        class_options = [class_temperature, class_top_k, class_top_p, top_k_growth]
        asks_for_class = any(value is not None for value in class_options)
        if joint is None:
            joint = option("joint", False) and not asks_for_class
        if (joint or searches) and asks_for_class:
            raise ValueError("class_* and top_k_growth need a class to be drawn: not joint, not beam search")
        processors = LogitsProcessorList(logits_processor or [])
        if not (joint or searches):

            def of_class(name, value, default):
                # The config's sampling settings do not apply when the likeliest class is taken.
                usual = option(name, default) if samples else default
                return usual if value is None else value

            growth, token_ks = of_class("top_k_growth", top_k_growth, 0.0), None
            if growth != 0:
                token_ks = grown_ks(self.lm_head.ranges, option("top_k", None), growth)
                # One k for all classes would keep too few tokens of the larger ones.
                kwargs["top_k"] = 0
            draw = ClassDraw(
                self.lm_head.ranges,
                of_class("class_temperature", class_temperature, 1.0 if samples else 0.0),
                of_class("class_top_k", class_top_k, None),
                of_class("class_top_p", class_top_p, 1.0),
                token_ks,
            )
            processors.append(draw)
        return super().generate(inputs, generation_config, processors, *args, **kwargs)
