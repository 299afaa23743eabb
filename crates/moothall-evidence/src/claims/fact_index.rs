//! Indexes everything that can be cited, once, so that checking a sentence takes microseconds.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::calculations::{self, CitableCalculation};
use super::citations::plain_item;
use crate::evidence::{
    CalendarDay, Evidence, Fact, FactId, FactSheet, FactSource, FactUnit, FilingEvent,
    FilingPassage, FiscalPeriod, NewsHeadline, UserDocument,
};

/// The evidence that a text may cite.
#[derive(Debug, Clone, Copy, Default)]
pub struct CitableEvidence<'a> {
    /// The fact sheet F0; without it every `[F0:…]` is a bad citation.
    pub sheet: Option<&'a FactSheet>,
    /// Filing events, cited as `[E0:accession]`.
    pub events: &'a [FilingEvent],
    /// Passages of filings, cited as `[T0:accession:item:paragraph]`.
    pub passages: &'a [FilingPassage],
    /// The user's own documents, cited as `[U0:document:passage]`.
    pub documents: &'a [UserDocument],
    /// Headlines, cited as `[N0:number]`.
    pub headlines: &'a [NewsHeadline],
    /// Calculations of debates, cited as `[X0:m7-D2-1]`.
    pub calculations: &'a [CitableCalculation],
}

impl<'a> From<&'a Evidence> for CitableEvidence<'a> {
    fn from(evidence: &'a Evidence) -> Self {
        Self {
            sheet: evidence.sheet.as_ref(),
            events: &evidence.events,
            passages: &evidence.passages,
            documents: &evidence.documents,
            headlines: &evidence.headlines,
            calculations: &[],
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct FactRef<'a> {
    pub(crate) id: &'a FactId,
    pub(crate) fact: &'a Fact,
    /// A balance on one day, which has no duration.
    pub(crate) is_balance: bool,
}

/// Lookup tables over the citable evidence.
#[derive(Debug)]
pub(crate) struct EvidenceIndex<'a> {
    sheet: Option<SheetIndex<'a>>,
    events: BTreeMap<&'a str, &'a FilingEvent>,
    /// Keyed by accession, then by item and paragraph.
    passages: BTreeMap<&'a str, BTreeMap<(String, u32), &'a str>>,
    /// Keyed by document and passage.
    documents: BTreeMap<(&'a str, u32), &'a str>,
    headlines: BTreeMap<u32, &'a str>,
    pub(crate) calculations: &'a [CitableCalculation],
}

/// Lookup tables over one fact sheet.
#[derive(Debug)]
pub(crate) struct SheetIndex<'a> {
    pub(crate) currency: &'a str,
    /// The newest fiscal year with a fact; later years are in the future.
    pub(crate) newest_year: i32,
    pub(crate) year_ends: &'a BTreeMap<i32, CalendarDay>,
    /// Keyed by metric name in lower case, because agents do not always preserve case.
    metrics: BTreeMap<String, BTreeMap<FiscalPeriod, FactRef<'a>>>,
    periods: BTreeMap<FiscalPeriod, Vec<FactRef<'a>>>,
    /// Facts of one unit, sorted by magnitude.
    magnitudes: BTreeMap<FactUnit, Vec<(Decimal, FactRef<'a>)>>,
}

impl<'a> EvidenceIndex<'a> {
    pub(crate) fn new(known: CitableEvidence<'a>) -> Self {
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
        let headline = |headline: &'a NewsHeadline| (headline.number, headline.text.as_str());
        Self {
            sheet: known.sheet.map(SheetIndex::new),
            events: known.events.iter().map(event).collect(),
            passages,
            documents,
            headlines: known.headlines.iter().map(headline).collect(),
            calculations: known.calculations,
        }
    }

    pub(crate) fn sheet(&self) -> Option<&SheetIndex<'a>> {
        self.sheet.as_ref()
    }

    pub(crate) fn event(&self, accession: &str) -> Option<&'a FilingEvent> {
        self.events.get(accession).copied()
    }

    pub(crate) fn passage(&self, accession: &str, item: &str, paragraph: u32) -> Option<&'a str> {
        self.passages.get(accession)?.get(&(item.to_owned(), paragraph)).copied()
    }

    pub(crate) fn document(&self, document: &str, passage: u32) -> Option<&'a str> {
        self.documents.get(&(document, passage)).copied()
    }

    /// Checks that a cited calculation exists.
    pub(crate) fn find_calculation(&self, id: &str) -> Result<(), &'static str> {
        match calculations::find(self.calculations, id) {
            Some(_) => Ok(()),
            // Most texts are written before any calculation, and for them the kind does not exist.
            None if self.calculations.is_empty() => Err("there is no such kind of citation"),
            None => Err("unknown calculation"),
        }
    }

    pub(crate) fn headline(&self, number: u32) -> Option<&'a str> {
        self.headlines.get(&number).copied()
    }
}

