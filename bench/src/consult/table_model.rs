//! A model that answers from a lookup table, and the evidence of the fictional company.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use moothall_core::consult::demonstration;
use moothall_core::evidence::{
    CalendarDay, CompanyFacts, CompanyProfile, Evidence, FactSheet, Provenance,
};
use moothall_core::model::{
    FailureKind, ModelFailure, ModelReply, ModelRequest, StopReason, TokenUsage, UsageBasis,
};
use moothall_core::receipt::EffectTiming;
use moothall_core::{Effect, EffectId, EffectResult, MicroUsd};
use moothall_engine::{EffectPerformer, IsolationMode, PerformFuture, TimedResult};
use serde_json::{Map, Value};
use sqlx::{Connection as _, SqliteConnection};

/// Results by effect id. A missing result is requested from the demo model and stored.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    evidence: Arc<Evidence>,
    answers: Arc<Mutex<BTreeMap<EffectId, EffectResult>>>,
    latency: Duration,
}

impl Script {
    /// One that knows nothing yet, and answers at once.
    pub(crate) fn new(evidence: Evidence) -> Self {
        Self { evidence: Arc::new(evidence), answers: Arc::default(), latency: Duration::ZERO }
    }

    /// Runs once to store every answer.
    pub(crate) async fn learn(evidence: Evidence) -> Result<Self> {
        let script = Self::new(evidence);
        super::measured(&script, Duration::ZERO, IsolationMode::None).await?;
        Ok(script)
    }

    pub(crate) fn with_latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    pub(crate) fn answer(&self, id: &EffectId, effect: &Effect) -> EffectResult {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let generate = || match effect {
            Effect::Gather(_) => EffectResult::Gathered(Box::new((*self.evidence).clone())),
            Effect::CallModel(request) => reply(request),
            Effect::Execute(_)
            | Effect::StartChild(_)
            | Effect::AskPerson(_)
            | Effect::Draft(_) => nothing("not in this benchmark"),
        };
        answers.entry(id.clone()).or_insert_with(generate).clone()
    }
}

/// Bytes of a debate message, about 350 tokens: the demo model's messages are shorter than those of
/// a real model.
const MESSAGE_BYTES: usize = 1_400;

fn reply(request: &ModelRequest) -> EffectResult {
    let Some(text) = demonstration::answer(request) else { return nothing("no words for this") };
    let text = at_length(&text).unwrap_or(text);
    let usage = TokenUsage {
        input: request.prompt_tokens_expected(),
        output: text.len() as u64 / 4,
        ..TokenUsage::default()
    };
    EffectResult::ModelReplied(ModelReply {
        fallback: None,
        text,
        stop: StopReason::End,
        model: "table".to_owned(),
        usage,
        usage_basis: UsageBasis::Estimated,
        cost_micro_usd: Some(MicroUsd::ZERO),
    })
}

/// An answer of a debate with a message as long as a model's. `None` without a message.
fn at_length(answer: &str) -> Option<String> {
    let mut answer: Map<String, Value> = serde_json::from_str(answer).ok()?;
    let Value::String(message) = answer.get_mut("message")? else { return None };
    while !message.is_empty() && message.len() < MESSAGE_BYTES {
        message.push_str(
            " Nothing that was said so far takes this away, and nobody has shown why it should.",
        );
    }
    serde_json::to_string(&answer).ok()
}

fn nothing(why: &str) -> EffectResult {
    EffectResult::ModelFailed(ModelFailure::new(FailureKind::BadRequest, why))
}

impl EffectPerformer for Script {
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a> {
        Box::pin(async move {
            let result = self.answer(id, effect);
            if matches!(effect, Effect::CallModel(_)) && !self.latency.is_zero() {
                tokio::time::sleep(self.latency).await;
            }
            TimedResult { result, timing: EffectTiming { latency_ms: 0, tries: 1 } }
        })
    }
}

/// The facts of the fictional company, from the recording that is built into the program.
pub(crate) fn evidence() -> Result<Evidence> {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/moothall/recordings");
    let bytes = fs_err::read(recordings.join("hlxi/companyfacts/CIK0009990001.json"))?;
    let facts = CompanyFacts::parse(&bytes)?;
    let sheet = FactSheet::build(&facts, CalendarDay::parse("2026-08-13").context("a day")?)?;
    Ok(Evidence {
        company: CompanyProfile {
            name: sheet.entity.clone(),
            ticker: Some("HLXI".parse()?),
            cik: Some(sheet.cik),
            industry: None,
            fiscal_year_end: None,
            former_names: Vec::new(),
            fictional: true,
        },
        provenance: Provenance::Recorded { name: "HLXI".to_owned() },
        sheet: Some(sheet),
        events: Vec::new(),
        passages: Vec::new(),
        documents: Vec::new(),
        headlines: Vec::new(),
        missing: Vec::new(),
        sources: Vec::new(),
    })
}

/// Size of a database in bytes, without free pages.
pub(crate) async fn database_bytes(path: &Path) -> Result<u64> {
    let address = format!("sqlite://{}", path.display());
    let mut connection = SqliteConnection::connect(&address).await?;
    let pragma = "SELECT (page_count - freelist_count) * page_size
                  FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
    let bytes: i64 = sqlx::query_scalar(pragma).fetch_one(&mut connection).await?;
    Ok(u64::try_from(bytes)?)
}
