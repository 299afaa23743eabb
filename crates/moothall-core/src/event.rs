//! Events of a run, for people and programs that follow it.
//!
//! Events are a file format: every kind has a snapshot in `tests/it/formats.rs`.

mod envelope;
mod evidence_summary;
mod kind;
mod model_events;
mod status;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::consult::{CloseCall, EvidenceSource};
use crate::debate::{CalculationResult, DebateDegradation, DebateStance, Objection};
use crate::model::{CallPurpose, FailureKind, ModelName, TokenUsage, UsageBasis};
use crate::sandbox::{ExecutionExit, FileRef, GuestPath, IsolationClass};
use crate::verdict::{StabilityReport, TierList};
use crate::{EffectId, MicroUsd, RunFinding, RunId, RunVerdict, Sha256Hex};

pub use self::envelope::EventEnvelope;
pub use self::evidence_summary::EvidenceSummary;
pub use self::status::{PauseReason, RoundStatus, StageStatus};

/// An event of a run. Its key is derived from its content, so a replayed run produces the same keys
/// and a store can drop duplicates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenEvent")]
pub struct RunEvent {
    /// Unique within the run and equal on every replay. Deserialization fails if the key does not
    /// match the event, because it could shadow another event's key.
    pub key: String,
    /// The event itself.
    #[serde(flatten)]
    pub body: RunEventBody,
}

/// An event from a file or a guest's frame, before its key is checked.
#[derive(Deserialize)]
struct WrittenEvent {
    key: String,
    #[serde(flatten)]
    body: RunEventBody,
}

impl TryFrom<WrittenEvent> for RunEvent {
    type Error = &'static str;

    fn try_from(written: WrittenEvent) -> Result<Self, Self::Error> {
        let event = match written.body.effect_id().cloned() {
            Some(effect_id) => Self::about(&effect_id, written.body),
            None => Self::of_run(written.body),
        };
        if event.key == written.key { Ok(event) } else { Err("event key does not match the event") }
    }
}

impl RunEvent {
    /// An event about one effect.
    pub fn about(effect_id: &EffectId, body: RunEventBody) -> Self {
        let key = match &body {
            // One answer can contain several documents.
            RunEventBody::ClaimChecked { document, .. } => {
                format!("{effect_id}:{}:{document}", body.name())
            }
            _ => format!("{effect_id}:{}", body.name()),
        };
        Self { key, body }
    }

    /// An event about the run as a whole.
    pub fn of_run(body: RunEventBody) -> Self {
        let key = match &body {
            // A run can pause more than once.
            RunEventBody::RunPaused { number, .. } => format!("run:{}:{number}", body.name()),
            RunEventBody::LayerStart { layer, .. } | RunEventBody::LayerComplete { layer, .. } => {
                format!("layer-{layer}:{}", body.name())
            }
            RunEventBody::AgentStart { agent_id, .. }
            | RunEventBody::AgentComplete { agent_id, .. } => {
                format!("{agent_id}:{}", body.name())
            }
            RunEventBody::SandboxRound { move_id, round, status } => {
                format!("{move_id}/round-{round}:{}:{}", body.name(), status.as_str())
            }
            RunEventBody::SandboxScored { move_id, .. } => format!("{move_id}:{}", body.name()),
            RunEventBody::VerdictUpdated { stage, .. } => {
                format!("verdict-{stage}:{}", body.name())
            }
            _ => format!("run:{}", body.name()),
        };
        Self { key, body }
    }
}

/// An event with its position in the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequencedEvent {
    /// The run.
    pub run_id: RunId,
    /// The sequence number, starting at 1, without gaps.
    pub seq: u64,
    /// The event.
    #[serde(flatten)]
    pub event: RunEvent,
}

/// A model that did not answer, so a fallback was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct UnavailableModel {
    /// The model.
    pub model: ModelName,
    /// Why it did not answer.
    pub reason: FailureKind,
}

