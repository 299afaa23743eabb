//! What citations name, with the filing behind each.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::evidence::{
    Evidence, Fact, FactId, FilingEvent, Headline, Passage, Sheet, Source, UserDocument,
    UserPassage,
};
use crate::report::document::{Block, Column, Link, Span, Table, Words};
use crate::text::one_line;

/// How much of a passage stands in a table.
const MAX_QUOTED: usize = 200;

/// One thing that can be cited and exists.
enum Known<'a> {
    Fact(&'a Sheet, FactId, &'a Fact),
    Event(&'a FilingEvent),
    Passage(&'a Passage),
    Document(&'a UserDocument, &'a UserPassage),
    Headline(&'a Headline),
}

/// A citation as its source is listed, where it names something that is there.
pub(super) fn listed_as(evidence: &Evidence, id: &str) -> Option<String> {
    Some(match known(evidence, id)? {
        Known::Fact(_, id, _) => format!("F0:{id}"),
        Known::Event(_) | Known::Passage(_) | Known::Document(..) | Known::Headline(_) => {
            id.to_owned()
        }
    })
}

/// The filing that a citation leads to; a computed value has none of its own.
pub(super) fn link(evidence: &Evidence, id: &str) -> Option<Link> {
    match known(evidence, id)? {
        Known::Fact(_, _, fact) => filing(evidence, &fact.filed()?.accession),
        Known::Event(event) => filing(evidence, &event.accession),
        Known::Passage(passage) => filing(evidence, &passage.accession),
        // Of a user's folder nobody else knows the place, and nobody vouches for a feed's links.
        Known::Document(..) | Known::Headline(_) => None,
    }
}

/// A filing where a person can read it. A company that does not exist has none.
pub(super) fn filing(evidence: &Evidence, accession: &str) -> Option<Link> {
    let sheet = evidence.sheet.as_ref().filter(|_| !evidence.company.fictional)?;
    Link::new(&sheet.link(accession))
}

/// What a citation leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ts_rs::TS)]
pub struct CitedFact {
    /// `F0:Revenue:FY2025`.
    pub id: String,
    /// What it says.
    pub says: String,
    /// The filing that says so.
    pub filed: Option<String>,
    /// The number of that filing.
    pub accession: Option<String>,
    /// Where a person can read it; a company that does not exist has no such place.
    pub link: Option<String>,
    /// How it was computed, where it was.
    pub formula: Option<String>,
    /// What it was computed from.
    pub inputs: Vec<String>,
}

/// What a citation leads to; nothing where it names nothing.
pub fn cited(evidence: &Evidence, id: &str) -> Option<CitedFact> {
    let (formula, inputs) = match known(evidence, id)? {
        Known::Fact(_, _, Fact { source: Source::Derived { formula, inputs }, .. }) => {
            let inputs = inputs.iter().map(|input| format!("F0:{input}")).collect();
            (Some(formula.clone()), inputs)
        }
        _ => (None, Vec::new()),
    };
    let (filed, accession) = filed(evidence, id).unzip();
    Some(CitedFact {
        id: listed_as(evidence, id)?,
        says: value(evidence, id)?,
        filed,
        accession,
        link: link(evidence, id).map(|link| link.as_str().to_owned()),
        formula,
        inputs,
    })
}

/// The value that a citation stands for, in words.
pub(super) fn value(evidence: &Evidence, id: &str) -> Option<String> {
    match known(evidence, id)? {
        Known::Fact(sheet, id, _) => sheet.words(&id),
        Known::Event(event) => Some(event.subjects()),
        Known::Passage(passage) => Some(one_line(&passage.text, MAX_QUOTED)),
        Known::Document(_, passage) => Some(one_line(&passage.text, MAX_QUOTED)),
        Known::Headline(headline) => Some(one_line(&headline.text, MAX_QUOTED)),
    }
}

/// The filing that says so, in words, and its number; a computed value has none of its own.
pub(super) fn filed(evidence: &Evidence, id: &str) -> Option<(String, String)> {
    match known(evidence, id)? {
        Known::Fact(_, _, fact) => {
            let filed = fact.filed()?;
            Some((format!("{} of {}", filed.form, filed.filed), filed.accession.clone()))
        }
        Known::Event(event) => {
            Some((format!("{} of {}", event.form, event.filed), event.accession.clone()))
        }
        Known::Passage(passage) => {
            Some((format!("{}, item {}", passage.form, passage.item), passage.accession.clone()))
        }
        Known::Document(..) | Known::Headline(_) => None,
    }
}

/// What was cited, and what the computed values among it were computed from.
pub(super) fn listed(evidence: &Evidence, cited: &BTreeSet<String>) -> Vec<Block> {
    let mut facts = BTreeSet::new();
    let mut others = Vec::new();
    for one in cited.iter().filter_map(|id| Some((id, known(evidence, id)?))) {
        match one {
            (_, Known::Fact(sheet, id, _)) => with_inputs(sheet, id, &mut facts),
            other => others.push(other),
        }
    }
    let mut rows: Vec<Vec<Words>> = Vec::new();
    if let Some(sheet) = &evidence.sheet {
        let found = facts.iter().filter_map(|id| Some((id, sheet.fact(id)?)));
        rows.extend(found.map(|(id, fact)| fact_row(evidence, sheet, id, fact)));
    }
    rows.extend(others.iter().filter_map(|(id, one)| other_row(evidence, id, one)));
    if rows.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        Column::words("source"),
        Column::numbers("value"),
        Column::words("period ends"),
        Column::words("filed"),
        Column::wide("where"),
    ];
    vec![
        Block::heading(1, "What it rests on"),
        Block::paragraph(
            "Everything that is cited above, and what computed values were computed from.",
        ),
        Block::Table(Table { columns, rows, has_total: false }),
    ]
}

/// A fact and, where it was computed, everything below it. Inputs are older than what they make, so
/// this ends; what is there already is not looked at again.
fn with_inputs(sheet: &Sheet, id: FactId, into: &mut BTreeSet<FactId>) {
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        if let Some(Fact { source: Source::Derived { inputs, .. }, .. }) = sheet.fact(&id) {
            open.extend(inputs.iter().filter(|input| !into.contains(*input)).cloned());
        }
        into.insert(id);
    }
}

