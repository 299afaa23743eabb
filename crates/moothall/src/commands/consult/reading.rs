//! A consultation that is kept, read as its readers see it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use moothall_core::consult::NOTHING;
use moothall_core::report::{self, ConsultView, DeriveFault, Paper, RunFacts};
use moothall_core::view::asks_again;
use moothall_core::{ConsultSpec, EffectId, RunSpec, StoredSpec, debate};
use moothall_engine::{Consultation, RunRecord};
use serde_json::{Value, json};

use crate::artifacts;
use crate::commands::runs;
use crate::display;
use crate::error::CliError;
use crate::pdf_helper;

/// A consultation with everything that follows from its answers.
pub(in crate::commands) struct Reading {
    pub(in crate::commands) spec: ConsultSpec,
    pub(in crate::commands) view: ConsultView,
    pub(in crate::commands) facts: RunFacts,
}

impl Reading {
    /// Reads a run as far as its answers go.
    pub(in crate::commands) fn of(record: &RunRecord) -> Result<Self, CliError> {
        let spec = record.row.spec.consult().cloned();
        let spec = spec.ok_or_else(|| CliError::failed("the run is no consultation"))?;
        let Consultation { view, facts } = Consultation::of(record)
            .ok_or_else(|| CliError::failed("the run is no consultation"))?
            .map_err(underivable)?;
        Ok(Self { spec, view, facts })
    }

    /// Everything that a program may want: the run, and the state of the consultation.
    pub(in crate::commands) fn json(&self, record: &RunRecord, is_driven: bool) -> Value {
        let mut report = runs::run_json(&record.row, is_driven);
        let facts = &self.facts;
        let more = json!({
            "calls": facts.calls,
            "extra_calls": facts.extra_calls,
            "beside_calls": beside_calls(record),
            "waits_for_person": record.waits_for_person(),
            "usage": facts.usage,
            "cost_usd": facts.cost.map(moothall_core::MicroUsd::decimal),
            "demonstration": facts.demonstration,
            "fictional": self.is_fictional(),
            "latency_ms": record.timing().latency_ms,
            "input": without_own_places(&self.spec),
        });
        for part in [more, report::export(&self.view)] {
            if let (Value::Object(report), Value::Object(part)) = (&mut report, part) {
                report.extend(part);
            }
        }
        report
    }

    pub(in crate::commands) fn is_fictional(&self) -> bool {
        self.view.evidence().is_some_and(|evidence| evidence.company.fictional)
    }

    /// The memo, as Markdown.
    pub(in crate::commands) fn memo(&self) -> String {
        report::markdown(&report::memo(&self.view, &self.facts))
    }

    /// The memo, as one HTML file.
    pub(in crate::commands) fn memo_html(&self, paper: Paper) -> String {
        report::html(&report::memo(&self.view, &self.facts), paper)
    }

    /// The memo, as PDF.
    pub(in crate::commands) async fn memo_pdf(&self, paper: Paper) -> Result<Vec<u8>, CliError> {
        pdf_helper::typeset(&report::memo(&self.view, &self.facts), paper).await
    }

    /// The scores, as CSV.
    pub(in crate::commands) fn scores_csv(&self) -> String {
        report::scores_csv(&self.view)
    }

    /// Writes every document below a folder, and returns the paths. Nothing that exists is replaced.
    pub(in crate::commands) fn write_artifacts(
        &self,
        folder: &Path,
    ) -> Result<Vec<PathBuf>, CliError> {
        let mut named = BTreeMap::new();
        for (name, text) in report::artifacts(&self.view) {
            let path = name.parse().map_err(|_| {
                CliError::failed(format!("`{}` is not the name of a file", display::line(&name)))
            })?;
            named.insert(path, text.into_bytes());
        }
        let done = artifacts::write(folder, &named)?;
        done.note_left_out();
        Ok(done.written)
    }

    /// The conversation of a move with one decision maker, as a transcript.
    pub(in crate::commands) fn transcript(
        &self,
        move_id: &str,
        thread: &str,
    ) -> Result<String, CliError> {
        let log = self.log_name(thread);
        let debate = self.view.debates.get(move_id).ok_or_else(|| {
            CliError::usage(format!("{} is not debated yet", display::line(move_id)))
        })?;
        let entries = debate.logs.get(&log).ok_or_else(|| {
            let names: Vec<&str> = self.members().collect();
            CliError::usage(format!("there is no thread `{}`", display::line(thread)))
                .with_hint(format!("there are {}", names.join(", ")))
        })?;
        Ok(debate::transcript(entries))
    }

    /// The name of the conversation with a decision maker: `i2` of `D2`.
    pub(super) fn log_name(&self, thread: &str) -> String {
        match self.members().position(|name| name.eq_ignore_ascii_case(thread)) {
            Some(place) => format!("i{}", place + 1),
            None => thread.to_ascii_lowercase(),
        }
    }

    fn members(&self) -> impl Iterator<Item = &str> {
        self.spec.input.committee.decision_makers.iter().map(|seat| seat.id.as_str())
    }
}

/// What moves are called so far.
pub(super) fn titles(view: &ConsultView) -> impl Iterator<Item = (String, String)> {
    view.moves().map(|one| (one.move_id.clone(), one.proposal.title.clone()))
}

pub(super) fn view(spec: &ConsultSpec, record: &RunRecord) -> Result<ConsultView, CliError> {
    let answer = |id: &EffectId| record.journal.get(id).map(|entry| &entry.result);
    ConsultView::of(&spec.input, answer, &record.approvals).map_err(underivable)
}

fn underivable(error: DeriveFault) -> CliError {
    CliError::failed("what the run was answered does not make a consultation")
        .with_source(error)
        .with_hint("another version of moothall may have driven it")
}

/// Calls that score without a debate: doing nothing, and the baseline. Those that ask again are not
/// among them.
pub(super) fn beside_calls(record: &RunRecord) -> u64 {
    let scores = |id: &EffectId| {
        let mut parts = id.as_str().split('/');
        let (of, what) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        (of == NOTHING || what == "baseline") && !asks_again(id)
    };
    record.journal.keys().filter(|id| scores(id)).count() as u64
}

/// The spec without the folder of the user's documents and the URL of a feed, which may hold a key.
fn without_own_places(spec: &ConsultSpec) -> StoredSpec {
    let mut spec = spec.clone();
    spec.settings.documents = None;
    spec.settings.news = None;
    RunSpec::Consult(spec).into()
}
