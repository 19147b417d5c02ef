//! Tokens drawn by the device itself, so that no logits travel.

use f2_engine::{ClassSampling, Device, Head, Sampling, TokenSampling};

use super::sampler::Wanted;
use super::scores::Scores;
use super::{SmallClass, Strategy, Token};
use crate::Error;

/// Chooses the next token of every text; nothing where device or strategy leave it to the host.
pub(super) fn choose<D: Device>(
    scores: &mut Scores<'_, D>,
    strategy: &Strategy,
    hidden: &D::Activations,
    wanted: &mut [Wanted<'_>],
) -> Result<Option<Vec<Token>>, Error> {
    let Some(sampling) = sampling(strategy, &scores.model.decoder.head) else {
        return Ok(None);
    };
    if !scores.can_draw(&sampling) {
        return Ok(None);
    }
    let uniforms: Vec<[f64; 2]> =
        wanted.iter_mut().map(|wanted| [(); 2].map(|()| wanted.random.uniform())).collect();
    let drawn = scores.draw(&sampling, hidden, &uniforms)?;
    let tokens = drawn.into_iter().map(|drawn| {
        let id = drawn.id.ok_or(Error::NoProbabilities)?;
        Ok(Token { id, log_probability: drawn.log_probability, class: drawn.class })
    });
    tokens.collect::<Result<_, _>>().map(Some)
}

/// The strategy as devices take it; nothing where it needs the text so far, the tokens in order, or
/// other classes than the one drawn.
fn sampling(strategy: &Strategy, head: &Head) -> Option<Sampling> {
    let Strategy { temperature, top_k, top_p, min_p, typical, .. } = *strategy;
    let repeats = strategy.repetition_penalty == 1.0 && strategy.block_ngrams == 0;
    let whole = |share: Option<f64>| share.is_none_or(|share| share >= 1.0);
    let draw = strategy.class_draw(head);
    let fills = draw.is_some_and(|draw| draw.small == SmallClass::Fill);
    let class = draw.map(|draw| ClassSampling {
        temperature: draw.temperature,
        top_k: draw.top_k,
        top_p: draw.top_p,
    });
    let token = TokenSampling { temperature, top_k, min_p };
    (repeats && whole(top_p) && whole(typical) && !fills).then_some(Sampling { class, token })
}
