//! What can be cited, indexed once so that a sentence is checked in microseconds.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::citations::plain_item;
use crate::evidence::{
    Day, Evidence, Fact, FactId, FilingEvent, Headline, Passage, Period, Sheet, Source, Unit,
    UserDocument,
};

/// Everything that a text may cite.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// The fact sheet F0; without one every `[F0:…]` is a bad citation.
    pub sheet: Option<&'a Sheet>,
    /// Filing events, cited as `[E0:accession]`.
    pub events: &'a [FilingEvent],
    /// Passages of filings, cited as `[T0:accession:item:paragraph]`.
    pub passages: &'a [Passage],
    /// The user's own documents, cited as `[U0:document:passage]`.
    pub documents: &'a [UserDocument],
    /// Headlines, cited as `[N0:number]`.
    pub headlines: &'a [Headline],
}

impl<'a> From<&'a Evidence> for Known<'a> {
    fn from(evidence: &'a Evidence) -> Self {
        Self {
            sheet: evidence.sheet.as_ref(),
            events: &evidence.events,
            passages: &evidence.passages,
            documents: &evidence.documents,
            headlines: &evidence.headlines,
        }
    }
}

/// A fact of the sheet with its id.
#[derive(Debug, Clone, Copy)]
pub(super) struct FactRef<'a> {
    pub(super) id: &'a FactId,
    pub(super) fact: &'a Fact,
    /// A balance of one day, which has no length.
    pub(super) is_balance: bool,
}

/// The index over what is known.
#[derive(Debug)]
pub(super) struct Index<'a> {
    sheet: Option<SheetIndex<'a>>,
    events: BTreeMap<&'a str, &'a FilingEvent>,
    /// By accession, then by item and paragraph.
    passages: BTreeMap<&'a str, BTreeMap<(String, u32), &'a str>>,
    /// By document and passage.
    documents: BTreeMap<(&'a str, u32), &'a str>,
    headlines: BTreeMap<u32, &'a str>,
}

/// The index over one sheet.
#[derive(Debug)]
pub(super) struct SheetIndex<'a> {
    pub(super) currency: &'a str,
    /// The newest fiscal year with a fact of its own; a later one lies in the future.
    pub(super) newest_year: i32,
    pub(super) year_ends: &'a BTreeMap<i32, Day>,
    /// By the metric's name in lower case: agents do not always keep the case.
    metrics: BTreeMap<String, BTreeMap<Period, FactRef<'a>>>,
    periods: BTreeMap<Period, Vec<FactRef<'a>>>,
    /// Facts of one unit by magnitude.
    magnitudes: BTreeMap<Unit, Vec<(Decimal, FactRef<'a>)>>,
}

impl<'a> Index<'a> {
    pub(super) fn new(known: Known<'a>) -> Self {
        let mut passages: BTreeMap<&str, BTreeMap<(String, u32), &str>> = BTreeMap::new();
        for passage in known.passages {
            let place = (plain_item(&passage.item), passage.paragraph);
            passages.entry(&passage.accession).or_default().insert(place, &passage.text);
        }
        let mut documents = BTreeMap::new();
        for document in known.documents {
            for passage in &document.passages {
                documents.insert((document.id.as_str(), passage.number), passage.text.as_str());
            }
        }
        let event = |event: &'a FilingEvent| (event.accession.as_str(), event);
        let headline = |headline: &'a Headline| (headline.number, headline.text.as_str());
        Self {
            sheet: known.sheet.map(SheetIndex::new),
            events: known.events.iter().map(event).collect(),
            passages,
            documents,
            headlines: known.headlines.iter().map(headline).collect(),
        }
    }

    pub(super) fn sheet(&self) -> Option<&SheetIndex<'a>> {
        self.sheet.as_ref()
    }

    pub(super) fn event(&self, accession: &str) -> Option<&'a FilingEvent> {
        self.events.get(accession).copied()
    }

    pub(super) fn passage(&self, accession: &str, item: &str, paragraph: u32) -> Option<&'a str> {
        self.passages.get(accession)?.get(&(item.to_owned(), paragraph)).copied()
    }

    pub(super) fn document(&self, document: &str, passage: u32) -> Option<&'a str> {
        self.documents.get(&(document, passage)).copied()
    }

    pub(super) fn headline(&self, number: u32) -> Option<&'a str> {
        self.headlines.get(&number).copied()
    }
}

