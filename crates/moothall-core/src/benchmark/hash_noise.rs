//! Reproducible noise: every value is a function of a seed and of what it belongs to.

use crate::Sha256Hex;

/// Noise from SHA-256. The same words always give the same value, in any order of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HashNoise {
    seed: u64,
}

impl HashNoise {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed }
    }

    fn digest(self, words: &[&str]) -> [u8; 32] {
        let mut text = self.seed.to_string();
        for word in words {
            text.push('\n');
            text.push_str(word);
        }
        *Sha256Hex::of(text.as_bytes()).as_bytes()
    }

    /// From 0 up to, but not including, 1.
    pub(crate) fn uniform(self, words: &[&str]) -> f64 {
        let digest = self.digest(words);
        let number = digest.iter().take(6).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        number as f64 / (1_u64 << 48) as f64
    }

    /// From 0 to `end` - 1.
    pub(crate) fn below(self, words: &[&str], end: usize) -> usize {
        (self.uniform(words) * end as f64) as usize
    }

    /// A value with mean 0 and standard deviation 1: the sum of twelve uniform values, which is close
    /// to normal and needs no function of the C library.
    pub(crate) fn normal(self, words: &[&str]) -> f64 {
        let digest = self.digest(words);
        let (pairs, _) = digest.as_chunks::<2>();
        let pairs = pairs.iter().take(12).map(|pair| f64::from(u16::from_be_bytes(*pair)) + 0.5);
        pairs.sum::<f64>() / 65_536.0 - 6.0
    }

    /// The numbers from 0 to `end` - 1 in an order that the words decide.
    pub(crate) fn shuffled(self, words: &[&str], end: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..end).collect();
        let key = |index: &usize| {
            let place = index.to_string();
            self.digest(&[words, &[place.as_str()]].concat())
        };
        order.sort_by_key(key);
        order
    }
}

#[cfg(test)]
#[path = "hash_noise_tests.rs"]
mod tests;
