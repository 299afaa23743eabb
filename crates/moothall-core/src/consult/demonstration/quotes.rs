//! Words of the user's documents, as they stand in a prompt, to be quoted.

/// A passage as prompts show it, cut where a quotation may end.
#[derive(Debug)]
pub(super) struct Quote {
    /// `U0:plan:3`.
    pub(super) id: String,
    words: String,
}

/// A passage of so many words is quoted whole.
const WHOLE: usize = 16;
/// Of a longer one its beginning.
const BEGINNING: usize = 10;
/// Less says nothing.
const LEAST: usize = 3;

/// The passages of a prompt that can be quoted.
pub(super) fn quotes(prompt: &str) -> Vec<Quote> {
    prompt.lines().filter_map(quote).collect()
}

/// `[U0:plan:3] We sell through two dealers.`
fn quote(line: &str) -> Option<Quote> {
    let (id, text) = line.strip_prefix("[U0:")?.split_once("] ")?;
    let words: Vec<&str> = text.split(' ').collect();
    let ends = |word: &&str| word.ends_with(['.', '!', '?', '…']);
    let sentence = words.iter().position(ends).map_or(words.len(), |at| at + 1);
    let mut kept = &words[..sentence];
    if kept.len() > WHOLE {
        kept = &kept[..BEGINNING];
        // What follows a number may be its unit.
        while let [before @ .., last] = kept
            && last.contains(|letter: char| letter.is_ascii_digit())
        {
            kept = before;
        }
    }
    let words = kept.join(" ");
    let words = words.trim_end_matches([',', ';', ':', '.', '!', '?']);
    let is_plain = !words.contains(['"', '“', '”', '[', ']', '…']);
    (is_plain && kept.len() >= LEAST)
        .then(|| Quote { id: format!("U0:{id}"), words: words.to_owned() })
}

impl Quote {
    /// What the document says, word for word.
    pub(super) fn sentence(&self) -> String {
        format!("The company's documents say: \"{}\" [{}].", self.words, self.id)
    }

    /// The same with one letter changed.
    pub(super) fn wrong_sentence(&self) -> Option<String> {
        let at = self.words.rfind(|letter: char| letter.is_ascii_lowercase())?;
        let other = if self.words[at..].starts_with('x') { "y" } else { "x" };
        let words = format!("{}{other}{}", &self.words[..at], &self.words[at + 1..]);
        Some(format!("The company's documents say: \"{words}\" [{}].", self.id))
    }
}