/// The kinds of events. No kind has a time or a latency: those differ between two equal runs and
/// are stored separately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[cfg_attr(test, derive(ts_rs::TS), ts(tag = "type"))]
pub enum RunEventBody {
    /// A workflow started.
    RunStarted {
        /// The workflow's name.
        workflow: String,
    },
    /// A model answered. The usage is of this call only.
    ModelReplied {
        /// The call.
        effect_id: EffectId,
        /// What the call was for.
        purpose: CallPurpose,
        /// The model that answered.
        model: ModelName,
        /// Tokens of this call.
        usage: TokenUsage,
        /// How the usage was obtained.
        usage_basis: UsageBasis,
        /// The cost; absent if the price is unknown.
        cost_micro_usd: Option<MicroUsd>,
        /// The requested model, if a fallback answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        instead_of: Option<UnavailableModel>,
    },
    /// A model gave no usable answer.
    ModelFailed {
        /// The call.
        effect_id: EffectId,
        /// What the call was for.
        purpose: CallPurpose,
        /// The model.
        model: ModelName,
        /// The kind of failure.
        kind: FailureKind,
        /// The error message.
        detail: String,
    },
    /// An answer was invalid; the next effect shows the model why.
    OutputRejected {
        /// The call.
        effect_id: EffectId,
        /// The problems found.
        problems: Vec<String>,
    },
    /// An attempt to write a program started.
    AttemptStarted {
        /// The call that writes the program.
        effect_id: EffectId,
        /// The number of the attempt, starting at 1.
        attempt: u32,
        /// The maximum number of attempts.
        of: u32,
    },
    /// A model wrote a program. The program is in the call's answer in the journal;
    /// `reflexion::read_program` extracts it.
    CodeGenerated {
        /// The call whose answer contains it.
        effect_id: EffectId,
        /// The attempt.
        attempt: u32,
        /// The hash of the program's text.
        code_sha256: Sha256Hex,
        /// The number of lines.
        code_lines: u64,
        /// Packages the model says it needs.
        dependencies: Vec<String>,
        /// The model's stated confidence in thousandths. Informational only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confidence_permille: Option<u16>,
    },
    /// A program, or the check of its results, ran.
    Executed {
        /// The execution: `attempt-1/execute` or `attempt-1/check`.
        effect_id: EffectId,
        /// The attempt.
        attempt: u32,
        /// The exit status.
        exit: ExecutionExit,
        /// The sandbox engine, such as `microvm`.
        engine: String,
        /// The isolation class.
        class: IsolationClass,
        /// Captured bytes of standard output.
        stdout_bytes: u64,
        /// Captured bytes of standard error.
        stderr_bytes: u64,
        /// Files the program left.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        files: BTreeMap<GuestPath, FileRef>,
    },
    /// An attempt was checked. Its verdict is derived from the findings, as for a run.
    Judged {
        /// The execution that was checked, or the model call if it gave no program.
        effect_id: EffectId,
        /// The attempt.
        attempt: u32,
        /// The findings.
        findings: Vec<RunFinding>,
    },
    /// A model explained what went wrong.
    Critiqued {
        /// The call.
        effect_id: EffectId,
        /// The attempt it refers to.
        attempt: u32,
        /// The explanation, truncated.
        text: String,
    },
    /// A consultation started.
    ConsultStarted {
        /// The ticker, or the company's name if it has none.
        ticker: String,
        /// Whether `ticker` is a ticker. Absent in events of version 0.1.
        #[serde(default = "yes", skip_serializing_if = "is_yes")]
        #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
        listed: bool,
        /// The number of rounds per debate.
        rounds: u32,
        /// The planned number of moves.
        moves: u32,
        /// Where the evidence comes from.
        provenance: EvidenceSource,
        /// The estimated number of model calls, without rewrites and retries.
        est_calls: u32,
    },
    /// A layer started: 0 gather, 1 infer, 2 analyze, 3 debate, 4 rank.
    LayerStart {
        /// The layer.
        layer: u8,
        /// Always `running`.
        status: StageStatus,
    },
    /// A layer finished.
    LayerComplete {
        /// The layer.
        layer: u8,
        /// Always `done`.
        status: StageStatus,
        /// The documents it produced: `F1.md`, `m3.md`.
        artifacts: Vec<String>,
        /// The number of scored moves, for the scoring layer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total_policies_scored: Option<u32>,
        /// A summary of the evidence, for the gathering layer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gathered: Option<Box<EvidenceSummary>>,
    },
    /// An agent of a layer started.
    AgentStart {
        /// The layer.
        layer: u8,
        /// `analyst_3`.
        agent_id: String,
        /// The agent's display name.
        persona: String,
    },
    /// An agent of a layer finished.
    AgentComplete {
        /// The layer.
        layer: u8,
        /// `analyst_3`.
        agent_id: String,
        /// The first document it produced; absent if none exists.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// All documents it produced.
        outputs: Vec<String>,
        /// Titles of the moves among them, by move.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        titles: BTreeMap<String, String>,
    },
    /// The numbers and citations of a document were checked.
    ClaimChecked {
        /// The call that wrote the document; the last one if it was rewritten.
        effect_id: EffectId,
        /// `F1.md`, `m3.md`.
        document: String,
        /// The number of numbers found.
        numbers: u32,
        /// How many of them are supported or marked as assumptions.
        supported: u32,
        /// Findings about the others.
        flagged: Vec<RunFinding>,
        /// Whether the author is asked to rewrite it.
        rewrite: bool,
    },
    /// A person reviewed the moves before the debates.
    MovesReviewed {
        /// The effect that asked for the review.
        effect_id: EffectId,
        /// Moves that were removed.
        vetoed: Vec<String>,
        /// Moves that were edited.
        edited: Vec<String>,
        /// Moves that were added.
        added: Vec<String>,
        /// Titles of the edited and added moves, by move.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        titles: BTreeMap<String, String>,
    },
    /// The isolation of a debate.
    Isolation {
        /// The effect that started the debate: `m7`.
        effect_id: EffectId,
        /// The move.
        #[serde(rename = "move")]
        move_id: String,
        /// The isolation class.
        class: IsolationClass,
        /// Why the class differs from the requested one, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fallback: Option<String>,
    },
    /// A debate completed half a round.
    SandboxRound {
        /// The move.
        #[serde(rename = "move")]
        move_id: String,
        /// The round, starting at 1.
        round: u32,
        /// Which side has answered.
        status: RoundStatus,
    },
    /// A participant of a debate answered. The full text is in the call's answer.
    SandboxTurn {
        /// The call.
        effect_id: EffectId,
        /// The move.
        #[serde(rename = "move")]
        move_id: String,
        /// The decision maker of the thread; `all` for the opening.
        thread: String,
        /// The round, starting at 1.
        round: u32,
        /// `critic` or the decision maker.
        role: String,
        /// The beginning of the message.
        preview: String,
        /// The decision maker's stance.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stance: Option<DebateStance>,
        /// The cited evidence.
        cites: Vec<String>,
    },
    /// A calculation that a participant of a debate attached to a turn ended.
    Calculated {
        /// The execution; the turn if the program was not accepted.
        effect_id: EffectId,
        /// The move.
        #[serde(rename = "move")]
        move_id: String,
        /// The program with its values, or why it has none.
        calculation: Box<CalculationResult>,
    },
    /// A move was scored.
    SandboxScored {
        /// The move.
        #[serde(rename = "move")]
        move_id: String,
        /// The sum of the given scores. Not a total if `degraded` has `not-scored`.
        score: u32,
        /// The highest possible sum.
        out_of: u32,
        /// Scores by decision maker and metric.
        breakdown: BTreeMap<String, BTreeMap<String, u8>>,
        /// The number of rounds completed by every thread.
        rounds_done: u32,
        /// Problems of the debate.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        degraded: Vec<DebateDegradation>,
        /// The hardest open objection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_objection: Option<Objection>,
        /// Why each decision maker gave its scores. Absent in events of version 0.1.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        #[cfg_attr(test, ts(optional, as = "Option<BTreeMap<String, String>>"))]
        reasoning: BTreeMap<String, String>,
    },
    /// The panel reached a verdict after a stage. Later stages replace it.
    VerdictUpdated {
        /// The finished stage: 1 after the first debates, then one for each stage of repeats.
        stage: u32,
        /// The moves that are debated again now; empty if the verdict is final.
        again: Vec<String>,
        /// The verdict in one sentence.
        headline: String,
        /// The warning about the panel's controls, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        warning: Option<String>,
        /// How well repeated verdicts agree, if everything was repeated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        stability: Option<StabilityReport>,
        /// The panel's mean score of each planted control, by its id, in tenths of a point. Absent in
        /// events of earlier versions.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        #[cfg_attr(test, ts(optional, as = "Option<BTreeMap<String, i32>>"))]
        control_scores: BTreeMap<String, i32>,
        /// Tiers, intervals and controls.
        tiers: Box<TierList>,
    },
    /// All moves are ranked. This is the last event.
    PipelineComplete {
        /// The verdict.
        verdict: RunVerdict,
        /// The recommended moves, best first.
        recommended: Vec<String>,
        /// All other moves.
        other: Vec<String>,
        /// Neighbours in the ranking that are too close to call.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        close_calls: Vec<CloseCall>,
    },
    /// The run paused and can be resumed.
    RunPaused {
        /// How often the run has paused, including this time.
        number: u32,
        /// What the run is waiting for.
        reason: PauseReason,
        /// The reason as text.
        detail: String,
    },
    /// The run finished. This is the last event.
    RunFinished {
        /// The verdict.
        verdict: RunVerdict,
    },
    /// The run failed. This is the last event.
    RunFailed {
        /// The error message.
        detail: String,
        /// The kind of model failure that ended the run, if any. Absent in events of version 0.1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        model_failure: Option<FailureKind>,
    },
    /// The run was cancelled. This is the last event.
    RunCancelled,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "signature required by serde")]
fn is_yes(value: &bool) -> bool {
    *value
}
