//! Drawing tokens on the GPU: only a few words per row are read back.

use super::DRAW_TOKENS;
use crate::cuda::memory::Buffer;
use crate::cuda::runtime::Grid;
use crate::cuda::runtime::{Stream, Upload};
use crate::cuda::{Cuda, Precision};
use crate::{ClassSampling, Drawn, Error, Head, IGNORED, Sampling, TokenSampling};

/// The most classes: a block has two numbers for each in shared memory.
const MOST_CLASSES: usize = 4096;

/// Words of a number in double precision, and of a row's result.
const DOUBLE_WORDS: usize = 2;
const DRAWN_WORDS: usize = 4;

/// The numbers of `Rules` in truncation.cu.
const RULES: usize = 8;

/// Buffers for the rules, followed by two numbers from `[0, 1)` for each row, and for the draws.
#[derive(Debug)]
pub struct Draws {
    numbers: Upload,
    drawn: Buffer<u32>,
}

impl Draws {
    pub(super) fn new(stream: &Stream, rows: usize) -> Result<Self, Error> {
        Ok(Self {
            numbers: Upload::new(stream, DOUBLE_WORDS * (RULES + 2 * rows))?,
            drawn: Buffer::zeroed(stream, DRAWN_WORDS * rows)?,
        })
    }

    fn load(&mut self, rules: [f64; RULES], uniforms: &[[f64; 2]], draws: [bool; 2]) {
        self.numbers.write(DOUBLE_WORDS * (RULES + 2 * uniforms.len()), |words| {
            // At temperature 0 the number is zero, which draws the first that is kept.
            let number = |(number, draws): (&f64, bool)| if draws { *number } else { 0.0 };
            let uniforms = uniforms.iter().flat_map(|pair| pair.iter().zip(draws).map(number));
            let numbers = rules.into_iter().chain(uniforms);
            for (words, number) in words.chunks_exact_mut(DOUBLE_WORDS).zip(numbers) {
                let bits = number.to_bits();
                words.copy_from_slice(&[bits as u32, (bits >> 32) as u32]);
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

/// The settings of a class in the form that the kernel takes. A temperature of zero keeps the most
/// likely, of which the first is drawn.
fn class_rules(ClassSampling { temperature, top_k, top_p }: ClassSampling) -> (f64, usize, f64) {
    if temperature == 0.0 { (1.0, 1, 1.0) } else { (temperature, top_k.unwrap_or(0), top_p) }
}

/// `Rules` of truncation.cu, in its order; zero is off.
fn token_rules(token: TokenSampling) -> [f64; RULES] {
    if token.temperature == 0.0 {
        return token_rules(TokenSampling { top_k: Some(1), ..TokenSampling::all(1.0) });
    }
    let TokenSampling {
        temperature,
        top_n_sigma,
        top_k,
        typical,
        top_p,
        min_p,
        epsilon_cutoff,
        eta_cutoff,
    } = token;
    // A share of one keeps everything.
    let part = |share: Option<f64>| share.filter(|share| *share < 1.0);
    let k = top_k.map(|k| k as f64);
    let (typical, top_p) = (part(typical), part(top_p));
    [Some(temperature), top_n_sigma, k, typical, top_p, min_p, epsilon_cutoff, eta_cutoff]
        .map(|setting| setting.unwrap_or(0.0))
}

/// Whether the kernel supports this head.
pub(super) fn is_possible(head: &Head) -> bool {
    head.class_ends().len() <= MOST_CLASSES
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
        draws.load(token_rules(token), uniforms, drawn);
        let (class_temperature, class_k, class_p) = class_rules(class);
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
                    class_temperature,
                    class_k,
                    class_p,
                    draws.numbers.at(0),
                    draws.numbers.at(DOUBLE_WORDS * RULES),
                    draws.drawn.at(0),
                ),
            );
        }
    }
}
