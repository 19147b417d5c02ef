//! The model card: `README.md` of an exported folder.

use super::training::Training;
use crate::decode::{DecodingKeys, Strategy};
use crate::model::ModelShape;

/// The facts a model card is written from.
pub(super) struct Card<'a> {
    pub(super) shape: &'a ModelShape,
    pub(super) parameters: usize,
    pub(super) training: &'a Training,
    /// The default decoding; `None` if callers must choose.
    pub(super) decoding: Option<&'a Strategy>,
    /// Whether the tokenizer has a token that ends texts.
    pub(super) ends_texts: bool,
}

impl Card<'_> {
    /// The text of the card.
    pub(super) fn text(&self) -> String {
        let (tags, title, usage) = if self.is_f2() {
            ("[gpt2, f2-softmax, custom_generate]", F2_TITLE, self.f2_usage())
        } else {
            ("[gpt2]", "A GPT-2 language model", PLAIN.to_owned())
        };
        let usage = match self.decoding {
            Some(_) => usage.replace(F2_OPTIONS, "").replace(PLAIN_OPTIONS, ""),
            None => usage,
        } + &self.decoded();
        let front = FRONT.replace("TAGS", tags);
        let (about, training) = (self.about(), self.trained());
        let harness = self.harness();
        format!("{front}# {title}\n\n{about}\n{training}\n{usage}\n{harness}")
    }

    fn is_f2(&self) -> bool {
        !self.shape.class_ends.is_empty()
    }

    fn about(&self) -> String {
        let ModelShape { model, positions, vocabulary, .. } = self.shape;
        let classes = match self.shape.class_ends.len() {
            0 => String::new(),
            count => format!(" in {count} frequency classes"),
        };
        format!(
            "{} layers, width {}, {} heads, {positions} positions, a vocabulary of {vocabulary} \
             tokens{classes};\n{:.1} million parameters. Token ids are those of `tokenizer.json`; \
             in models trained by `f2`\nthey are frequency ranks, so that id 0 is the most frequent \
             token.\n",
            model.layers,
            model.width,
            model.heads,
            self.parameters as f64 / 1e6
        )
    }

    fn trained(&self) -> String {
        let Training { corpus, corpus_tokens, objective, progress, perplexity } = self.training;
        let mut lines = vec!["## Training\n".to_owned()];
        lines.push(match corpus {
            Some(name) => format!("- Text: `{name}`, a corpus prepared with `f2 prepare`"),
            None => "- Text: not recorded; name it here".to_owned(),
        });
        if let Some(tokens) = corpus_tokens {
            lines.push(format!("- Training split: {tokens} tokens"));
        }
        if let Some(name) = objective {
            lines.push(format!("- Objective: {name}"));
        }
        if let Some((steps, tokens)) = progress {
            lines.push(format!("- Steps: {steps}, {tokens} predicted tokens"));
        }
        if let Some(perplexity) = perplexity {
            lines.push(format!("- Validation perplexity (full posterior): {perplexity:.3}"));
        }
        lines.join("\n") + "\n"
    }

    fn f2_usage(&self) -> String {
        let tokens = if self.shape.model.tied {
            "The token vectors are those of the embedding, `transformer.wte.weight`."
        } else {
            "`lm_head.tokens.weight` [vocabulary, width] holds the token vectors."
        };
        F2.replace("CLASSES", &self.shape.class_ends.len().to_string())
            .replace("TOKEN_VECTORS", tokens)
    }

    /// The paragraph about the default decoding.
    fn decoded(&self) -> String {
        self.decoding.map_or_else(String::new, |strategy| {
            let keys = DecodingKeys::from(strategy);
            format!(
                "\nWithout options `generate` uses the settings in `generation_config.json`, with \
                 which the text came closest to\nhuman text when measured (`f2 tune`): {keys}.\n"
            )
        })
    }

    /// How to run the evaluation harness, which needs a token to start every text with.
    fn harness(&self) -> String {
        let mut arguments = "pretrained=FOLDER".to_owned();
        if self.is_f2() {
            arguments += ",trust_remote_code=True";
        }
        let mut note = "";
        if !self.ends_texts {
            arguments += ",prefix_token_id=0";
            note = "\nThe tokenizer has no end of text, so the harness is told which token to put \
                    before each text;\nhere the most frequent one.\n";
        }
        format!(
            "With lm-evaluation-harness:\n\n```sh\nlm_eval --model hf --model_args {arguments} \
             --tasks TASK\n```\n{note}"
        )
    }
}

/// The sampling options in the examples, if the model has no default decoding.
const PLAIN_OPTIONS: &str = ", do_sample=True, top_k=20";
const F2_OPTIONS: &str = ", do_sample=True, top_k=3";

const F2_TITLE: &str = "A GPT-2 with a frequency-factorised softmax (F²-Softmax)";

const FRONT: &str = "---
library_name: transformers
pipeline_tag: text-generation
license: # fill in: the licence of these weights
tags: TAGS
---

";

const PLAIN: &str = r#"## How to use it

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = "FOLDER"
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder)
ids = tokenizer("Once upon a time", return_tensors="pt").input_ids
print(tokenizer.decode(model.generate(ids, max_new_tokens=20, do_sample=True, top_k=20)[0]))
```
"#;

const F2: &str = r#"## How to use it

The folder holds the Python code of its head, so `transformers` must be told to trust it.

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = "FOLDER"
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)
ids = tokenizer("Once upon a time", return_tensors="pt").input_ids
print(tokenizer.decode(model.generate(ids, max_new_tokens=20, do_sample=True, top_k=3)[0]))
```

`generate` draws a class first, then a token of that class: sampling from the full posterior loses
most of the diversity the model was trained for. `class_temperature`, `class_top_k` and
`class_top_p` change the draw of the class, `top_k_growth` keeps more tokens of larger classes;
`joint=True` uses the full posterior. The logits of the model are the log-probabilities of the full
posterior. Tried with transformers 4.57 and 5.23.

## The tensors of the head

p(token) = p(class) · p(token | class): a softmax over the classes times one over the tokens of the
class (Choi et al., *F²-Softmax*, EMNLP 2020).

- `lm_head.weight` [CLASSES, width] holds the class vectors.
- TOKEN_VECTORS
- `class_ends` in `config.json` says which tokens each class holds: those from the end of the class
  before (0 for the first) up to its own, exclusive. `classes.json` says how they were found.

`GPT2LMHeadModel` refuses this folder; `GPT2Model` loads its trunk.
"#;
