//! How tokens are chosen, from the fields of a request. Missing fields have the values of the
//! model's decoding, if it has one; otherwise tokens are drawn from the model's own distribution,
//! as in OpenAI's API.

use f2_lm::decode::{
    BeamSearch, ClassDraw, ContrastiveSearch, Dry, Factorisation, Mirostat, SmallClass, Strategy,
    TruncationRule, TruncationSetting, Truncations, Xtc,
};

use super::fields::Fields;
use crate::Served;
use crate::http::error::Refusal;

/// The strategy of a request, refused if the model does not support it.
pub(super) fn strategy(fields: Fields<'_>, served: &Served) -> Result<Strategy, Refusal> {
    if !served.has_classes() {
        let given =
            ["class_temperature", "class_top_k", "class_top_p", "small_class", "top_k_growth"];
        if let Some(name) = given.into_iter().find(|name| fields.any(name).is_some()) {
            let message = format!(
                "`{name}` is for F² models; `{}` has a plain softmax and no classes",
                served.name
            );
            return Err(Refusal::bad(name, message));
        }
    }
    let contrastive_search = contrastive_search(fields)?;
    let usual = usual(fields, served, contrastive_search.is_some())?;
    let truncations = truncations(fields, usual.truncations, contrastive_search.is_some())?;
    let strategy = Strategy {
        temperature: fields.number("temperature")?.unwrap_or(usual.temperature),
        truncations,
        repetition_penalty: fields
            .number("repetition_penalty")?
            .unwrap_or(usual.repetition_penalty),
        block_ngrams: fields.count("no_repeat_ngram_size")?.unwrap_or(usual.block_ngrams),
        dry: dry(fields, served)?,
        xtc: xtc(fields, usual.xtc)?,
        mirostat: mirostat(fields, usual.mirostat)?,
        factorisation: factorisation(fields, usual.factorisation.beside(&truncations))?,
        deterministic: match fields.any("deterministic") {
            Some(_) => fields.flag("deterministic")?,
            None => usual.deterministic,
        },
        beam: beam(fields, usual.beam)?,
        contrastive_search,
        contrast: None,
    };
    let check = strategy.check(&served.saved.shape);
    check.map_err(|error| Refusal::bad(param(&error), error.to_string()))?;
    Ok(strategy)
}

/// The strategy that the other fields modify. It draws nothing if the request searches or is
/// greedy, and lacks the rules that cannot be combined with a rule of the request.
fn usual(fields: Fields<'_>, served: &Served, contrasts: bool) -> Result<Strategy, Refusal> {
    let decoding = match fields.text("decoding")? {
        None => served.decoding.clone(),
        Some("none") => None,
        Some(_) => {
            let message = "`decoding` must be `none`, for the API's own defaults, or left out";
            return Err(Refusal::bad("decoding", message));
        }
    };
    let mut usual = decoding.unwrap_or_default();
    let searches = fields.count("num_beams")?.is_some_and(|width| width > 1);
    let greedy = fields.number("temperature")? == Some(0.0);
    if greedy || contrasts || searches {
        let mut best = if searches { Strategy::default() } else { Strategy::greedy() };
        best.temperature = 1.0;
        return Ok(best.with_penalties_of(usual));
    }
    let given = |name: &str| fields.any(name).is_some();
    let truncates = Truncations::rules().iter().any(|rule| given(rule.field));
    if fields.integer("mirostat_mode")? == Some(2) {
        (usual.truncations, usual.xtc) = (Truncations::default(), None);
    } else if truncates || given("xtc_probability") {
        usual.mirostat = None;
    }
    if given("deterministic") && fields.flag("deterministic")? {
        usual.xtc = None;
    }
    Ok(usual)
}

/// The truncations, without `top_k` for contrastive search, which uses that field itself.
fn truncations(
    fields: Fields<'_>,
    usual: Truncations,
    searches: bool,
) -> Result<Truncations, Refusal> {
    let mut truncations = usual;
    for rule in Truncations::rules() {
        truncations = truncations.with(rule, truncation(fields, rule, usual.get(rule))?);
    }
    Ok(if searches { truncations.with_top_k(None) } else { truncations })
}

