//! `f2 prepare` in parts: `--part`, `--learn` and `--merge`.

use std::path::Path;

use f2_corpus::{Part, PartDone, Summary, TokenizerChoice, learn_vocabulary, merge, prepare_part};
use serde_json::json;

use super::Prepare;
use super::bars::Bars;
use super::summary::{grouped, remark_on, remark_on_vocabulary};
use crate::failure::{Failure, Outcome};
use crate::output::print;

/// The flags that the parts have fixed, which cannot be given again.
pub(super) const IN_PARTS: [&str; 21] = [
    "inputs",
    "train",
    "valid",
    "test",
    "split",
    "split_by",
    "documents",
    "max_document",
    "field",
    "pairs",
    "source_field",
    "target_field",
    "separator",
    "lossy",
    "vocab_size",
    "tokenizer",
    "keep_ids",
    "end_of_text",
    "start_of_text",
    "text",
    "shard_tokens",
];

impl Prepare {
    /// Does the next step of one part.
    pub(super) fn prepare_part(&self, part: Part) -> Outcome {
        let options = self.options()?;
        let (done, was_there) = prepare_part(&options, part, &Bars::default())?;
        let (step, documents) = match &done {
            PartDone::Counted { documents } => ("counted", *documents),
            PartDone::Encoded { splits } => {
                ("encoded", splits.iter().map(|size| size.documents).sum())
            }
        };
        if self.json {
            let (number, of) = (part.number(), part.of());
            let result = json!({
                "part": number, "of": of, "step": step, "documents": documents, "was_there": was_there,
            });
            return print(&format!("{result}\n"));
        }
        let parts = self.out().display();
        let next = match (&done, &options.tokenizer) {
            (PartDone::Counted { .. }, TokenizerChoice::Train { .. }) => format!(
                "`f2 prepare --learn {parts}` and this again, or `f2 prepare --merge {parts} --out CORPUS`"
            ),
            _ => format!("`f2 prepare --merge {parts} --out CORPUS`"),
        };
        let already = if was_there { " already" } else { "" };
        remark!("when all parts are {step}, next {next}");
        print(&format!("{part} is {step}{already}: {} documents\n", grouped(documents)))
    }

    /// Learns the vocabulary from all parts.
    pub(super) fn learn_from(&self, parts: &Path) -> Outcome {
        let learned = learn_vocabulary(parts, &Bars::default())?;
        if self.json {
            let result = json!({
                "vocabulary_size": learned.size,
                "counts_divided_by": learned.counts_divided_by,
                "was_there": learned.was_there,
            });
            return print(&format!("{result}\n"));
        }
        remark_on_vocabulary(learned.size, learned.asked, learned.counts_divided_by);
        remark!(
            "next run the parts again, to encode, then `f2 prepare --merge {} --out CORPUS`",
            parts.display()
        );
        let already = if learned.was_there { ", learned already" } else { "" };
        print(&format!("vocabulary: {} tokens{already}\n", grouped(learned.size as u64)))
    }

    /// Makes the corpus from its parts, and reports what is unusual about it.
    pub(super) fn merge_from(&self, parts: &Path) -> Result<Summary, Failure> {
        let threads = self.threads.count();
        let merged = merge(parts, self.out(), self.force, threads, &Bars::default())?;
        remark_on(&merged.summary, &merged.options);
        Ok(merged.summary)
    }
}
