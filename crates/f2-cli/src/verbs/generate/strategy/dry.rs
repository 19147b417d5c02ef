//! The flags of DRY, the penalty on continuing a repetition.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use f2_lm::decode::Dry;
use f2_lm::run::Vocabulary;

use crate::failure::Failure;

#[derive(Args, Debug, Default)]
pub(super) struct DryFlags {
    /// DRY: the penalty on a token that continues a repetition, in nats; 0.8 is usual.
    #[arg(long, value_name = "X")]
    dry_multiplier: Option<f64>,
    /// DRY: what each further token of the repetition multiplies the penalty by [default: 1.75].
    #[arg(long, value_name = "X", requires = "dry_multiplier")]
    dry_base: Option<f64>,
    /// DRY: the shortest repetition whose continuation is penalised, in tokens [default: 2].
    #[arg(long, value_name = "N", requires = "dry_multiplier")]
    dry_allowed_length: Option<usize>,
    /// DRY: look for repetitions in the last N tokens; 0 for the whole text [default: 0].
    #[arg(long, value_name = "N", requires = "dry_multiplier")]
    dry_range: Option<usize>,
    /// DRY: tokens with this text end a repetition; can be given several times
    /// [default: a line break, : \" *].
    #[arg(long, value_name = "TEXT", requires = "dry_multiplier",
        value_parser = NonEmptyStringValueParser::new())]
    dry_breaker: Vec<String>,
}

impl DryFlags {
    /// The penalty; none without its multiplier.
    pub(super) fn penalty(&self, vocabulary: &Vocabulary) -> Result<Option<Dry>, Failure> {
        let Some(multiplier) = self.dry_multiplier else { return Ok(None) };
        let breakers = if self.dry_breaker.is_empty() {
            vocabulary.tokens_with(&Dry::USUAL_BREAKERS)?
        } else {
            vocabulary.tokens_with(&self.dry_breaker)?
        };
        let usual = Dry::default();
        Ok(Some(Dry {
            multiplier,
            base: self.dry_base.unwrap_or(usual.base),
            allowed_length: self.dry_allowed_length.unwrap_or(usual.allowed_length),
            range: self.dry_range.unwrap_or(usual.range),
            breakers,
        }))
    }
}
