//! How many tokens a text has, without the tokenizer of the model that will read it.
//!
//! Two questions, two functions. A reservation needs a number that is never too small; a plan (does
//! it fit the window, what will it cost) needs one that is close. Digits are the reason for
//! counting kinds of characters instead of dividing bytes: a fact sheet has about 1.3 bytes a
//! token, prose about 3.7.

/// A number of tokens that no tokenizer in use exceeds: byte-level and byte-fallback vocabularies
/// never need more than one token a byte.
pub fn tokens_at_most(text: &str) -> u64 {
    text.len() as u64
}

/// The number of tokens to expect, within a quarter for prose, tables and JSON.
pub fn tokens_expected(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let letters = count(bytes, |byte| (byte | 0x20).wrapping_sub(b'a') < 26);
    let digits = count(bytes, |byte| byte.wrapping_sub(b'0') < 10);
    let spaces = count(bytes, |byte| byte == b' ');
    let breaks = count(bytes, |byte| byte.wrapping_sub(b'\t') < 5);
    let beyond_ascii = count(bytes, |byte| byte >= 0x80);
    let signs = bytes.len() as u64 - letters - digits - spaces - breaks - beyond_ascii;
    // Thousandths of a token for each byte, by kind; fitted to SmolLM2's tokenizer on prose, JSON
    // and fact sheets.
    let thousandths = letters * 260
        + digits * 1000
        + spaces * 30
        + breaks * 500
        + beyond_ascii * 300
        + signs * 850;
    thousandths.div_ceil(1000)
}

/// Counts in steps that fit a byte, which the compiler turns into vector instructions: this runs
/// over every prompt.
fn count(bytes: &[u8], is: impl Fn(u8) -> bool) -> u64 {
    bytes
        .chunks(255)
        .map(|chunk| u64::from(chunk.iter().map(|&byte| u8::from(is(byte))).sum::<u8>()))
        .sum()
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