fn fact_row(evidence: &Evidence, sheet: &Sheet, id: &FactId, fact: &Fact) -> Vec<Words> {
    let plain = |text: &str| vec![Span::text(text)];
    let head = [
        vec![Span::Source { id: format!("F0:{id}") }],
        plain(&sheet.words(id).unwrap_or_default()),
    ];
    let rest = match &fact.source {
        Source::Filed(filed) => [
            plain(&filed.end.to_string()),
            plain(&filed.filed.to_string()),
            place(evidence, &filed.form, &filed.accession),
        ],
        Source::Derived { formula, .. } => {
            [Words::new(), Words::new(), plain(&format!("computed: {formula}"))]
        }
    };
    head.into_iter().chain(rest).collect()
}

fn other_row(evidence: &Evidence, id: &str, one: &Known<'_>) -> Option<Vec<Words>> {
    let (filed, where_it_is) = match one {
        Known::Fact(..) => return None,
        Known::Event(event) => {
            (event.filed.to_string(), place(evidence, &event.form, &event.accession))
        }
        Known::Passage(passage) => {
            (String::new(), place(evidence, &passage.form, &passage.accession))
        }
        Known::Document(document, passage) => {
            let place = format!("your document {}, passage {}", document.name, passage.number);
            (String::new(), vec![Span::text(&place)])
        }
        Known::Headline(headline) => {
            let day = headline.published.map(|day| day.to_string()).unwrap_or_default();
            let place = format!("{}: {}, {}", headline.source, headline.text, headline.url);
            (day, vec![Span::text(&place)])
        }
    };
    let source = vec![Span::Source { id: id.to_owned() }];
    let filed = vec![Span::text(&filed)];
    Some(vec![source, Words::new(), Words::new(), filed, where_it_is])
}

fn place(evidence: &Evidence, form: &str, accession: &str) -> Words {
    let text = format!("{form} {accession}");
    match filing(evidence, accession) {
        Some(url) => vec![Span::Link { text, url }],
        None => vec![Span::text(&text)],
    }
}

fn known<'a>(evidence: &'a Evidence, id: &str) -> Option<Known<'a>> {
    let (kind, name) = id.split_once(':')?;
    match kind {
        "F0" => {
            let sheet = evidence.sheet.as_ref()?;
            let id = FactId::parse(name)?;
            let fact = sheet.fact(&id)?;
            Some(Known::Fact(sheet, id, fact))
        }
        "E0" => {
            let mut events = evidence.events.iter();
            events.find(|event| event.accession == name).map(Known::Event)
        }
        "T0" => {
            let is_it = |passage: &&Passage| {
                let Passage { accession, item, paragraph, .. } = passage;
                format!("{accession}:{item}:{paragraph}") == name
            };
            evidence.passages.iter().find(is_it).map(Known::Passage)
        }
        "U0" => evidence.documents.iter().find_map(|document| {
            let mut passages = document.passages.iter();
            let passage = passages.find(|passage| document.citation(passage) == id)?;
            Some(Known::Document(document, passage))
        }),
        "N0" => {
            let number: u32 = name.parse().ok()?;
            let mut headlines = evidence.headlines.iter();
            headlines.find(|headline| headline.number == number).map(Known::Headline)
        }
        _ => None,
    }
}
