//! Drawing tokens on the GPU: only a few words per row are read back.

use super::DRAW_TOKENS;
use crate::cuda::memory::Buffer;
use crate::cuda::runtime::Grid;
use crate::cuda::runtime::{Stream, Upload};
use crate::cuda::{Cuda, Precision};
use crate::{ClassSampling, Drawn, Error, Head, IGNORED, Sampling, TokenSampling};

/// The largest k for tokens: the kernel reads all logits up to k times.
const MOST_K: usize = 256;
/// The most classes: a block has two numbers for each in shared memory.
const MOST_CLASSES: usize = 4096;

/// Words of a number from `[0, 1)`, of which a row has two, and of a row's result.
const UNIFORM_WORDS: usize = 2;
const DRAWN_WORDS: usize = 4;

/// Buffers for the uniform numbers and the draws.
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
                // At temperature 0 the number is zero, which draws the first that is kept.
                let bits = [(a, first), (b, second)]
                    .map(|(number, draws)| if draws { number.to_bits() } else { 0 });
                for (word, bits) in words.chunks_exact_mut(UNIFORM_WORDS).zip(bits) {
                    word.copy_from_slice(&[bits as u32, (bits >> 32) as u32]);
                }
            }
        });
    }

    /// Waits for all operations, then reads the results.
    pub(super) fn read(&self, rows: usize) -> Result<Vec<Drawn>, Error> {
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

/// Temperature and truncation in the form that the kernel takes. A temperature of zero keeps the
/// most likely, of which the first is drawn.
struct Truncation {
    temperature: f64,
    k: usize,
    share: f64,
}

impl Truncation {
    fn of_class(ClassSampling { temperature, top_k, top_p }: ClassSampling) -> Self {
        Self::new(temperature, top_k, top_p, 1.0)
    }

    fn of_token(TokenSampling { temperature, top_k, min_p }: TokenSampling) -> Self {
        Self::new(temperature, top_k, min_p.unwrap_or(0.0), 0.0)
    }

    fn new(temperature: f64, k: Option<usize>, share: f64, whole: f64) -> Self {
        if temperature == 0.0 {
            Self { temperature: 1.0, k: 1, share: whole }
        } else {
            Self { temperature, k: k.unwrap_or(0), share }
        }
    }
}

/// Whether the kernel supports this head with these settings.
pub(super) fn is_possible(head: &Head, sampling: &Sampling) -> bool {
    sampling.token.top_k.is_none_or(|k| k <= MOST_K) && head.class_ends().len() <= MOST_CLASSES
}

impl<P: Precision> Cuda<P> {
    /// Draws from `logits: [rows, vocabulary]`; `ends` and `class_logits` are the addresses of the
    /// classes' ends and logits, zero without classes.
    pub(super) fn draw_tokens(
        &self,
        head: &Head,
        sampling: &Sampling,
        [ends, class_logits]: [u64; 2],
        uniforms: &[[f64; 2]],
        logits: &Buffer<f32>,
        draws: &mut Draws,
    ) {
        let Sampling { class, token } = *sampling;
        let is_decoupled = head.classes.is_some() && class.is_some();
        let all = ClassSampling { temperature: 1.0, top_k: None, top_p: 1.0 };
        let class = class.unwrap_or(all);
        let drawn = [class.temperature, token.temperature].map(|temperature| temperature > 0.0);
        let drawn = if is_decoupled { drawn } else { [drawn[1]; 2] };
        draws.load(uniforms, drawn);
        let (by_class, by_token) = (Truncation::of_class(class), Truncation::of_token(token));
        let classes = head.class_ends().len();
        // SAFETY: the operation's buffers have these sizes.
        unsafe {
            self.launch(
                DRAW_TOKENS,
                Grid::blocks(uniforms.len(), 256).sharing(2 * classes * size_of::<f64>()),
                (
                    classes,
                    head.tokens.rows,
                    ends,
                    class_logits,
                    logits.at(0),
                    is_decoupled,
                    by_class.temperature,
                    by_class.k,
                    by_class.share,
                    by_token.temperature,
                    by_token.k,
                    by_token.share,
                    draws.uniforms.at(0),
                    draws.drawn.at(0),
                ),
            );
        }
    }
}
