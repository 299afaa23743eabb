//! Quotes from the user's documents, parsed from a prompt.

/// A passage from a prompt, cut to a quotable length.
#[derive(Debug)]
pub(crate) struct DocumentQuote {
    /// Such as `U0:plan:3`.
    pub(crate) id: String,
    words: String,
}

/// Sentences of up to this many words are quoted in full.
const MAX_FULL_QUOTE_WORDS: usize = 16;
/// Longer sentences are cut to this many words.
const TRUNCATED_QUOTE_WORDS: usize = 10;
/// Minimum number of words in a quote.
const MIN_QUOTE_WORDS: usize = 3;

pub(crate) fn quotes(prompt: &str) -> Vec<DocumentQuote> {
    prompt.lines().filter_map(quote).collect()
}

/// Parses `[U0:plan:3] We sell through two dealers.`
fn quote(line: &str) -> Option<DocumentQuote> {
    let (id, text) = line.strip_prefix("[U0:")?.split_once("] ")?;
    let words: Vec<&str> = text.split(' ').collect();
    let ends = |word: &&str| word.ends_with(['.', '!', '?', '…']);
    let sentence = words.iter().position(ends).map_or(words.len(), |at| at + 1);
    let mut kept = &words[..sentence];
    if kept.len() > MAX_FULL_QUOTE_WORDS {
        kept = &kept[..TRUNCATED_QUOTE_WORDS];
        // A quote must not end on a number: the next word may be its unit.
        while let [before @ .., last] = kept
            && last.contains(|letter: char| letter.is_ascii_digit())
        {
            kept = before;
        }
    }
    let words = kept.join(" ");
    let words = words.trim_end_matches([',', ';', ':', '.', '!', '?']);
    let is_plain = !words.contains(['"', '“', '”', '[', ']', '…']);
    (is_plain && kept.len() >= MIN_QUOTE_WORDS)
        .then(|| DocumentQuote { id: format!("U0:{id}"), words: words.to_owned() })
}

impl DocumentQuote {
    /// Quotes the document verbatim.
    pub(crate) fn sentence(&self) -> String {
        format!("The company's documents say: \"{}\" [{}].", self.words, self.id)
    }

    /// The same quote with one letter changed.
    pub(crate) fn wrong_sentence(&self) -> Option<String> {
        let at = self.words.rfind(|letter: char| letter.is_ascii_lowercase())?;
        let other = if self.words[at..].starts_with('x') { "y" } else { "x" };
        let words = format!("{}{other}{}", &self.words[..at], &self.words[at + 1..]);
        Some(format!("The company's documents say: \"{words}\" [{}].", self.id))
    }
}