/// The setting of a rule; `None` for values that keep everything.
fn truncation(
    fields: Fields<'_>,
    rule: &TruncationRule,
    usual: Option<f64>,
) -> Result<Option<f64>, Refusal> {
    let keeps_all = |value: f64| rule.none.contains(&value);
    match rule.setting {
        TruncationSetting::Count => match fields.integer(rule.field)? {
            None => Ok(usual),
            Some(count) if keeps_all(count as f64) => Ok(None),
            Some(count) => Ok(Some(from_one(rule.field, count)? as f64)),
        },
        TruncationSetting::Share | TruncationSetting::Positive => {
            let given = fields.number(rule.field)?;
            Ok(given.map_or(usual, |value| Some(value).filter(|value| !keeps_all(*value))))
        }
    }
}

fn contrastive_search(fields: Fields<'_>) -> Result<Option<ContrastiveSearch>, Refusal> {
    let alpha = fields.number("penalty_alpha")?.filter(|alpha| *alpha != 0.0);
    let k = k(fields, "top_k", None)?.unwrap_or(ContrastiveSearch::default().k);
    Ok(alpha.map(|alpha| ContrastiveSearch { alpha, k }))
}

fn mirostat(fields: Fields<'_>, decoding: Option<Mirostat>) -> Result<Option<Mirostat>, Refusal> {
    let usual = Mirostat::default();
    match fields.integer("mirostat_mode")? {
        None => Ok(decoding),
        Some(0) => Ok(None),
        Some(2) => Ok(Some(Mirostat {
            tau: fields.number("mirostat_tau")?.unwrap_or(usual.tau),
            eta: fields.number("mirostat_eta")?.unwrap_or(usual.eta),
        })),
        Some(mode) => {
            let message = format!("`mirostat_mode` is 0 or 2, not {mode}");
            Err(Refusal::bad("mirostat_mode", message))
        }
    }
}

fn xtc(fields: Fields<'_>, usual: Option<Xtc>) -> Result<Option<Xtc>, Refusal> {
    if fields.any("xtc_probability").is_none() {
        return Ok(usual);
    }
    let probability = fields.number("xtc_probability")?.filter(|share| *share != 0.0);
    let threshold = fields.number("xtc_threshold")?.unwrap_or(Xtc::default().threshold);
    // As in other servers, a threshold that no two tokens can reach turns it off.
    Ok(probability.filter(|_| threshold <= 0.5).map(|probability| Xtc { probability, threshold }))
}

fn dry(fields: Fields<'_>, served: &Served) -> Result<Option<Dry>, Refusal> {
    let usual = Dry::default();
    let multiplier = fields.number("dry_multiplier")?.filter(|multiplier| *multiplier != 0.0);
    let Some(multiplier) = multiplier else { return Ok(None) };
    let range = match fields.integer("dry_penalty_last_n")? {
        None | Some(-1) => usual.range,
        Some(0) => return Ok(None),
        Some(range) => usize::try_from(range).map_err(|_| {
            let message = format!("`dry_penalty_last_n` must be from -1 up, not {range}");
            Refusal::bad("dry_penalty_last_n", message)
        })?,
    };
    let breakers = match fields.any("dry_sequence_breakers") {
        None => served.vocabulary().tokens_with(&Dry::USUAL_BREAKERS),
        Some(_) => served.vocabulary().tokens_with(&fields.texts("dry_sequence_breakers")?),
    };
    Ok(Some(Dry {
        multiplier,
        base: fields.number("dry_base")?.unwrap_or(usual.base),
        allowed_length: fields.count("dry_allowed_length")?.unwrap_or(usual.allowed_length),
        range,
        breakers: breakers.map_err(|error| Refusal::failed(error.to_string()))?,
    }))
}

