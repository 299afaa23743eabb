//! The sheet as a list, for files and other programs.

use serde::Serialize;

use super::fact::{FactId, Source, Unit};
use super::order::place;
use super::sheet::Sheet;

/// One fact with everything that is known about it, as text. What does not apply is empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactRow {
    /// The id that a citation names.
    pub id: String,
    /// The metric.
    pub metric: String,
    /// The fiscal period.
    pub period: String,
    /// The value in full.
    pub value: String,
    /// The currency, `USD/share`, `shares`, `ratio`, `x` or `days`.
    pub unit: String,
    /// `filed` or `derived`.
    pub source: &'static str,
    /// The tag of a filed value.
    pub concept: String,
    /// How a value was derived, or adjusted for a split.
    pub formula: String,
    /// The facts that it was derived from.
    pub inputs: Vec<String>,
    /// The number of the filing.
    pub accession: String,
    /// Its form.
    pub form: String,
    /// The day it was filed.
    pub filed: String,
    /// The first day that the value covers.
    pub start: String,
    /// The last one.
    pub end: String,
    /// What an earlier filing said, and when.
    pub restated_from: String,
    /// Where a person can read the filing.
    pub link: String,
}

impl FactRow {
    /// The names of the cells.
    pub const HEADINGS: [&'static str; 16] = [
        "id",
        "metric",
        "period",
        "value",
        "unit",
        "source",
        "concept",
        "formula",
        "inputs",
        "accession",
        "form",
        "filed",
        "start",
        "end",
        "restated_from",
        "link",
    ];

    /// The cells in the order of the headings.
    pub fn cells(&self) -> [String; 16] {
        [
            self.id.clone(),
            self.metric.clone(),
            self.period.clone(),
            self.value.clone(),
            self.unit.clone(),
            self.source.to_owned(),
            self.concept.clone(),
            self.formula.clone(),
            self.inputs.join("; "),
            self.accession.clone(),
            self.form.clone(),
            self.filed.clone(),
            self.start.clone(),
            self.end.clone(),
            self.restated_from.clone(),
            self.link.clone(),
        ]
    }
}

impl Sheet {
    /// Every fact, the most telling metrics first, each from its oldest year to its newest period.
    pub fn rows(&self) -> Vec<FactRow> {
        let mut ids: Vec<&FactId> = self.facts.keys().collect();
        // Stable, so that the periods of a metric keep their order.
        ids.sort_by_cached_key(|id| place(&id.metric));
        ids.into_iter().filter_map(|id| self.row_of(id)).collect()
    }

    /// Where a person can read a filing of this filer.
    pub fn link(&self, accession: &str) -> String {
        let (cik, digits) = (self.cik.number(), accession.replace('-', ""));
        format!("https://www.sec.gov/Archives/edgar/data/{cik}/{digits}/{accession}-index.htm")
    }

    fn row_of(&self, id: &FactId) -> Option<FactRow> {
        let fact = self.facts.get(id)?;
        let mut row = FactRow {
            id: id.to_string(),
            metric: id.metric.clone(),
            period: id.period.to_string(),
            value: fact.value.to_string(),
            unit: self.unit_name(fact.unit),
            source: "",
            concept: String::new(),
            formula: String::new(),
            inputs: Vec::new(),
            accession: String::new(),
            form: String::new(),
            filed: String::new(),
            start: String::new(),
            end: String::new(),
            restated_from: String::new(),
            link: String::new(),
        };
        match &fact.source {
            Source::Filed(filed) => {
                row.source = "filed";
                row.concept.clone_from(&filed.concept);
                row.accession.clone_from(&filed.accession);
                row.form.clone_from(&filed.form);
                row.filed = filed.filed.to_string();
                row.start = filed.start.map(|day| day.to_string()).unwrap_or_default();
                row.end = filed.end.to_string();
                if let Some(first) = &filed.restated_from {
                    row.restated_from = format!("{} filed {}", first.value, first.filed);
                }
                if let Some(split) = &filed.split {
                    row.formula =
                        format!("{} as filed, {}:1 split since", split.as_filed, split.factor);
                }
                row.link = self.link(&filed.accession);
            }
            Source::Derived { formula, inputs } => {
                row.source = "derived";
                row.formula.clone_from(formula);
                row.inputs = inputs.iter().map(FactId::to_string).collect();
            }
        }
        Some(row)
    }

    fn unit_name(&self, unit: Unit) -> String {
        match unit {
            Unit::Money => self.currency.clone(),
            Unit::PerShare => format!("{}/share", self.currency),
            Unit::Shares => "shares".to_owned(),
            Unit::Ratio => "ratio".to_owned(),
            Unit::Multiple => "x".to_owned(),
            Unit::Days => "days".to_owned(),
        }
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
