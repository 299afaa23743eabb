//! Resolves citations to their values and filings.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::evidence::{
    AmountScale, Evidence, Fact, FactId, FactSheet, FactSource, FilingEvent, FilingPassage,
    NewsHeadline, UserDocument, UserPassage,
};
use crate::report::document::{
    DocumentBlock, DocumentTable, FilingLink, TableColumn, TextSpan, Words,
};
use crate::text::one_line;

/// How many characters of a passage are shown in a table.
const MAX_QUOTED: usize = 200;

/// A citable item of the evidence.
enum CitedItem<'a> {
    Fact(&'a FactSheet, FactId, &'a Fact),
    Event(&'a FilingEvent),
    Passage(&'a FilingPassage),
    Document(&'a UserDocument, &'a UserPassage),
    Headline(&'a NewsHeadline),
}

/// The citation's canonical form in the source list, if it can be resolved.
pub(crate) fn canonical_citation(evidence: &Evidence, id: &str) -> Option<String> {
    Some(match find_cited_item(evidence, id)? {
        CitedItem::Fact(_, id, _) => format!("F0:{id}"),
        CitedItem::Event(_)
        | CitedItem::Passage(_)
        | CitedItem::Document(..)
        | CitedItem::Headline(_) => id.to_owned(),
    })
}

/// The filing a citation links to; `None` for computed values.
pub(crate) fn link(evidence: &Evidence, id: &str) -> Option<FilingLink> {
    match find_cited_item(evidence, id)? {
        CitedItem::Fact(_, _, fact) => filing(evidence, &fact.filed()?.accession),
        CitedItem::Event(event) => filing(evidence, &event.accession),
        CitedItem::Passage(passage) => filing(evidence, &passage.accession),
        // User documents have no public location, and links from news feeds are untrusted.
        CitedItem::Document(..) | CitedItem::Headline(_) => None,
    }
}

/// The link to a filing; `None` for a fictional company.
pub(crate) fn filing(evidence: &Evidence, accession: &str) -> Option<FilingLink> {
    let sheet = evidence.sheet.as_ref().filter(|_| !evidence.company.fictional)?;
    FilingLink::new(&sheet.link(accession))
}

/// A resolved citation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ts_rs::TS)]
pub struct CitedFact {
    /// The citation's id, such as `F0:Revenue:FY2025`.
    pub id: String,
    /// The value, formatted for display.
    pub says: String,
    /// The filing it is from.
    pub filed: Option<String>,
    /// The accession number of the filing.
    pub accession: Option<String>,
    /// The URL of the filing; absent for a fictional company.
    pub link: Option<String>,
    /// The formula, if the value is computed.
    pub formula: Option<String>,
    /// The facts it was computed from.
    pub inputs: Vec<String>,
}

/// Resolves a citation; `None` if it is unknown.
pub fn cited(evidence: &Evidence, id: &str) -> Option<CitedFact> {
    let (formula, inputs) = match find_cited_item(evidence, id)? {
        CitedItem::Fact(_, _, Fact { source: FactSource::Derived { formula, inputs }, .. }) => {
            let inputs = inputs.iter().map(|input| format!("F0:{input}")).collect();
            (Some(formula.clone()), inputs)
        }
        _ => (None, Vec::new()),
    };
    let (filed, accession) = filed(evidence, id).unzip();
    Some(CitedFact {
        id: canonical_citation(evidence, id)?,
        says: value(evidence, id, None)?,
        filed,
        accession,
        link: link(evidence, id).map(|link| link.as_str().to_owned()),
        formula,
        inputs,
    })
}

/// The scale of the amounts in a table of these citations.
pub(crate) fn amount_scale(evidence: &Evidence, ids: &[String]) -> Option<AmountScale> {
    let facts: Vec<FactId> = ids
        .iter()
        .filter_map(|id| match find_cited_item(evidence, id)? {
            CitedItem::Fact(_, id, _) => Some(id),
            _ => None,
        })
        .collect();
    evidence.sheet.as_ref().map(|sheet| sheet.amount_scale(&facts))
}

/// The value of a citation, formatted for display.
pub(crate) fn value(evidence: &Evidence, id: &str, scale: Option<AmountScale>) -> Option<String> {
    match find_cited_item(evidence, id)? {
        CitedItem::Fact(sheet, id, _) => match scale {
            Some(scale) => sheet.display_value_in(&id, scale),
            None => sheet.display_value(&id),
        },
        CitedItem::Event(event) => Some(event.subjects()),
        CitedItem::Passage(passage) => Some(one_line(&passage.text, MAX_QUOTED)),
        CitedItem::Document(_, passage) => Some(one_line(&passage.text, MAX_QUOTED)),
        CitedItem::Headline(headline) => Some(one_line(&headline.text, MAX_QUOTED)),
    }
}

/// The description and accession number of the filing; `None` for computed values.
pub(crate) fn filed(evidence: &Evidence, id: &str) -> Option<(String, String)> {
    match find_cited_item(evidence, id)? {
        CitedItem::Fact(_, _, fact) => {
            let filed = fact.filed()?;
            Some((format!("{} of {}", filed.form, filed.filed), filed.accession.clone()))
        }
        CitedItem::Event(event) => {
            Some((format!("{} of {}", event.form, event.filed), event.accession.clone()))
        }
        CitedItem::Passage(passage) => {
            Some((format!("{}, item {}", passage.form, passage.item), passage.accession.clone()))
        }
        CitedItem::Document(..) | CitedItem::Headline(_) => None,
    }
}

/// The source list: everything cited, with the inputs of computed values.
pub(crate) fn listed(evidence: &Evidence, cited: &BTreeSet<String>) -> Vec<DocumentBlock> {
    let mut facts = BTreeSet::new();
    let mut others = Vec::new();
    for one in cited.iter().filter_map(|id| Some((id, find_cited_item(evidence, id)?))) {
        match one {
            (_, CitedItem::Fact(sheet, id, _)) => with_inputs(sheet, id, &mut facts),
            other => others.push(other),
        }
    }
    let mut rows: Vec<Vec<Words>> = Vec::new();
    if let Some(sheet) = &evidence.sheet {
        let scale = sheet.amount_scale(&facts);
        rows.extend(facts.iter().filter_map(|id| fact_row(evidence, sheet, id, scale)));
    }
    rows.extend(others.iter().filter_map(|(id, one)| other_row(evidence, id, one)));
    if rows.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        TableColumn::words("source"),
        TableColumn::numbers("value"),
        TableColumn::words("period ends"),
        TableColumn::words("filed"),
        TableColumn::wide("where"),
    ];
    vec![
        DocumentBlock::heading(1, "Sources"),
        DocumentBlock::paragraph("Everything cited above, with the inputs of computed values."),
        DocumentBlock::Table(DocumentTable { columns, rows, has_total: false }),
    ]
}

/// Adds a fact and, if it is computed, all its inputs transitively. This terminates because inputs
/// are older than the facts computed from them; facts already present are skipped.
fn with_inputs(sheet: &FactSheet, id: FactId, into: &mut BTreeSet<FactId>) {
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        if let Some(Fact { source: FactSource::Derived { inputs, .. }, .. }) = sheet.fact(&id) {
            open.extend(inputs.iter().filter(|input| !into.contains(*input)).cloned());
        }
        into.insert(id);
    }
}

