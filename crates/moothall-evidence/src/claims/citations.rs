//! Citations as agents write them.
//!
//! `[F0:Metric:Period]` a fact, `[E0:accession]` a filing event, `[T0:accession:item:paragraph]` a
//! passage of a filing, `[U0:document:passage]` one of the user's own documents, `[N0:n]` a headline,
//! `[A1: basis]` an assumption. Several may stand in one bracket, divided by `;` or `,`.

use super::pattern::Pattern;

/// What one citation names; whether that exists is another question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cited {
    /// A metric, as written, and a period, as written.
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
    /// A passage of a document of the user's.
    Document {
        document: String,
        passage: u32,
    },
    Headline {
        number: u32,
    },
    Assumption,
    /// Nothing that could exist, and why.
    Malformed {
        why: &'static str,
    },
}

/// One citation of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Citation {
    /// As it is printed, without the brackets.
    pub(super) text: String,
    pub(super) cited: Cited,
}

/// More than any id needs; the rest of a longer one is not shown.
const MAX_SHOWN: usize = 80;

pub(super) static BRACKETS: Pattern = Pattern::new(
    r"\[\s*(?P<kind>[A-Z][0-9]{0,2})\s*(?::(?P<rest>[^\[\]]*))?\]|\[\s*(?P<odd>[FETNU]0\b[^\[\]]*)\]",
);

static KIND: Pattern = Pattern::new(r"^\s*(?P<kind>[A-Z][0-9]{1,2})\s*:(?P<rest>.*)$");

/// All citations of a sentence, in order.
pub(super) fn citations(sentence: &str) -> Vec<Citation> {
    let mut found = Vec::new();
    for bracket in BRACKETS.captures_iter(sentence) {
        if let Some(odd) = bracket.name("odd") {
            found.push(malformed(odd.as_str(), "a citation is written like [F0:Revenue:FY2025]"));
            continue;
        }
        let kind = bracket.name("kind").map_or("", |kind| kind.as_str());
        let rest = bracket.name("rest").map_or("", |rest| rest.as_str());
        if kind.starts_with('A') {
            found.push(Citation { text: shown(kind), cited: Cited::Assumption });
            continue;
        }
        let mut kind = kind;
        for part in rest.split([';', ',']) {
            let mut id = part;
            // `[F0:Revenue:FY2025; E0:…]`: a part may name its own kind.
            if let Some(own) = KIND.captures(part) {
                kind = own.name("kind").map_or(kind, |own| own.as_str());
                id = own.name("rest").map_or(id, |rest| rest.as_str());
            }
            found.push(one(kind, id.trim()));
        }
    }
    found
}

fn one(kind: &str, id: &str) -> Citation {
    let text = format!("{kind}:{id}");
    let why = match kind {
        "F0" => match id.rsplit_once(':') {
            Some((metric, period)) => {
                let (metric, period) = (metric.trim().to_owned(), period.trim().to_owned());
                return Citation { text: shown(&text), cited: Cited::Fact { metric, period } };
            }
            None => "a fact is cited as [F0:Metric:Period]",
        },
        "E0" => {
            let accession = id.to_owned();
            return Citation { text: shown(&text), cited: Cited::Event { accession } };
        }
        "T0" => match passage(id) {
            Some(cited) => return Citation { text: shown(&text), cited },
            None => "a passage is cited as [T0:accession:item:paragraph]",
        },
        "U0" => match document(id) {
            Some(cited) => return Citation { text: shown(&text), cited },
            None => "a document is cited as [U0:document:passage]",
        },
        "N0" => match id.parse() {
            Ok(number) => {
                return Citation { text: shown(&text), cited: Cited::Headline { number } };
            }
            Err(_) => "a headline is cited as [N0:number]",
        },
        kind if kind.starts_with('A') => {
            return Citation { text: shown(&text), cited: Cited::Assumption };
        }
        _ => "there is no such kind of citation",
    };
    malformed(&text, why)
}

fn passage(id: &str) -> Option<Cited> {
    let mut parts = id.split(':').map(str::trim);
    let (accession, item, paragraph) = (parts.next()?, parts.next()?, parts.next()?);
    let paragraph = paragraph.trim_start_matches(['p', 'P', '#']).parse().ok()?;
    let is_whole = parts.next().is_none() && !accession.is_empty() && !item.is_empty();
    let (accession, item) = (accession.to_owned(), plain_item(item));
    is_whole.then_some(Cited::Passage { accession, item, paragraph })
}

fn document(id: &str) -> Option<Cited> {
    let (document, passage) = id.split_once(':')?;
    let passage = passage.trim().trim_start_matches(['p', 'P', '#']).parse().ok()?;
    let document = document.trim().to_ascii_lowercase();
    (!document.is_empty()).then_some(Cited::Document { document, passage })
}

/// `Item 1A.` and `1a` are the same item.
pub(super) fn plain_item(item: &str) -> String {
    let lower = item.trim().to_ascii_lowercase();
    lower.strip_prefix("item").unwrap_or(&lower).trim().trim_end_matches('.').to_owned()
}

fn malformed(text: &str, why: &'static str) -> Citation {
    Citation { text: shown(text), cited: Cited::Malformed { why } }
}

fn shown(text: &str) -> String {
    text.chars().take(MAX_SHOWN).collect()
}

#[cfg(test)]
pub(super) static ALL: &[&Pattern] = &[&BRACKETS, &KIND];

#[cfg(test)]
#[path = "citations_tests.rs"]
mod tests;
