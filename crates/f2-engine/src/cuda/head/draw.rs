//! Drawing tokens where their logits are: a few words for each row come back.

use crate::cuda::memory::{Buffer, Weights};
use crate::cuda::runtime::{Grid, arguments};
use crate::cuda::runtime::{Stream, Upload};
use crate::cuda::{Cuda, Precision};
use crate::{ClassLaw, DrawHead, Drawn, Error, F2Head, IGNORED, TokenLaw};

/// Words of a number from `[0, 1)`, of which a row has two, and of what is drawn for a row.
const UNIFORM_WORDS: usize = 2;
const DRAWN_WORDS: usize = 4;

/// Uniform numbers on their way in, and what was drawn on its way out.
#[derive(Debug)]
pub struct Draws {
    uniforms: Upload,
    drawn: Buffer<u32>,
}

impl Draws {
    pub(super) fn new(stream: &Stream, rows: usize) -> Result<Self, Error> {
        Ok(Self {
            uniforms: Upload::new(stream, 2 * UNIFORM_WORDS * rows)?,
            drawn: Buffer::zeroed(stream, DRAWN_WORDS * rows)?,
        })
    }

    fn load(&mut self, uniforms: &[[f64; 2]], [first, second]: [bool; 2]) {
        self.uniforms.write(2 * UNIFORM_WORDS * uniforms.len(), |words| {
            for (words, [a, b]) in words.chunks_exact_mut(2 * UNIFORM_WORDS).zip(uniforms) {
                // The most likely is the first of what is kept.
                let bits = [(a, first), (b, second)]
                    .map(|(number, draws)| if draws { number.to_bits() } else { 0 });
                for (word, bits) in words.chunks_exact_mut(UNIFORM_WORDS).zip(bits) {
                    word.copy_from_slice(&[bits as u32, (bits >> 32) as u32]);
                }
            }
        });
    }

    /// Waits for all work.
    fn read(&self, rows: usize) -> Result<Vec<Drawn>, Error> {
        let mut words = vec![0; DRAWN_WORDS * rows];
        self.drawn.read(0, &mut words)?;
        let drawn = words.chunks_exact(DRAWN_WORDS).map(|words| Drawn {
            id: (words[0] != IGNORED).then_some(words[0]),
            log_probability: f32::from_bits(words[1]),
            class: (words[2] != IGNORED).then_some((words[2], f32::from_bits(words[3]))),
        });
        Ok(drawn.collect())
    }
}

/// A law as the kernel takes it. A temperature of zero keeps the most likely, and the first of
/// those that tie is taken.
struct Terms {
    temperature: f64,
    k: usize,
    share: f64,
}

impl Terms {
    fn new(temperature: f64, k: Option<usize>, share: f64, whole: f64) -> Self {
        if temperature == 0.0 {
            Self { temperature: 1.0, k: 1, share: whole }
        } else {
            Self { temperature, k: k.unwrap_or(0), share }
        }
    }
}

impl<P: Precision> Cuda<P> {
    pub(super) fn draw_tokens(
        &self,
        head: DrawHead<'_>,
        law: TokenLaw,
        weights: &Weights<P>,
        hidden: &Buffer<P::Element>,
        uniforms: &[[f64; 2]],
        logits: &Buffer<f32>,
        draws: &mut Draws,
    ) -> Result<Vec<Drawn>, Error> {
        let rows = uniforms.len();
        let all = ClassLaw { temperature: 1.0, top_k: None, top_p: 1.0 };
        let (f2, decoupled, class_law, tokens) = match head {
            DrawHead::Plain(head) => (None, false, all, head.tokens),
            DrawHead::Joint(head) => (Some(head), false, all, head.tokens),
            DrawHead::Decoupled(head, law) => (Some(head), true, law, head.tokens),
        };
        match head {
            DrawHead::Joint(head) => self.posterior(rows, head, weights, hidden, logits),
            _ => self.logits_at(rows, tokens, weights, hidden, logits.at(0)),
        }
        let by_class =
            f2.map_or(Some([0, 0]), |head| self.class_scores(rows, head, weights, hidden));
        let Some([ends, class_logits]) = by_class else { return self.failed_draw() };
        let classes = f2.map_or(0, |head| head.ends.len());
        let drawn = [class_law.temperature, law.temperature].map(|temperature| temperature > 0.0);
        let drawn = if decoupled { drawn } else { [drawn[1]; 2] };
        draws.load(uniforms, drawn);
        let class = Terms::new(class_law.temperature, class_law.top_k, class_law.top_p, 1.0);
        let token = Terms::new(law.temperature, law.top_k, law.min_p.unwrap_or(0.0), 0.0);
        self.launch(
            "draw_tokens",
            Grid::blocks(rows, 256).sharing(2 * classes * size_of::<f64>()),
            arguments![
                classes,
                tokens.rows,
                ends,
                class_logits,
                logits.at(0),
                decoupled,
                class.temperature,
                class.k,
                class.share,
                token.temperature,
                token.k,
                token.share,
                draws.uniforms.at(0),
                draws.drawn.at(0),
            ],
        );
        draws.read(rows)
    }

    /// Where classes end, and the logits of classes in scratch.
    fn class_scores(
        &self,
        rows: usize,
        head: &F2Head,
        weights: &Weights<P>,
        hidden: &Buffer<P::Element>,
    ) -> Option<[u64; 2]> {
        let ends = self.class_ends(head)?;
        let logits = self.scratch(rows * head.classes.rows * size_of::<f32>())?;
        self.logits_at(rows, head.classes, weights, hidden, logits);
        Some([ends, logits])
    }

    /// Memory ran out on the way, as was noted.
    fn failed_draw(&self) -> Result<Vec<Drawn>, Error> {
        self.stream.synchronise().map(|()| Vec::new())
    }
}
