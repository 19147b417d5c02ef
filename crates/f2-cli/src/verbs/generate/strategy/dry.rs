//! The flags of DRY, the penalty on continuing a repetition.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use f2_lm::decode::Dry;
use f2_lm::run::Vocabulary;

use crate::failure::Failure;

#[derive(Args, Debug, Default)]
pub(super) struct DryFlags {
    /// DRY: the penalty on a token that continues a repetition, in nats; 0.8 is usual.
    #[arg(id = "dry_multiplier", long = "dry-multiplier", value_name = "X")]
    multiplier: Option<f64>,
    /// DRY: the factor by which each further token of the repetition multiplies the penalty
    /// [default: 1.75].
    #[arg(id = "dry_base", long = "dry-base", value_name = "X", requires = "dry_multiplier")]
    base: Option<f64>,
    /// DRY: the shortest repetition whose continuation is penalised, in tokens [default: 2].
    #[arg(
        id = "dry_allowed_length",
        long = "dry-allowed-length",
        value_name = "N",
        requires = "dry_multiplier"
    )]
    allowed_length: Option<usize>,
    /// DRY: look for repetitions in the last N tokens; 0 for the whole text [default: 0].
    #[arg(id = "dry_range", long = "dry-range", value_name = "N", requires = "dry_multiplier")]
    range: Option<usize>,
    /// DRY: tokens with this text end a repetition; can be given several times
    /// (line breaks, colons, quotation marks and asterisks if none is given).
    #[arg(id = "dry_breaker", long = "dry-breaker", value_name = "TEXT", requires = "dry_multiplier",
        value_parser = NonEmptyStringValueParser::new())]
    breaker: Vec<String>,
}

impl DryFlags {
    /// The penalty; `None` without its multiplier.
    pub(super) fn penalty(&self, vocabulary: &Vocabulary) -> Result<Option<Dry>, Failure> {
        let Some(multiplier) = self.multiplier else { return Ok(None) };
        let breakers = if self.breaker.is_empty() {
            vocabulary.tokens_with(&Dry::USUAL_BREAKERS)?
        } else {
            vocabulary.tokens_with(&self.breaker)?
        };
        let usual = Dry::default();
        Ok(Some(Dry {
            multiplier,
            base: self.base.unwrap_or(usual.base),
            allowed_length: self.allowed_length.unwrap_or(usual.allowed_length),
            range: self.range.unwrap_or(usual.range),
            breakers,
        }))
    }
}
