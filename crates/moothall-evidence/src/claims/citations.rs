//! Parses citations as agents write them.
//!
//! `[F0:Metric:Period]` is a fact, `[E0:accession]` a filing event, `[T0:accession:item:paragraph]`
//! a passage of a filing, `[U0:document:passage]` one of the user's own documents, `[N0:n]` a
//! headline, `[X0:m7-D2-1]` a calculation of a debate, `[A1: basis]` an assumption. One bracket may
//! hold several, separated by `;` or `,`.

use super::claim_regex::ClaimRegex;

/// The target of a citation. Parsing does not check that the target exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CitationTarget {
    /// The metric and period as written.
    Fact {
        metric: String,
        period: String,
    },
    Event {
        accession: String,
    },
    Passage {
        accession: String,
        item: String,
        paragraph: u32,
    },
    /// A passage of one of the user's documents.
    Document {
        document: String,
        passage: u32,
    },
    Headline {
        number: u32,
    },
    /// A calculation of a debate, without the kind: `m7-D2-1`.
    Calculation {
        id: String,
    },
    Assumption,
    /// A citation that cannot be parsed, with the reason.
    Malformed {
        why: &'static str,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextCitation {
    /// As printed, without the brackets.
    pub(crate) text: String,
    pub(crate) cited: CitationTarget,
}

/// Longer than any valid id; longer citations are cut in messages.
const MAX_SHOWN: usize = 80;

pub(crate) static BRACKETS: ClaimRegex = ClaimRegex::new(
    r"\[\s*(?P<kind>[A-Z][0-9]{0,2})\s*(?::(?P<rest>[^\[\]]*))?\]|\[\s*(?P<odd>[FETNU]0\b[^\[\]]*)\]",
);

static KIND: ClaimRegex = ClaimRegex::new(r"^\s*(?P<kind>[A-Z][0-9]{1,2})\s*:(?P<rest>.*)$");

/// Returns all citations of a sentence, in order.
pub(crate) fn citations(sentence: &str) -> Vec<TextCitation> {
    let mut found = Vec::new();
    for bracket in BRACKETS.captures_iter(sentence) {
        if let Some(odd) = bracket.name("odd") {
            found.push(malformed(odd.as_str(), "a citation is written like [F0:Revenue:FY2025]"));
            continue;
        }
        let kind = bracket.name("kind").map_or("", |kind| kind.as_str());
        let rest = bracket.name("rest").map_or("", |rest| rest.as_str());
        if kind.starts_with('A') {
            found.push(TextCitation { text: truncated(kind), cited: CitationTarget::Assumption });
            continue;
        }
        let mut kind = kind;
        for part in rest.split([';', ',']) {
            let mut id = part;
            // A part may name its own kind: `[F0:Revenue:FY2025; E0:…]`.
            if let Some(own) = KIND.captures(part) {
                kind = own.name("kind").map_or(kind, |own| own.as_str());
                id = own.name("rest").map_or(id, |rest| rest.as_str());
            }
            found.push(one(kind, id.trim()));
        }
    }
    found
}

fn one(kind: &str, id: &str) -> TextCitation {
    let text = format!("{kind}:{id}");
    let why = match kind {
        "F0" => match id.rsplit_once(':') {
            Some((metric, period)) => {
                let (metric, period) = (metric.trim().to_owned(), period.trim().to_owned());
                return TextCitation {
                    text: truncated(&text),
                    cited: CitationTarget::Fact { metric, period },
                };
            }
            None => "a fact is cited as [F0:Metric:Period]",
        },
        "E0" => {
            let accession = id.to_owned();
            return TextCitation {
                text: truncated(&text),
                cited: CitationTarget::Event { accession },
            };
        }
        "T0" => match passage(id) {
            Some(cited) => return TextCitation { text: truncated(&text), cited },
            None => "a passage is cited as [T0:accession:item:paragraph]",
        },
        "U0" => match document(id) {
            Some(cited) => return TextCitation { text: truncated(&text), cited },
            None => "a document is cited as [U0:document:passage]",
        },
        "N0" => match id.parse() {
            Ok(number) => {
                return TextCitation {
                    text: truncated(&text),
                    cited: CitationTarget::Headline { number },
                };
            }
            Err(_) => "a headline is cited as [N0:number]",
        },
        "X0" => {
            let cited = CitationTarget::Calculation { id: truncated(id) };
            return TextCitation { text: truncated(&text), cited };
        }
        kind if kind.starts_with('A') => {
            return TextCitation { text: truncated(&text), cited: CitationTarget::Assumption };
        }
        _ => "there is no such kind of citation",
    };
    malformed(&text, why)
}

fn passage(id: &str) -> Option<CitationTarget> {
    let mut parts = id.split(':').map(str::trim);
    let (accession, item, paragraph) = (parts.next()?, parts.next()?, parts.next()?);
    let paragraph = paragraph.trim_start_matches(['p', 'P', '#']).parse().ok()?;
    let is_whole = parts.next().is_none() && !accession.is_empty() && !item.is_empty();
    let (accession, item) = (accession.to_owned(), plain_item(item));
    is_whole.then_some(CitationTarget::Passage { accession, item, paragraph })
}

fn document(id: &str) -> Option<CitationTarget> {
    let (document, passage) = id.split_once(':')?;
    let passage = passage.trim().trim_start_matches(['p', 'P', '#']).parse().ok()?;
    let document = document.trim().to_ascii_lowercase();
    (!document.is_empty()).then_some(CitationTarget::Document { document, passage })
}

/// Normalizes an item: `Item 1A.` and `1a` are equal.
pub(crate) fn plain_item(item: &str) -> String {
    let lower = item.trim().to_ascii_lowercase();
    lower.strip_prefix("item").unwrap_or(&lower).trim().trim_end_matches('.').to_owned()
}

fn malformed(text: &str, why: &'static str) -> TextCitation {
    TextCitation { text: truncated(text), cited: CitationTarget::Malformed { why } }
}

fn truncated(text: &str) -> String {
    text.chars().take(MAX_SHOWN).collect()
}

#[cfg(test)]
pub(crate) static ALL: &[&ClaimRegex] = &[&BRACKETS, &KIND];

#[cfg(test)]
#[path = "citations_tests.rs"]
mod tests;
