//! Perplexity, from summed negative log-likelihoods.

/// Perplexity: `exp(nll / tokens)`, from negative log-likelihoods in nats summed over the scored
/// tokens. `None` if there are no tokens.
///
/// ```
/// use f2_metrics::perplexity;
/// let coin_flips = 8.0 * 2.0_f64.ln();
/// assert_eq!(perplexity(coin_flips, 8), Some(2.0));
/// assert_eq!(perplexity(0.0, 0), None);
/// ```
pub fn perplexity(nll: f64, tokens: u64) -> Option<f64> {
    (tokens > 0).then(|| (nll / tokens as f64).exp())
}
