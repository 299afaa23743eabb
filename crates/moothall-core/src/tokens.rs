//! How many tokens a text has, without the tokenizer of the model that will read it.
//!
//! Two questions, two functions. A reservation needs a number that is never too small; a plan (does it fit the window, what will it
//! cost) needs one that is close. Digits are the reason for counting kinds of characters instead of dividing bytes: a fact sheet has
//! about 1.3 bytes a token, prose about 3.7.

/// A number of tokens that no tokenizer in use exceeds: byte-level and byte-fallback vocabularies never need more than one token a byte.
pub fn tokens_at_most(text: &str) -> u64 {
    text.len() as u64
}

/// The number of tokens to expect, within a quarter for prose and tables.
pub fn tokens_expected(text: &str) -> u64 {
    // Thousandths of a token for each byte, by kind; fitted to SmolLM2's tokenizer on prose, JSON and fact sheets.
    let thousandths: u64 = text
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' => 260,
            b'0'..=b'9' => 1000,
            b' ' => 30,
            b'\n' | b'\t' | b'\r' => 500,
            0x80.. => 450,
            _ => 850,
        })
        .sum();
    thousandths.div_ceil(1000)
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
