//! A stored consultation, prepared for display and export.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use moothall_core::consult::DO_NOTHING_ID;
use moothall_core::report::{self, ConsultReport, PaperSize, RunFacts};
use moothall_core::view::is_extra_call;
use moothall_core::{ConsultSpec, EffectId, RunSpec, StoredSpec, debate};
use moothall_engine::{Consultation, RunRecord};
use serde_json::{Value, json};

use crate::artifacts;
use crate::commands::runs;
use crate::display;
use crate::error::CliError;
use crate::launch::unreadable_consultation;
use crate::pdf_helper;

/// A consultation with everything derived from its journal.
pub(crate) struct StoredConsultation {
    pub(crate) spec: ConsultSpec,
    pub(crate) view: ConsultReport,
    pub(crate) facts: RunFacts,
}

impl StoredConsultation {
    /// Also reads unfinished runs.
    pub(crate) fn of(record: &RunRecord) -> Result<Self, CliError> {
        let spec = record.row.spec.consult().cloned();
        let spec = spec.ok_or_else(|| CliError::failed("the run is not a consultation"))?;
        let Consultation { view, facts } = Consultation::of(record)
            .ok_or_else(|| CliError::failed("the run is not a consultation"))?
            .map_err(unreadable_consultation)?;
        Ok(Self { spec, view, facts })
    }

    /// JSON report of the run and the state of the consultation.
    pub(crate) fn json(&self, record: &RunRecord, is_driven: bool) -> Value {
        let mut report = runs::run_json(&record.row, is_driven);
        let facts = &self.facts;
        let more = json!({
            "calls": facts.calls,
            "extra_calls": facts.extra_calls,
            "beside_calls": beside_calls(record),
            "waits_for_person": record.waits_for_person(),
            "usage": facts.usage,
            "cost_usd": facts.cost.map(moothall_core::MicroUsd::decimal),
            "costs": facts.costs,
            "demonstration": facts.demonstration,
            "models": self.spec.input.member_models().into_iter().collect::<BTreeMap<_, _>>(),
            "model_fallbacks": facts.fallbacks,
            "fictional": self.is_fictional(),
            "latency_ms": record.timing().latency_ms,
            "input": without_private_locations(&self.spec),
        });
        for part in [more, report::export(&self.view)] {
            if let (Value::Object(report), Value::Object(part)) = (&mut report, part) {
                report.extend(part);
            }
        }
        report
    }

    pub(crate) fn is_fictional(&self) -> bool {
        self.view.evidence().is_some_and(|evidence| evidence.company.fictional)
    }

    pub(crate) fn memo(&self) -> String {
        report::markdown(&report::memo(&self.view, &self.facts))
    }

    /// The memo as a single HTML file.
    pub(crate) fn memo_html(&self, paper: PaperSize) -> String {
        report::html(&report::memo(&self.view, &self.facts), paper)
    }

    pub(crate) async fn memo_pdf(&self, paper: PaperSize) -> Result<Vec<u8>, CliError> {
        pdf_helper::typeset(&report::memo(&self.view, &self.facts), paper).await
    }

    pub(crate) fn scores_csv(&self) -> String {
        report::scores_csv(&self.view)
    }

    /// Writes every document below a directory and returns the paths. Existing files are not
    /// overwritten.
    pub(crate) fn write_artifacts(&self, folder: &Path) -> Result<Vec<PathBuf>, CliError> {
        let mut named = BTreeMap::new();
        for (name, text) in report::artifacts(&self.view) {
            let path = name.parse().map_err(|_| {
                CliError::failed(format!("`{}` is not a valid file name", display::line(&name)))
            })?;
            named.insert(path, text.into_bytes());
        }
        let done = artifacts::write(folder, &named)?;
        done.report_skipped();
        Ok(done.written)
    }

    /// The transcript of a move's debate with one decision maker.
    pub(crate) fn transcript(&self, move_id: &str, thread: &str) -> Result<String, CliError> {
        let log = self.log_name(thread);
        let debate = self.view.debates.get(move_id).ok_or_else(|| {
            CliError::usage(format!("{} has not been debated yet", display::line(move_id)))
                .with_hint("`moothall show RUN` lists the moves and their state")
        })?;
        let entries = debate.logs.get(&log).ok_or_else(|| {
            let names: Vec<&str> = self.members().collect();
            CliError::usage(format!("no thread named `{}`", display::line(thread)))
                .with_hint(format!("available threads: {}", names.join(", ")))
        })?;
        Ok(debate::transcript(entries))
    }

    /// The log of a decision maker's conversation: `i2` for `D2`.
    pub(crate) fn log_name(&self, thread: &str) -> String {
        match self.members().position(|name| name.eq_ignore_ascii_case(thread)) {
            Some(index) => format!("i{}", index + 1),
            None => thread.to_ascii_lowercase(),
        }
    }

    fn members(&self) -> impl Iterator<Item = &str> {
        self.spec.input.committee.decision_makers.iter().map(|seat| seat.id.as_str())
    }
}

/// Calls that score without a debate: the do-nothing option and the baseline. Retries are not
/// counted.
pub(crate) fn beside_calls(record: &RunRecord) -> u64 {
    let scores = |id: &EffectId| {
        let mut parts = id.as_str().split('/');
        let (of, what) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let is_alone = (of == DO_NOTHING_ID && what == "score") || what == "baseline";
        is_alone && !is_extra_call(id)
    };
    record.journal.keys().filter(|id| scores(id)).count() as u64
}

/// The spec without the path of the user's documents and the feed URL, which may contain a key.
fn without_private_locations(spec: &ConsultSpec) -> StoredSpec {
    let mut spec = spec.clone();
    spec.settings.documents = None;
    spec.settings.news = None;
    RunSpec::Consult(spec).into()
}
