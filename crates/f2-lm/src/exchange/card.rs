//! The model card: what is in an exported folder, and how to use it.

use crate::model::ModelShape;

/// The text of the card.
pub(super) fn write(shape: &ModelShape, parameters: usize) -> String {
    let about = about(shape, parameters);
    if shape.class_ends.is_empty() {
        format!("{FRONT}# A GPT-2 language model\n\n{about}\n{PLAIN}")
    } else {
        let classes = shape.class_ends.len();
        let own = if shape.model.tied {
            "The token vectors are those of the trunk's embedding."
        } else {
            "`head.tokens` [vocabulary, width] holds the token vectors."
        };
        let title = "# A GPT-2 with a frequency factorised softmax (F²-Softmax)";
        let head = F2.replace("CLASSES", &classes.to_string()).replace("TOKEN_VECTORS", own);
        format!("{FRONT}{title}\n\n{about}\n{head}")
    }
}

fn about(shape: &ModelShape, parameters: usize) -> String {
    let model = &shape.model;
    format!(
        "{} layers, width {}, {} heads, {} positions, a vocabulary of {} tokens; {:.1} million \
         parameters.\nToken ids are those of `tokenizer.json`; in models trained by `f2` they are \
         frequency ranks,\nso that id 0 is the most frequent token.\n",
        model.layers,
        model.width,
        model.heads,
        shape.positions,
        shape.vocabulary,
        parameters as f64 / 1e6
    )
}

const FRONT: &str = "---
library_name: transformers
pipeline_tag: text-generation
tags: [gpt2, f2-softmax]
---

";

const PLAIN: &str = r#"## How to use it

```python
from transformers import AutoTokenizer, GPT2LMHeadModel

folder = "FOLDER"
tokenizer = AutoTokenizer.from_pretrained(folder)
model = GPT2LMHeadModel.from_pretrained(folder)
ids = tokenizer("Once upon a time", return_tensors="pt").input_ids
print(tokenizer.decode(model.generate(ids, max_new_tokens=20, do_sample=True, top_k=20)[0]))
```
"#;

const F2: &str = r#"## What is where

`model.safetensors` is the trunk, which loads as `GPT2Model`. Its last hidden states go into a head
that `transformers` does not have, so it lies beside, in `f2_head.safetensors`:

- `head.classes` [CLASSES, width] holds the vectors of CLASSES frequency classes.
- TOKEN_VECTORS
- `head.class_ends` [CLASSES] says which tokens each class owns: those from the end of the class
  before (0 for the first) up to its own, exclusive.

p(token) = p(class) · p(token | class): a softmax over the classes times one over the tokens of the
class (Choi et al., *F²-Softmax*, EMNLP 2020). `classes.json` says how the classes were found.

## How to use it

The model is meant to be decoded class first: draw a class, then a token among the likeliest of
that class. Sampling from the full posterior loses most of the diversity it was trained for.

```python
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, GPT2Model

folder = "FOLDER"
tokenizer = AutoTokenizer.from_pretrained(folder)
trunk = GPT2Model.from_pretrained(folder).eval()
head = load_file(f"{folder}/f2_head.safetensors")
classes = head["head.classes"]
tokens = head.get("head.tokens", trunk.wte.weight.detach())
ends = head["head.class_ends"].tolist()
starts = [0, *ends[:-1]]

def log_posterior(hidden):
    """Log-probabilities of all tokens after hidden states [..., width]."""
    of_class = torch.log_softmax(hidden @ classes.T, -1)
    inside = [torch.log_softmax(hidden @ tokens[a:b].T, -1) for a, b in zip(starts, ends)]
    return torch.cat([of_class[..., [c]] + part for c, part in enumerate(inside)], -1)

def draw(hidden, k=3):
    """A class, and a token among the k likeliest of it, after a hidden state [width]."""
    c = torch.multinomial(torch.softmax(hidden @ classes.T, -1), 1).item()
    inside = hidden @ tokens[starts[c]:ends[c]].T
    top = inside.topk(min(k, ends[c] - starts[c]))
    return starts[c] + top.indices[torch.multinomial(torch.softmax(top.values, -1), 1)].item()

ids = tokenizer("Once upon a time").input_ids
with torch.no_grad():
    for _ in range(20):
        seen = torch.tensor([ids[-trunk.config.n_positions:]])
        ids.append(draw(trunk(seen).last_hidden_state[0, -1]))
print(tokenizer.decode(ids))
```
"#;
