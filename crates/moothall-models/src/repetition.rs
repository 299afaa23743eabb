//! Finds replies that end in a loop: small models repeat a phrase until the token limit.

/// Lengths of the tail that is searched, in bytes. The longer one finds longer phrases.
const TAILS: [usize; 2] = [600, 1_800];

/// How often a phrase must fit into the tail. Lists and tables repeat less.
const REPEATS: usize = 6;

/// Where the loop at the end of a text starts, after its phrase has occurred once.
pub(crate) fn loop_start(text: &str) -> Option<usize> {
    let reversed: Vec<u8> = text.bytes().rev().take(TAILS[TAILS.len() - 1]).collect();
    let borders = borders(&reversed);
    let period = TAILS.iter().find_map(|tail| {
        let border = borders.get(*tail - 1)?;
        let period = tail - border;
        (period * REPEATS <= *tail).then_some(period)
    })?;
    // The text is periodic from its end back to the first byte that differs.
    let bytes = text.as_bytes();
    let same = (0..bytes.len() - period).rev().take_while(|at| bytes[*at] == bytes[at + period]);
    let start = bytes.len() - same.count();
    Some(text.ceil_char_boundary(start.min(text.len())))
}

/// For each prefix, the length of its longest proper prefix that is also its suffix.
fn borders(text: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; text.len()];
    let mut length = 0;
    for at in 1..text.len() {
        while length > 0 && text[at] != text[length] {
            length = borders[length - 1];
        }
        if text[at] == text[length] {
            length += 1;
        }
        borders[at] = length;
    }
    borders
}

#[cfg(test)]
#[path = "repetition_tests.rs"]
mod tests;
