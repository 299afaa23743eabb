//! Estimates the number of tokens of a text without the model's tokenizer.
//!
//! Reservations need an upper bound; planning (does it fit the window, what will it cost) needs a
//! close estimate. The estimate counts characters by kind instead of dividing bytes because of
//! digits: a fact sheet has about 1.3 bytes per token, prose about 3.7.

/// Upper bound on the tokens of a text: byte-level and byte-fallback vocabularies never need more
/// than one token per byte.
pub fn tokens_at_most(text: &str) -> u64 {
    text.len() as u64
}

/// Estimated tokens of a text, accurate to about 25 % for prose, tables and JSON.
pub fn tokens_expected(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let letters = count(bytes, is_letter);
    let digits = count(bytes, is_digit);
    let spaces = count(bytes, |byte| byte == b' ');
    let breaks = count(bytes, |byte| byte.wrapping_sub(b'\t') < 5);
    let beyond_ascii = count(bytes, |byte| byte >= 0x80);
    let signs = bytes.len() as u64 - letters - digits - spaces - breaks - beyond_ascii;
    // Repeated characters count once: a line of dashes is a few tokens, not one per dash.
    let repeated_signs = repeats(bytes, 1, is_sign);
    let repeated_beyond = repeats(bytes, 3, |byte| byte >= 0x80);
    // Thousandths of a token per byte, by kind; fitted to SmolLM2's tokenizer on prose, JSON and
    // fact sheets.
    let thousandths = letters * 260
        + digits * 1000
        + spaces * 30
        + breaks * 500
        + beyond_ascii * 300
        + signs * 850;
    let merged = repeated_signs * 800 + repeated_beyond * 280;
    thousandths.saturating_sub(merged).div_ceil(1000)
}

/// Sums in chunks that fit a `u8`, so the compiler vectorizes the loop: this runs over every
/// prompt.
fn count(bytes: &[u8], is: impl Fn(u8) -> bool) -> u64 {
    let chunk = |chunk: &[u8]| u64::from(chunk.iter().map(|&byte| u8::from(is(byte))).sum::<u8>());
    bytes.chunks(255).map(chunk).sum()
}

/// Counts the bytes of a kind that equal the byte `distance` before them.
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

/// Uses `&` instead of `&&`, because short-circuiting prevents vectorization.
fn is_sign(byte: u8) -> bool {
    (byte.wrapping_sub(b'!') < 94) & !is_letter(byte) & !is_digit(byte)
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
