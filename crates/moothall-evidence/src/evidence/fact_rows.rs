//! The sheet as a list of rows, for export.

use serde::Serialize;

use super::fact::{FactId, FactSource, FactUnit};
use super::metric_order::metric_position;
use super::sheet::FactSheet;

/// One fact with all its details as text. Fields that do not apply are empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactRow {
    /// The fact id used in citations.
    pub id: String,
    /// The metric.
    pub metric: String,
    /// The fiscal period.
    pub period: String,
    /// The full, unrounded value.
    pub value: String,
    /// The currency, `USD/share`, `shares`, `ratio`, `x` or `days`.
    pub unit: String,
    /// `filed` or `derived`.
    pub source: &'static str,
    /// The tag of a filed value.
    pub concept: String,
    /// How the value was derived or adjusted for a split.
    pub formula: String,
    /// The facts it was derived from.
    pub inputs: Vec<String>,
    /// The accession number of the filing.
    pub accession: String,
    /// The form of the filing.
    pub form: String,
    /// The filing date.
    pub filed: String,
    /// The first day that the value covers.
    pub start: String,
    /// The last day that the value covers.
    pub end: String,
    /// The value of the first filing and its date, if it was different.
    pub restated_from: String,
    /// URL of the filing's index page.
    pub link: String,
}

impl FactRow {
    /// The column names.
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

    /// The cells in column order.
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

impl FactSheet {
    /// All facts, most important metrics first, each from its oldest to its newest period.
    pub fn rows(&self) -> Vec<FactRow> {
        let mut ids: Vec<&FactId> = self.facts.keys().collect();
        // A stable sort keeps the periods of a metric in order.
        ids.sort_by_cached_key(|id| metric_position(&id.metric));
        ids.into_iter().filter_map(|id| self.row_of(id)).collect()
    }

    /// URL of the index page of one of this filer's filings.
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
            FactSource::Filed(filed) => {
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
            FactSource::Derived { formula, inputs } => {
                row.source = "derived";
                row.formula.clone_from(formula);
                row.inputs = inputs.iter().map(FactId::to_string).collect();
            }
        }
        Some(row)
    }

    fn unit_name(&self, unit: FactUnit) -> String {
        match unit {
            FactUnit::Money => self.currency.clone(),
            FactUnit::PerShare => format!("{}/share", self.currency),
            FactUnit::Shares => "shares".to_owned(),
            FactUnit::Ratio => "ratio".to_owned(),
            FactUnit::Multiple => "x".to_owned(),
            FactUnit::Days => "days".to_owned(),
        }
    }
}

#[cfg(test)]
#[path = "fact_rows_tests.rs"]
mod tests;
