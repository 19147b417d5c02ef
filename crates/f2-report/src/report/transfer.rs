//! Transfer: the paper's table of pretraining.

use super::palette::Palette;
use super::{Block, Section, training};
use crate::metrics_table::MetricTable;
use crate::paper;
use crate::results::{CorpusResult, Results, RunResult, TransferResult};

/// The columns of the paper's table.
const COLUMNS: [&str; 4] = ["PPL", "MSJ2", "SB2", "Uniq"];

/// Transfer from a pretrained model compared with training from scratch: the paper's last table.
pub(super) fn section(results: &Results, palette: &Palette) -> Option<Section> {
    let transfer = results.transfer.as_ref()?;
    let printed = results.paper.map_or_else(Vec::new, |_| paper::transfer());
    let table = MetricTable::new(&transfer.records).beside(&printed).only(&COLUMNS).build();
    let beside = if printed.is_empty() { "" } else { " (the paper: Melo-Lyrics, k = 20)" };
    let caption = format!("F² from scratch and transferred, {}{beside}", transfer.decoding);
    let mut blocks = vec![Block::table("transfer", caption, table)];
    // Without the pretraining, which is on a different text.
    let runs: Vec<&RunResult> = transfer.runs.iter().skip(1).collect();
    let chart = training::chart(
        "transfer-validation",
        "Validation loss with and without pretraining",
        &runs,
        palette,
        |run| &run.validation,
    );
    blocks.extend(chart.map(|figure| Block::Figures(vec![figure])));
    let trained = training::table(&transfer.runs);
    blocks.push(Block::table("transfer-training", "The cost of each model", trained));
    Some(Section {
        id: "transfer",
        title: "Transfer".to_owned(),
        text: vec![explanation(transfer)],
        blocks,
    })
}

fn explanation(transfer: &TransferResult) -> String {
    let tokens = |corpus: &CorpusResult| corpus.splits.first().map_or(0, |split| split.tokens);
    let TransferResult { pretraining, target, .. } = transfer;
    format!(
        "A model was pretrained with the plain softmax on {} ({} tokens). Its embeddings were put \
         in the order of the token counts of {} ({} tokens), classes and class vectors were added, \
         and training was continued with F². F² from scratch has the same tokenizer, settings and \
         number of steps. PPL is that of the test split, comparable between these models, but not \
         with models that have another tokenizer.",
        pretraining.name,
        tokens(pretraining),
        target.name,
        tokens(target)
    )
}

/// The outcome, in a sentence.
pub(super) fn lead(results: &Results) -> Option<String> {
    let runs = &results.transfer.as_ref()?.runs;
    let perplexity = |run: &RunResult| run.perplexity;
    let [_, scratch, transferred] = runs.as_slice() else { return None };
    let steps = transferred.steps;
    Some(format!(
        "Pretrained on {}, F² reaches a test perplexity of {:.1} in {steps} steps; from scratch {:.1}.",
        results.transfer.as_ref()?.pretraining.name,
        perplexity(transferred)?,
        perplexity(scratch)?
    ))
}