fn fact_row(
    evidence: &Evidence,
    sheet: &FactSheet,
    id: &FactId,
    scale: AmountScale,
) -> Option<Vec<Words>> {
    let plain = |text: &str| vec![TextSpan::text(text)];
    let head = [
        vec![TextSpan::Source { id: format!("F0:{id}") }],
        plain(&sheet.display_value_in(id, scale).unwrap_or_default()),
    ];
    let rest = match &sheet.fact(id)?.source {
        FactSource::Filed(filed) => [
            plain(&filed.end.to_string()),
            plain(&filed.filed.to_string()),
            filing_location(evidence, &filed.form, &filed.accession),
        ],
        FactSource::Derived { formula, .. } => {
            [Words::new(), Words::new(), plain(&format!("computed: {formula}"))]
        }
    };
    Some(head.into_iter().chain(rest).collect())
}

fn other_row(evidence: &Evidence, id: &str, one: &CitedItem<'_>) -> Option<Vec<Words>> {
    let (filed, where_it_is) = match one {
        CitedItem::Fact(..) => return None,
        CitedItem::Event(event) => {
            (event.filed.to_string(), filing_location(evidence, &event.form, &event.accession))
        }
        CitedItem::Passage(passage) => {
            (String::new(), filing_location(evidence, &passage.form, &passage.accession))
        }
        CitedItem::Document(document, passage) => {
            let place = format!("your document {}, passage {}", document.name, passage.number);
            (String::new(), vec![TextSpan::text(&place)])
        }
        CitedItem::Headline(headline) => {
            let day = headline.published.map(|day| day.to_string()).unwrap_or_default();
            let place = format!("{}: {}, {}", headline.source, headline.text, headline.url);
            (day, vec![TextSpan::text(&place)])
        }
    };
    let source = vec![TextSpan::Source { id: id.to_owned() }];
    let filed = vec![TextSpan::text(&filed)];
    Some(vec![source, Words::new(), Words::new(), filed, where_it_is])
}

fn filing_location(evidence: &Evidence, form: &str, accession: &str) -> Words {
    let text = format!("{form} {accession}");
    match filing(evidence, accession) {
        Some(url) => vec![TextSpan::Link { text, url }],
        None => vec![TextSpan::text(&text)],
    }
}

fn find_cited_item<'a>(evidence: &'a Evidence, id: &str) -> Option<CitedItem<'a>> {
    let (kind, name) = id.split_once(':')?;
    match kind {
        "F0" => {
            let sheet = evidence.sheet.as_ref()?;
            let id = FactId::parse(name)?;
            let fact = sheet.fact(&id)?;
            Some(CitedItem::Fact(sheet, id, fact))
        }
        "E0" => {
            let mut events = evidence.events.iter();
            events.find(|event| event.accession == name).map(CitedItem::Event)
        }
        "T0" => {
            let is_it = |passage: &&FilingPassage| {
                let FilingPassage { accession, item, paragraph, .. } = passage;
                format!("{accession}:{item}:{paragraph}") == name
            };
            evidence.passages.iter().find(is_it).map(CitedItem::Passage)
        }
        "U0" => evidence.documents.iter().find_map(|document| {
            let mut passages = document.passages.iter();
            let passage = passages.find(|passage| document.citation(passage) == id)?;
            Some(CitedItem::Document(document, passage))
        }),
        "N0" => {
            let number: u32 = name.parse().ok()?;
            let mut headlines = evidence.headlines.iter();
            headlines.find(|headline| headline.number == number).map(CitedItem::Headline)
        }
        _ => None,
    }
}