impl<'a> SheetIndex<'a> {
    fn new(sheet: &'a Sheet) -> Self {
        let mut index = Self {
            currency: &sheet.currency,
            newest_year: sheet.fiscal_year_ends.keys().next_back().copied().unwrap_or(0),
            year_ends: &sheet.fiscal_year_ends,
            metrics: BTreeMap::new(),
            periods: BTreeMap::new(),
            magnitudes: BTreeMap::new(),
        };
        let balances = balances(sheet);
        // Facts of one metric stand together, so a name is looked up once and not for each of them.
        let facts: Vec<(&FactId, &Fact)> = sheet.facts.iter().collect();
        for facts in facts.chunk_by(|(one, _), (other, _)| one.metric == other.metric) {
            let Some((FactId { metric, .. }, _)) = facts.first() else { continue };
            let is_balance = balances.contains(metric.as_str());
            let facts = facts.iter().map(|(id, fact)| FactRef { id, fact, is_balance });
            for found in facts.clone() {
                let FactRef { id, fact, .. } = found;
                index.newest_year = index.newest_year.max(id.period.fiscal_year());
                index.periods.entry(id.period).or_default().push(found);
                index.magnitudes.entry(fact.unit).or_default().push((fact.value.abs(), found));
            }
            let by_period = facts.map(|found| (found.id.period, found));
            index.metrics.entry(metric.to_ascii_lowercase()).or_default().extend(by_period);
        }
        // Stable: equal magnitudes stay in the order of their ids.
        for facts in index.magnitudes.values_mut() {
            facts.sort_by_key(|(magnitude, _)| *magnitude);
        }
        index
    }

    /// The fact of a metric in a period, both as an agent wrote them. A balance at the end of the
    /// fourth quarter is the balance of the year.
    pub(super) fn cited(&self, metric: &str, period: &str) -> Option<FactRef<'a>> {
        let period = Period::parse(period)?;
        let facts = self.metrics.get(&metric.to_ascii_lowercase())?;
        let year_end = match period {
            Period::Quarter(year, 4) => {
                facts.get(&Period::Year(year)).filter(|fact| fact.is_balance)
            }
            _ => None,
        };
        facts.get(&period).or(year_end).copied()
    }

    pub(super) fn fact(&self, id: &FactId) -> Option<FactRef<'a>> {
        self.metrics.get(&id.metric.to_ascii_lowercase())?.get(&id.period).copied()
    }

    /// The same metric in every period.
    pub(super) fn of_metric(&self, metric: &str) -> impl Iterator<Item = FactRef<'a>> {
        let facts = self.metrics.get(&metric.to_ascii_lowercase());
        facts.into_iter().flat_map(|facts| facts.values().copied())
    }

    /// Every metric in the same period.
    pub(super) fn of_period(&self, period: Period) -> impl Iterator<Item = FactRef<'a>> {
        self.periods.get(&period).into_iter().flatten().copied()
    }

    /// Facts of a unit whose magnitude lies between the two.
    pub(super) fn of_magnitude(
        &self,
        unit: Unit,
        from: Decimal,
        to: Decimal,
    ) -> impl Iterator<Item = FactRef<'a>> {
        let facts = self.magnitudes.get(&unit).map_or(&[][..], Vec::as_slice);
        let start = facts.partition_point(|(magnitude, _)| *magnitude < from);
        facts[start..]
            .iter()
            .take_while(move |(magnitude, _)| *magnitude <= to)
            .map(|(_, fact)| *fact)
    }
}

/// Metrics that are balances: filed without a first day, or derived from nothing but such.
fn balances(sheet: &Sheet) -> BTreeSet<&str> {
    let mut filed: BTreeMap<&str, bool> = BTreeMap::new();
    for (id, fact) in &sheet.facts {
        if let Source::Filed(source) = &fact.source {
            *filed.entry(&id.metric).or_insert(true) &= source.start.is_none();
        }
    }
    let is_filed_balance = |metric: &str| filed.get(metric).copied();
    let mut found: BTreeSet<&str> =
        filed.iter().filter(|(_, is_balance)| **is_balance).map(|(metric, _)| *metric).collect();
    // Two rounds: NetCash is derived from TotalDebt, which is derived from filed balances.
    for _ in 0..2 {
        for (id, fact) in &sheet.facts {
            let Source::Derived { inputs, .. } = &fact.source else { continue };
            if found.contains(id.metric.as_str()) {
                continue;
            }
            let of_one_day = inputs
                .iter()
                .all(|input| input.period == id.period && found.contains(input.metric.as_str()));
            if !inputs.is_empty() && of_one_day && is_filed_balance(&id.metric) != Some(false) {
                found.insert(&id.metric);
            }
        }
    }
    found
}
