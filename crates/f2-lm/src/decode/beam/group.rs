//! A group of a beam: its hypotheses, and the choice of the extensions that replace them.

use super::super::generator::Request;
use super::super::sequence::Sequence;
use super::super::{BeamSearch, Token};
use super::explored::Explored;
use super::extend::Extension;

/// An unfinished text in the beam.
#[derive(Clone, Debug)]
pub(super) struct Hypothesis {
    pub(super) sequence: Sequence,
    tokens: Vec<Token>,
    /// The sum of the scores of its tokens.
    score: f64,
}

/// A part of a beam.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Its first place in the beam.
    first: usize,
    width: usize,
    running: Vec<Hypothesis>,
    /// Ended texts with their scores, best first, at most `width`.
    ended: Vec<(f64, Vec<Token>)>,
    /// Whether the search of this group is over.
    pub(super) done: bool,
}

impl Group {
    /// The groups of a new beam, all of which start from the prompt.
    pub(super) fn all(search: &BeamSearch, sequence: Sequence) -> Vec<Self> {
        let width = search.width / search.groups;
        let start = Hypothesis { sequence, tokens: Vec::new(), score: 0.0 };
        let group = |first: usize| Self {
            first,
            width,
            running: vec![start.clone()],
            ended: Vec::new(),
            done: false,
        };
        (0..search.width).step_by(width).map(group).collect()
    }

    /// The running hypotheses with their places in the beam.
    pub(super) fn hypotheses(&mut self) -> impl Iterator<Item = (usize, &mut Hypothesis)> {
        (self.first..).zip(&mut self.running)
    }

    /// Replaces the hypotheses by their best extensions. `used` holds the tokens chosen by earlier
    /// groups; this group's are added to it. Returns pairs of a place in the beam and the place of
    /// its parent.
    pub(super) fn choose(
        &mut self,
        search: &BeamSearch,
        request: &Request<'_>,
        extensions: &[Vec<Extension>],
        length: usize,
        used: &mut Vec<u32>,
        explored: &mut Explored,
    ) -> Vec<(usize, usize)> {
        // The prompt is extended once, for all groups, in the first place of the beam.
        let place = |parent: usize| if length == 0 { 0 } else { self.first + parent };
        let mut ranked: Vec<(f64, usize, &Extension)> = Vec::new();
        for (parent, hypothesis) in self.running.iter().enumerate() {
            for extension in &extensions[place(parent)] {
                if explored.contains(&hypothesis.tokens, extension.token.id) {
                    continue;
                }
                let uses = used.iter().filter(|id| **id == extension.token.id).count();
                let score = hypothesis.score + extension.score;
                ranked.push((score - search.diversity * uses as f64, parent, extension));
            }
        }
        ranked.sort_by(|left, right| {
            let by_score = right.0.total_cmp(&left.0);
            by_score.then(left.1.cmp(&right.1)).then(left.2.token.id.cmp(&right.2.token.id))
        });
        let mut next = Vec::new();
        let mut parents = Vec::new();
        for (rank, (_, parent, extension)) in ranked.into_iter().take(2 * self.width).enumerate() {
            let hypothesis = &self.running[parent];
            let score = hypothesis.score + extension.score;
            if request.end == Some(extension.token.id) {
                if rank < self.width {
                    explored.add(&hypothesis.tokens, extension.token.id);
                    let ended = normalised(search, score, length + 1);
                    self.ended.push((ended, hypothesis.tokens.clone()));
                }
            } else if next.len() < self.width {
                parents.push((self.first + next.len(), place(parent)));
                explored.add(&hypothesis.tokens, extension.token.id);
                next.push(hypothesis.extended(extension.token, score));
            }
        }
        used.extend(next.iter().filter_map(|next| next.tokens.last()).map(|token| token.id));
        self.running = next;
        self.ended.sort_by(|left, right| right.0.total_cmp(&left.0));
        self.ended.truncate(self.width);
        self.done = self.is_decided(search, length + 1);
        parents
    }

    /// Whether no running text of this length can beat the ended ones.
    fn is_decided(&self, search: &BeamSearch, length: usize) -> bool {
        let Some(running) = self.running.iter().map(|text| text.score).reduce(f64::max) else {
            return true;
        };
        let worst = self.ended.get(self.width - 1);
        worst.is_some_and(|(worst, _)| *worst >= normalised(search, running, length))
    }

    /// All texts with their scores; those still running end here.
    pub(super) fn finished(self, search: &BeamSearch) -> impl Iterator<Item = (f64, Vec<Token>)> {
        let score = |text: &Hypothesis| normalised(search, text.score, text.tokens.len());
        let running: Vec<_> =
            self.running.into_iter().map(|text| (score(&text), text.tokens)).collect();
        self.ended.into_iter().chain(running)
    }
}

impl Hypothesis {
    fn extended(&self, token: Token, score: f64) -> Self {
        let mut longer = self.clone();
        longer.sequence.history.push(token.id);
        longer.tokens.push(token);
        longer.score = score;
        longer
    }
}

/// The score by which texts of different lengths are compared; an end token counts towards
/// `length`.
fn normalised(search: &BeamSearch, score: f64, length: usize) -> f64 {
    score / (length.max(1) as f64).powf(search.length_penalty)
}