/// A number of tokens or classes to keep; 0 and -1 keep all, as in other servers.
fn k(
    fields: Fields<'_>,
    name: &'static str,
    usual: Option<usize>,
) -> Result<Option<usize>, Refusal> {
    match fields.integer(name)? {
        None => Ok(usual),
        Some(-1 | 0) => Ok(None),
        Some(k) => from_one(name, k).map(Some),
    }
}

fn from_one(name: &'static str, count: i64) -> Result<usize, Refusal> {
    usize::try_from(count).map_err(|_| {
        Refusal::bad(name, format!("`{name}` must be a whole number from 1 up, not {count}"))
    })
}

/// Tokens are drawn from the full posterior, so that k cannot differ between classes.
fn joint(fields: Fields<'_>) -> Result<Factorisation, Refusal> {
    match fields.any("top_k_growth") {
        Some(_) => {
            let message = "`top_k_growth` needs a class to be drawn: leave it or `joint` out";
            Err(Refusal::bad("top_k_growth", message))
        }
        None => Ok(Factorisation::Joint),
    }
}

fn factorisation(fields: Fields<'_>, usual: Factorisation) -> Result<Factorisation, Refusal> {
    let says = fields.any("joint").is_some();
    let usual = match usual {
        _ if fields.flag("joint")? => return joint(fields),
        Factorisation::Joint if !says => return Ok(Factorisation::Joint),
        Factorisation::Joint => ClassDraw::default(),
        Factorisation::Decoupled(draw) => draw,
    };
    Ok(Factorisation::Decoupled(ClassDraw {
        temperature: fields.number("class_temperature")?.unwrap_or(usual.temperature),
        top_k: k(fields, "class_top_k", usual.top_k)?,
        top_p: fields.number("class_top_p")?.unwrap_or(usual.top_p),
        small: match fields.text("small_class")? {
            None => usual.small,
            Some(name) => SmallClass::named(name)
                .ok_or_else(|| Refusal::bad("small_class", "`small_class` is `clamp` or `fill`"))?,
        },
        top_k_growth: fields.number("top_k_growth")?.unwrap_or(usual.top_k_growth),
    }))
}

fn beam(fields: Fields<'_>, usual: Option<BeamSearch>) -> Result<Option<BeamSearch>, Refusal> {
    let width = match fields.count("num_beams")? {
        None => return Ok(usual),
        Some(1) => return Ok(None),
        Some(width) => width,
    };
    let usual = BeamSearch::default();
    Ok(Some(BeamSearch {
        width,
        groups: fields.count("num_beam_groups")?.unwrap_or(usual.groups),
        diversity: fields.number("diversity_penalty")?.unwrap_or(usual.diversity),
        length_penalty: fields.number("length_penalty")?.unwrap_or(usual.length_penalty),
        iterations: fields.count("num_beam_iterations")?.unwrap_or(usual.iterations),
    }))
}

/// The field to which an error of the strategy refers.
fn param(error: &f2_lm::Error) -> &'static str {
    let f2_lm::Error::Strategy { option, .. } = error else { return "temperature" };
    match *option {
        "temperature" => "temperature",
        "penalty alpha" | "contrastive search" => "penalty_alpha",
        "mirostat" => "mirostat_mode",
        "mirostat tau" => "mirostat_tau",
        "mirostat eta" => "mirostat_eta",
        "XTC" | "XTC probability" => "xtc_probability",
        "XTC threshold" => "xtc_threshold",
        "DRY multiplier" => "dry_multiplier",
        "DRY base" => "dry_base",
        "DRY allowed length" => "dry_allowed_length",
        "repetition penalty" => "repetition_penalty",
        "class temperature" => "class_temperature",
        "class top-k" => "class_top_k",
        "class top-p" => "class_top_p",
        "small classes" => "small_class",
        "top-k growth" => "top_k_growth",
        "beam iterations" => "num_beam_iterations",
        "deterministic" => "deterministic",
        "beam groups" => "num_beam_groups",
        "diversity" => "diversity_penalty",
        "length penalty" => "length_penalty",
        option => Truncations::rule_named(option).map_or("num_beams", |rule| rule.field),
    }
}
