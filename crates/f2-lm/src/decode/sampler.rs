//! The choice of every sequence's next token: on the device if it supports the strategy, otherwise
//! on the host.

use f2_engine::{Classes, Device, Head, Philox, Sampling};
use rayon::prelude::*;

use super::candidates::{Candidates, Run, blocked};
use super::class_draw::fill_order;
use super::mirostat::Limit;
use super::scores::Scores;
use super::{
    ClassDraw, Context, Distribution, ErrorDiffusion, Factorisation, SmallClass, Strategy, Token,
};
use crate::Error;

/// A sequence whose next token is to be chosen.
pub(super) struct Wanted<'a> {
    /// Prompt and continuation so far.
    pub(super) history: &'a [u32],
    /// The random numbers for this position.
    pub(super) random: Philox,
    /// Replaces random numbers in deterministic decoding.
    pub(super) diffusion: Option<&'a mut ErrorDiffusion>,
    /// Mirostat's limit, if the strategy uses mirostat.
    pub(super) limit: Option<Limit>,
    /// The amateur's log-probabilities of all tokens, in contrastive decoding.
    pub(super) amateur: Option<&'a [f32]>,
}

impl Wanted<'_> {
    /// Chooses an id from the distribution: by error diffusion in deterministic decoding,
    /// otherwise at random.
    pub(super) fn decide(&mut self, context: Context, distribution: &Distribution) -> u32 {
        match &mut self.diffusion {
            Some(diffusion) => diffusion.choose(context, distribution),
            None => distribution.draw(self.random.uniform()),
        }
    }

    /// The tokens to choose from.
    fn candidates<'r>(
        &self,
        strategy: &Strategy,
        runs: Vec<Run<'r>>,
    ) -> Result<Candidates<'r>, Error> {
        let blocked = blocked(self.history, strategy.block_ngrams);
        let candidates = Candidates::new(runs, strategy, self.history, &blocked);
        match (&strategy.contrast, self.amateur) {
            (Some(contrast), Some(amateur)) => candidates.contrasted(contrast, amateur),
            _ => Ok(candidates),
        }
    }
}

impl Strategy {
    /// How classes are drawn with this head; `None` if tokens are chosen from the full posterior.
    pub(super) fn class_draw(&self, head: &Head) -> Option<&ClassDraw> {
        match (&self.factorisation, &head.classes) {
            (Factorisation::Decoupled(draw), Some(_)) => Some(draw),
            _ => None,
        }
    }

    /// The settings for a draw on the device; `None` if the host must draw, for example because a
    /// rule depends on the text so far.
    fn on_device(&self, head: &Head) -> Option<Sampling> {
        let Self {
            temperature,
            truncations,
            repetition_penalty,
            block_ngrams,
            dry,
            xtc,
            mirostat,
            factorisation: _,
            deterministic,
            beam: _,
            contrastive_search: _,
            contrast,
        } = self;
        let looks_back = *repetition_penalty != 1.0 || *block_ngrams != 0 || dry.is_some();
        let on_host = looks_back || xtc.is_some() || mirostat.is_some() || contrast.is_some();
        let token = truncations.on_device(*temperature).filter(|_| !on_host && !deterministic)?;
        let class = match self.class_draw(head) {
            Some(draw) => Some(draw.on_device()?),
            None => None,
        };
        Some(Sampling { class, token })
    }
}

