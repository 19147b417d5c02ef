//! How tokens are chosen, from the fields that say so. Without any, tokens are drawn from the model's
//! own distribution, as OpenAI's API does.

use f2_lm::decode::{BeamSearch, ClassDraw, Factorisation, SmallClass, Strategy, Truncations};

use super::fields::Fields;
use crate::Served;
use crate::http::error::Refusal;

/// The strategy, if the model can follow it.
pub(super) fn strategy(fields: Fields<'_>, served: &Served) -> Result<Strategy, Refusal> {
    if !served.has_classes() {
        let given = ["class_temperature", "class_top_k", "class_top_p", "small_class"];
        if let Some(name) = given.into_iter().find(|name| fields.any(name).is_some()) {
            let message = format!(
                "`{name}` is for F² models; `{}` has a plain softmax and no classes",
                served.name
            );
            return Err(Refusal::bad(name, message));
        }
    }
    let temperature = fields.number("temperature")?.unwrap_or(1.0);
    let strategy = Strategy {
        temperature,
        truncations: truncations(fields)?,
        repetition_penalty: fields.number("repetition_penalty")?.unwrap_or(1.0),
        block_ngrams: fields.count("no_repeat_ngram_size")?.unwrap_or(0),
        factorisation: factorisation(fields, temperature == 0.0)?,
        deterministic: fields.flag("deterministic")?,
        beam: beam(fields)?,
    };
    let check = strategy.check(&served.saved.shape);
    check.map_err(|error| Refusal::bad(param(&error), error.to_string()))?;
    Ok(strategy)
}

fn truncations(fields: Fields<'_>) -> Result<Truncations, Refusal> {
    // Values that keep everything are the same as none.
    let share =
        |name: &'static str| Ok::<_, Refusal>(fields.number(name)?.filter(|share| *share != 1.0));
    Ok(Truncations {
        top_k: k(fields, "top_k")?,
        typical: share("typical_p")?,
        top_p: share("top_p")?,
        min_p: fields.number("min_p")?.filter(|share| *share != 0.0),
    })
}

/// A number of things to keep; 0 and -1 keep all, as other servers have it.
fn k(fields: Fields<'_>, name: &'static str) -> Result<Option<usize>, Refusal> {
    match fields.integer(name)? {
        None | Some(-1 | 0) => Ok(None),
        Some(k) => usize::try_from(k).map(Some).map_err(|_| {
            Refusal::bad(name, format!("`{name}` must be a whole number from 1 up, not {k}"))
        }),
    }
}

fn factorisation(fields: Fields<'_>, greedy: bool) -> Result<Factorisation, Refusal> {
    if fields.flag("joint")? {
        return Ok(Factorisation::Joint);
    }
    let usual = if greedy { 0.0 } else { 1.0 };
    Ok(Factorisation::Decoupled(ClassDraw {
        temperature: fields.number("class_temperature")?.unwrap_or(usual),
        top_k: k(fields, "class_top_k")?,
        top_p: fields.number("class_top_p")?.unwrap_or(1.0),
        small: match fields.text("small_class")? {
            None | Some("clamp") => SmallClass::Clamp,
            Some("fill") => SmallClass::Fill,
            Some(_) => {
                return Err(Refusal::bad("small_class", "`small_class` is `clamp` or `fill`"));
            }
        },
    }))
}

fn beam(fields: Fields<'_>) -> Result<Option<BeamSearch>, Refusal> {
    let Some(width) = fields.count("num_beams")?.filter(|width| *width != 1) else {
        return Ok(None);
    };
    let usual = BeamSearch::default();
    Ok(Some(BeamSearch {
        width,
        groups: fields.count("num_beam_groups")?.unwrap_or(usual.groups),
        diversity: fields.number("diversity_penalty")?.unwrap_or(usual.diversity),
        length_penalty: fields.number("length_penalty")?.unwrap_or(usual.length_penalty),
    }))
}

/// The field an error of a strategy is about.
fn param(error: &f2_lm::Error) -> &'static str {
    let f2_lm::Error::Strategy { option, .. } = error else { return "temperature" };
    match *option {
        "temperature" => "temperature",
        "top-k" => "top_k",
        "top-p" => "top_p",
        "min-p" => "min_p",
        "typical" => "typical_p",
        "repetition penalty" => "repetition_penalty",
        "class temperature" => "class_temperature",
        "class top-k" => "class_top_k",
        "class top-p" => "class_top_p",
        "small classes" => "small_class",
        "deterministic" => "deterministic",
        "beam groups" => "num_beam_groups",
        "diversity" => "diversity_penalty",
        "length penalty" => "length_penalty",
        _ => "num_beams",
    }
}
