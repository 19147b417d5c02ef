//! Prompts for a model trained on pairs: sources, for which it writes targets.

use std::path::Path;

use f2_corpus::{Corpus, Split};
use f2_lm::batch::Pair;
use f2_lm::run::SavedModel;

use super::prompts::Prompts;
use super::protocol::Rule;
use crate::failure::Failure;

/// The sources of a split with their targets, for a model trained on pairs.
pub(super) fn of_split(
    folder: &Path,
    split: Split,
    model: &SavedModel,
) -> Result<Prompts, Failure> {
    let corpus = Corpus::open(folder)?;
    let Some(separator) = model.separator().filter(|_| corpus.is_of_pairs()) else {
        return Err(refusal(&corpus, model));
    };
    let tokens = model.tokens(&corpus, split)?;
    let read = |range: std::ops::Range<u64>| {
        let mut ids = vec![0; (range.end - range.start) as usize];
        tokens.read(range, &mut ids);
        ids
    };
    let mut prompts = Prompts { protocol: Some(Rule::Pairs), ..Prompts::default() };
    for pair in Pair::all(&*tokens, separator)? {
        let source = read(pair.tokens.start..pair.separator);
        prompts.texts.push(Some(model.vocabulary.decode(&source)?));
        prompts.ids.push([source, vec![separator]].concat());
        // Without the token that ends the text.
        prompts.references.push(read(pair.separator + 1..pair.tokens.end - 1));
    }
    Ok(prompts)
}

fn refusal(corpus: &Corpus, model: &SavedModel) -> Failure {
    let (folder, of_model) = (corpus.folder().display(), model.folder.display());
    if corpus.is_of_pairs() {
        Failure::data(format!("{folder} holds pairs, and {of_model} was not trained on pairs"))
            .advise("train a model on this corpus: `f2 train CORPUS`")
    } else {
        Failure::data(format!("{folder} holds running text, and `--protocol pairs` takes pairs"))
            .advise("take `--protocol paper` or `lyrics`, or prepare pairs: `f2 prepare --pairs`")
    }
}

/// Appends the separator to every source without one, and cuts the beginning of those that leave no
/// room for `new_tokens`; a source may always fill half of the model's positions.
pub(super) fn complete(
    prompts: &mut Prompts,
    model: &SavedModel,
    separator: u32,
    new_tokens: usize,
    strict: bool,
) -> Result<(), Failure> {
    let positions = model.shape.positions;
    let room = positions.saturating_sub(new_tokens).max(positions / 2).max(1);
    let mut cut = 0;
    for (number, ids) in (1..).zip(&mut prompts.ids) {
        if ids.is_empty() {
            return Err(Failure::usage(format!("source {number} is empty"))
                .advise("a model trained on pairs takes prompts as sources: give some text"));
        }
        if !ids.contains(&separator) {
            ids.push(separator);
        }
        let Some(excess) = ids.len().checked_sub(room).filter(|excess| *excess > 0) else {
            continue;
        };
        if strict {
            let reason = format!("source {number} has {} tokens with its separator", ids.len());
            let room = format!("{room} of the model's {positions} are left for it");
            return Err(Failure::usage(format!("{reason}, and {room}")).advise(
                "shorten it, write fewer `--new-tokens`, or leave --strict out to keep its end",
            ));
        }
        ids.drain(..excess);
        cut += 1;
    }
    if cut > 0 {
        remark!(
            "note: {cut} of {} sources are cut to their last {} tokens, which leaves room for the \
             target among the {positions} the model sees",
            prompts.ids.len(),
            room - 1
        );
    }
    Ok(())
}