/// Chooses the next token of every sequence. `hidden: [wanted, width]`. A token depends on its own
/// sequence alone, not on the rest of the batch.
pub(super) fn choose<D: Device>(
    scores: &mut Scores<'_, D>,
    strategy: &Strategy,
    hidden: &D::Activations,
    wanted: &mut [Wanted<'_>],
) -> Result<Vec<Token>, Error> {
    if let Some(tokens) = on_device(scores, strategy, hidden, wanted)? {
        return Ok(tokens);
    }
    let decoder = &scores.model.decoder;
    match (strategy.class_draw(&decoder.head), &decoder.head.classes) {
        (Some(draw), Some(classes)) => decoupled(scores, classes, strategy, draw, hidden, wanted),
        _ => joint(scores, strategy, hidden, wanted),
    }
}

/// Draws on the device, so that no logits are copied; `None` if the device or the strategy requires
/// the host.
fn on_device<D: Device>(
    scores: &mut Scores<'_, D>,
    strategy: &Strategy,
    hidden: &D::Activations,
    wanted: &mut [Wanted<'_>],
) -> Result<Option<Vec<Token>>, Error> {
    let head = &scores.model.decoder.head;
    let sampling = strategy.on_device(head).filter(|_| scores.can_draw());
    let Some(sampling) = sampling else { return Ok(None) };
    let uniforms: Vec<[f64; 2]> =
        wanted.iter_mut().map(|wanted| [(); 2].map(|()| wanted.random.uniform())).collect();
    let drawn = scores.draw(&sampling, hidden, &uniforms)?;
    let tokens = drawn.into_iter().map(|drawn| {
        let id = drawn.id.ok_or(Error::NoProbabilities)?;
        Ok(Token { id, log_probability: drawn.log_probability, class: drawn.class })
    });
    tokens.collect::<Result<_, _>>().map(Some)
}

/// Chooses from the full posterior.
fn joint<D: Device>(
    scores: &mut Scores<'_, D>,
    strategy: &Strategy,
    hidden: &D::Activations,
    wanted: &mut [Wanted<'_>],
) -> Result<Vec<Token>, Error> {
    let decoder = &scores.model.decoder;
    // The token's class is reported although it was not drawn.
    let classes = match &decoder.head.classes {
        Some(classes) => Some((classes, scores.classes(wanted.len(), hidden)?)),
        None => None,
    };
    let posterior = scores.posterior(wanted.len(), hidden)?;
    let vocabulary = decoder.shape.vocabulary;
    let rows = posterior.par_chunks_mut(vocabulary).zip(wanted).enumerate();
    let choose = |(row, (logs, wanted)): (usize, (&mut [f32], &mut Wanted<'_>))| {
        let run = Run { first: 0, class: 0.0, logs };
        let candidates = wanted.candidates(strategy, vec![run])?;
        let context = Context::Vocabulary { after: Context::band(wanted.history) };
        let id = candidates.choose(strategy, context, wanted).ok_or(Error::NoProbabilities)?;
        let class = classes.as_ref().map(|(classes, logs)| {
            let class = classes.class_of(id);
            (class as u32, logs[row * classes.count() + class])
        });
        Ok(Token { id, log_probability: candidates.log_probability(id), class })
    };
    rows.with_min_len(least_rows(vocabulary)).map(choose).collect()
}

/// Chooses a class, then a token in it: only the chosen classes' token vectors are read.
fn decoupled<D: Device>(
    scores: &mut Scores<'_, D>,
    classes: &Classes,
    strategy: &Strategy,
    draw: &ClassDraw,
    hidden: &D::Activations,
    wanted: &mut [Wanted<'_>],
) -> Result<Vec<Token>, Error> {
    let mean_class = scores.model.decoder.shape.vocabulary / classes.count();
    let class_logs = scores.classes(wanted.len(), hidden)?;
    let plans = class_plans(classes, strategy, draw, &class_logs, wanted)?;
    let rows = chosen_runs(scores, classes, hidden, &class_logs, &plans)?;
    let choose = |(row, (runs, wanted)): (usize, (Vec<Run<'_>>, &mut Wanted<'_>))| {
        let drawn = plans[row][0];
        let truncations = draw.truncations(strategy.truncations, classes, drawn);
        let candidates = wanted.candidates(strategy, runs)?.truncated(truncations);
        let context = Context::Class(drawn);
        let id = candidates.choose(strategy, context, wanted).ok_or(Error::NoProbabilities)?;
        let class = classes.class_of(id);
        let class = Some((class as u32, class_logs[row * classes.count() + class]));
        Ok(Token { id, log_probability: candidates.log_probability(id), class })
    };
    let rows = rows.into_par_iter().zip(wanted).enumerate();
    rows.with_min_len(least_rows(mean_class)).map(choose).collect()
}

/// The fewest rows of so many log-probabilities that are worth a thread.
pub(super) fn least_rows(columns: usize) -> usize {
    (1 << 15) / columns.max(1) + 1
}

/// Draws the classes from which each sequence's token is chosen. `class_logs: [wanted, classes]`.
pub(super) fn class_plans(
    classes: &Classes,
    strategy: &Strategy,
    draw: &ClassDraw,
    class_logs: &[f32],
    wanted: &mut [Wanted<'_>],
) -> Result<Vec<Vec<u32>>, Error> {
    let rows = wanted.iter_mut().zip(class_logs.chunks(classes.count()));
    let plans = rows.map(|(wanted, logs)| {
        let blocked = blocked(wanted.history, strategy.block_ngrams);
        let logs = open_classes(classes, logs, &blocked);
        planned(classes, strategy, draw, &logs, wanted)
    });
    plans.collect()
}

/// The log-probabilities of the classes, −∞ for those whose tokens are all blocked, unless no class
/// would be left.
pub(super) fn open_classes(classes: &Classes, logs: &[f32], blocked: &[u32]) -> Vec<f32> {
    let is_open = |class: usize| {
        let members = classes.members(class);
        let inside = blocked.iter().filter(|id| members.contains(&(**id as usize))).count();
        inside < members.len()
    };
    let open = |class: usize| if is_open(class) { logs[class] } else { f32::NEG_INFINITY };
    let opened: Vec<f32> = (0..logs.len()).map(open).collect();
    if opened.iter().all(|log| *log == f32::NEG_INFINITY) { logs.to_vec() } else { opened }
}

/// The classes a token is chosen from: the one drawn, and further ones if it is to be filled up.
fn planned(
    classes: &Classes,
    strategy: &Strategy,
    draw: &ClassDraw,
    logs: &[f32],
    wanted: &mut Wanted<'_>,
) -> Result<Vec<u32>, Error> {
    let distribution = draw.distribution(logs);
    if distribution.entries().is_empty() {
        return Err(Error::NoProbabilities);
    }
    let context = Context::Classes { after: Context::band(wanted.history) };
    let class = wanted.decide(context, &distribution);
    Ok(match (draw.small, strategy.truncations.top_k()) {
        (SmallClass::Fill, Some(k)) => {
            let sizes: Vec<usize> =
                (0..classes.count()).map(|class| classes.members(class).len()).collect();
            let k = draw.k_in(classes, class, k);
            fill_order(&distribution, class, &sizes, k, &mut wanted.random)
        }
        _ => vec![class],
    })
}

/// Computes the log-probabilities of the tokens of every chosen class, only for the rows that chose
/// it. Returns the runs of each row. `class_logs: [rows, classes]`.
pub(super) fn chosen_runs<'a, D: Device>(
    scores: &'a mut Scores<'_, D>,
    classes: &Classes,
    hidden: &D::Activations,
    class_logs: &[f32],
    plans: &[Vec<u32>],
) -> Result<Vec<Vec<Run<'a>>>, Error> {
    let chose = |class: usize| {
        let rows = (0_u32..).zip(plans).filter(move |(_, plan)| plan.contains(&(class as u32)));
        rows.map(|(row, _)| row).collect::<Vec<u32>>()
    };
    let chosen = (0..classes.count()).map(|class| (class, chose(class)));
    let wanted: Vec<(usize, Vec<u32>)> = chosen.filter(|(_, rows)| !rows.is_empty()).collect();
    let mut values = scores.members(&wanted, hidden)?;
    let mut runs: Vec<Vec<Run<'a>>> = plans.iter().map(|_| Vec::new()).collect();
    for (class, rows) in &wanted {
        let members = classes.members(*class);
        for row in rows {
            let (logs, rest) = values.split_at_mut(members.len());
            values = rest;
            let class = class_logs[*row as usize * classes.count() + *class];
            runs[*row as usize].push(Run { first: members.start as u32, class, logs });
        }
    }
    Ok(runs)
}
