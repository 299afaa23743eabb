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
    let letters = count(bytes, is_letter);
    let digits = count(bytes, is_digit);
    let spaces = count(bytes, |byte| byte == b' ');
    let breaks = count(bytes, |byte| byte.wrapping_sub(b'\t') < 5);
    let beyond_ascii = count(bytes, |byte| byte >= 0x80);
    let signs = bytes.len() as u64 - letters - digits - spaces - breaks - beyond_ascii;
    // A line of dashes is a few tokens, not one for each dash: what repeats itself counts once.
    let repeated_signs = repeats(bytes, 1, is_sign);
    let repeated_beyond = repeats(bytes, 3, |byte| byte >= 0x80);
    // Thousandths of a token for each byte, by kind; fitted to SmolLM2's tokenizer on prose, JSON
    // and fact sheets.
    let thousandths = letters * 260
        + digits * 1000
        + spaces * 30
        + breaks * 500
        + beyond_ascii * 300
        + signs * 850;
    let merged = repeated_signs * 800 + repeated_beyond * 280;
    thousandths.saturating_sub(merged).div_ceil(1000)
}

/// Counts in steps that fit a byte, which the compiler turns into vector instructions: this runs
/// over every prompt.
fn count(bytes: &[u8], is: impl Fn(u8) -> bool) -> u64 {
    let chunk = |chunk: &[u8]| u64::from(chunk.iter().map(|&byte| u8::from(is(byte))).sum::<u8>());
    bytes.chunks(255).map(chunk).sum()
}

/// How many bytes of a kind are the same as the one `distance` before them.
fn repeats(bytes: &[u8], distance: usize, is: impl Fn(u8) -> bool) -> u64 {
    let later = bytes.get(distance..).unwrap_or_default();
    let chunk = |(before, after): (&[u8], &[u8])| {
        let pairs = before.iter().zip(after);
        u64::from(pairs.map(|(&a, &b)| u8::from((a == b) & is(b))).sum::<u8>())
    };
    bytes[..later.len()].chunks(255).zip(later.chunks(255)).map(chunk).sum()
}

fn is_letter(byte: u8) -> bool {
    (byte | 0x20).wrapping_sub(b'a') < 26
}

fn is_digit(byte: u8) -> bool {
    byte.wrapping_sub(b'0') < 10
}

/// Without short cuts, which vector instructions do not have.
fn is_sign(byte: u8) -> bool {
    (byte.wrapping_sub(b'!') < 94) & !is_letter(byte) & !is_digit(byte)
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