impl<'a> SheetIndex<'a> {
    fn new(sheet: &'a FactSheet) -> Self {
        let mut index = Self {
            currency: &sheet.currency,
            newest_year: sheet.fiscal_year_ends.keys().next_back().copied().unwrap_or(0),
            year_ends: &sheet.fiscal_year_ends,
            metrics: BTreeMap::new(),
            periods: BTreeMap::new(),
            magnitudes: BTreeMap::new(),
        };
        let balances = balances(sheet);
        // Facts are sorted by metric, so each name is looked up once per group.
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
        // A stable sort keeps facts of equal magnitude in id order.
        for facts in index.magnitudes.values_mut() {
            facts.sort_by_key(|(magnitude, _)| *magnitude);
        }
        index
    }

    /// Looks up a fact by metric and period as an agent wrote them. A balance at the end of the
    /// fourth quarter is the balance of the year.
    pub(crate) fn cited(&self, metric: &str, period: &str) -> Option<FactRef<'a>> {
        let period = FiscalPeriod::parse(period)?;
        let facts = self.metrics.get(&metric.to_ascii_lowercase())?;
        let year_end = match period {
            FiscalPeriod::Quarter(year, 4) => {
                facts.get(&FiscalPeriod::Year(year)).filter(|fact| fact.is_balance)
            }
            _ => None,
        };
        facts.get(&period).or(year_end).copied()
    }

    pub(crate) fn fact(&self, id: &FactId) -> Option<FactRef<'a>> {
        self.metrics.get(&id.metric.to_ascii_lowercase())?.get(&id.period).copied()
    }

    /// All periods of a metric.
    pub(crate) fn of_metric(&self, metric: &str) -> impl Iterator<Item = FactRef<'a>> {
        let facts = self.metrics.get(&metric.to_ascii_lowercase());
        facts.into_iter().flat_map(|facts| facts.values().copied())
    }

    /// All metrics of a period.
    pub(crate) fn of_period(&self, period: FiscalPeriod) -> impl Iterator<Item = FactRef<'a>> {
        self.periods.get(&period).into_iter().flatten().copied()
    }

    /// Facts of a unit with a magnitude from `from` to `to`, inclusive.
    pub(crate) fn of_magnitude(
        &self,
        unit: FactUnit,
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

/// Metrics that are balances: filed without a start day, or derived only from such metrics.
fn balances(sheet: &FactSheet) -> BTreeSet<&str> {
    let mut filed: BTreeMap<&str, bool> = BTreeMap::new();
    for (id, fact) in &sheet.facts {
        if let FactSource::Filed(source) = &fact.source {
            *filed.entry(&id.metric).or_insert(true) &= source.start.is_none();
        }
    }
    let is_filed_balance = |metric: &str| filed.get(metric).copied();
    let mut found: BTreeSet<&str> =
        filed.iter().filter(|(_, is_balance)| **is_balance).map(|(metric, _)| *metric).collect();
    // Two passes: NetCash is derived from TotalDebt, which is derived from filed balances.
    for _ in 0..2 {
        for (id, fact) in &sheet.facts {
            let FactSource::Derived { inputs, .. } = &fact.source else { continue };
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
