//! Tokens drawn by the device itself, so that no logits travel.

use f2_engine::{ClassLaw, Device, DrawHead, TokenLaw};

use super::sampler::Wanted;
use super::scores::Scores;
use super::{SmallClass, Strategy, Token};
use crate::Error;
use crate::model::Head;

/// The largest k that devices look for, and the most classes they draw one of.
const MOST_K: usize = 256;
const MOST_CLASSES: usize = 4096;

/// Chooses the next token of every text; nothing where device or strategy leave it to the host.
pub(super) fn choose<D: Device>(
    scores: &mut Scores<'_, D>,
    strategy: &Strategy,
    hidden: &D::Activations,
    wanted: &mut [Wanted<'_>],
) -> Result<Option<Vec<Token>>, Error> {
    let head = &scores.model.decoder.head;
    let (Some(law), Some(head)) = (token_law(strategy), draw_head(strategy, head)) else {
        return Ok(None);
    };
    if !scores.can_draw() {
        return Ok(None);
    }
    let uniforms: Vec<[f64; 2]> =
        wanted.iter_mut().map(|wanted| [(); 2].map(|()| wanted.random.uniform())).collect();
    let drawn = scores.draw(head, law, hidden, &uniforms)?;
    let tokens = drawn.into_iter().map(|drawn| {
        let id = drawn.id.ok_or(Error::NoProbabilities)?;
        Ok(Token { id, log_probability: drawn.log_probability, class: drawn.class })
    });
    tokens.collect::<Result<_, _>>().map(Some)
}

/// The law of tokens; nothing where it needs the text so far, or the tokens in order.
fn token_law(strategy: &Strategy) -> Option<TokenLaw> {
    let Strategy { temperature, top_k, top_p, min_p, typical, .. } = *strategy;
    let repeats = strategy.repetition_penalty == 1.0 && strategy.block_ngrams == 0;
    let whole = |share: Option<f64>| share.is_none_or(|share| share >= 1.0);
    let short = top_k.is_none_or(|k| k <= MOST_K);
    (repeats && whole(top_p) && whole(typical) && short).then_some(TokenLaw {
        temperature,
        top_k,
        min_p,
    })
}

fn draw_head<'a>(strategy: &Strategy, head: &'a Head) -> Option<DrawHead<'a>> {
    let draw = strategy.class_draw(head);
    match head {
        Head::Plain(head) => Some(DrawHead::Plain(*head)),
        Head::F2(head) if head.ends.len() > MOST_CLASSES => None,
        Head::F2(head) => match draw {
            None => Some(DrawHead::Joint(head)),
            Some(draw) if draw.small == SmallClass::Fill => None,
            Some(draw) => {
                let (temperature, top_k, top_p) = (draw.temperature, draw.top_k, draw.top_p);
                Some(DrawHead::Decoupled(head, ClassLaw { temperature, top_k, top_p }))
            }
        },
    }
}
