//! Suggestions for unknown settings: the name that was probably meant.

/// The names of a setting in other programs, by its name here.
const ELSEWHERE: [(&str, &[&str]); 25] = [
    ("batch.micro", &["accumulation", "gradient_accumulation_steps", "micro_batch_size"]),
    (
        "batch.recompute",
        &["activation_checkpointing", "checkpoint_activations", "gradient_checkpointing"],
    ),
    (
        "batch.sequence",
        &[
            "block_size",
            "context",
            "context_length",
            "max_length",
            "n_ctx",
            "n_positions",
            "seq_len",
        ],
    ),
    ("batch.size", &["batch", "batch_size", "bs", "train_batch_size"]),
    ("budget.epochs", &["epoch", "epochs", "max_epochs", "num_epochs", "num_train_epochs"]),
    ("budget.minutes", &["max_minutes", "minutes", "time"]),
    ("budget.steps", &["iterations", "max_iters", "max_steps", "num_steps", "steps"]),
    ("budget.tokens", &["max_train_tokens", "tokens"]),
    ("checkpoint.every_steps", &["save_every", "save_interval", "save_steps"]),
    ("evaluation.every_steps", &["eval_every", "eval_interval", "eval_steps"]),
    ("evaluation.patience", &["early_stopping", "early_stopping_patience", "patience"]),
    ("model.dropout", &["attn_pdrop", "dropout", "embd_pdrop", "resid_pdrop"]),
    ("model.feed_forward", &["d_ff", "ffn_dim", "intermediate_size", "n_inner"]),
    ("model.heads", &["n_head", "n_heads", "num_attention_heads", "num_heads"]),
    ("model.layers", &["depth", "n_layer", "n_layers", "num_hidden_layers", "num_layers"]),
    ("model.tied", &["tie", "tie_weights", "tie_word_embeddings"]),
    ("model.vocabulary", &["n_vocab", "vocab", "vocab_size"]),
    ("model.width", &["d_model", "dim", "embed_dim", "hidden_dim", "hidden_size", "n_embd"]),
    ("objective.name", &["loss", "objective"]),
    ("optimiser.clip", &["clip", "clip_grad", "grad_clip", "gradient_clipping", "max_grad_norm"]),
    ("optimiser.epsilon", &["adam_epsilon", "eps"]),
    ("optimiser.learning_rate", &["lr", "max_lr", "rate"]),
    ("optimiser.weight_decay", &["wd", "weight_decay"]),
    ("schedule.shape", &["lr_schedule", "lr_scheduler", "lr_scheduler_type", "scheduler"]),
    ("schedule.warmup_steps", &["warmup", "warmup_iters", "warmup_steps"]),
];

/// The setting that other programs call `name`. If the name begins with one of our sections, only
/// settings of that section are considered.
pub(super) fn known_elsewhere(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let (section, last) = name.rsplit_once('.').unwrap_or(("", &name));
    let section_of = |key: &'static str| key.split_once('.').map_or(key, |(section, _)| section);
    let is_ours = ELSEWHERE.iter().any(|(key, _)| section_of(key) == section);
    let (key, _) = ELSEWHERE
        .iter()
        .filter(|(key, _)| !is_ours || section_of(key) == section)
        .find(|(_, names)| names.contains(&last))?;
    Some(key)
}

/// The candidate that takes the fewest edits to reach from `name`, unless it takes so many that
/// it cannot have been meant.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (closeness(name, candidate), candidate))
        .filter(|(edits, candidate)| *edits <= candidate.len().max(name.len()).div_ceil(2))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits between a key and a known one. A key without its section is compared with the last
/// part alone, since forgetting the section is the likelier mistake.
fn closeness(name: &str, candidate: &str) -> usize {
    let whole = edits(name, candidate);
    match candidate.rsplit_once('.') {
        Some((_, last)) if !name.contains('.') => whole.min(edits(name, last)),
        _ => whole,
    }
}

/// Levenshtein distance, one row at a time.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_known_pairs() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("same", "same"), 0);
    }

    #[test]
    fn names_of_other_programs_lead_to_ours() {
        for (name, key) in [
            ("lr", "optimiser.learning_rate"),
            ("optimizer.lr", "optimiser.learning_rate"),
            ("batch-size", "batch.size"),
            ("n_layer", "model.layers"),
            ("model.depth", "model.layers"),
            ("training.epochs", "budget.epochs"),
        ] {
            assert_eq!(known_elsewhere(name), Some(key), "{name}");
        }
        // Not the steps of another section.
        assert_eq!(known_elsewhere("evaluation.steps"), None);
        assert_eq!(known_elsewhere("colour"), None);
    }

    #[test]
    fn a_forgotten_section_is_found_and_nonsense_is_not() {
        let keys = ["model.layers", "optimiser.learning_rate", "batch.size"];
        assert_eq!(nearest("learning_rate", keys), Some("optimiser.learning_rate"));
        assert_eq!(nearest("model.layer", keys), Some("model.layers"));
        assert_eq!(nearest("zzzzzzzzzzzzzzz", keys), None);
    }
}
