//! What happened in a run, as people and programs follow it.
//!
//! Events are a file format: every kind has a snapshot in `tests/it/formats.rs`.

mod common;
mod envelope;
mod gathered;
mod kind;
mod status;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::consult::EvidenceSource;
use crate::debate::{Degradation, Objection, Stance};
use crate::model::{FailureKind, ModelName, Purpose, Usage, UsageBasis};
use crate::sandbox::{Exit, FileRef, GuestPath, IsolationClass};
use crate::{EffectId, Finding, MicroUsd, RunId, Sha256Hex, Verdict};

pub use self::envelope::Envelope;
pub use self::gathered::Gathered;
pub use self::status::{LayerStatus, PauseReason, RoundStatus};

/// Something that happened. Its key is made from what happened, so a replayed run says the same
/// thing under the same key and a store can drop the repetition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenEvent")]
pub struct RunEvent {
    /// Unique within the run, and the same on every replay. A key that is not made from its event
    /// cannot be read: it could stand in another event's way.
    pub key: String,
    /// What happened.
    #[serde(flatten)]
    pub body: RunEventBody,
}

/// An event as it stands in a file or a guest's frame, before anyone looked at it.
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
        if event.key == written.key { Ok(event) } else { Err("the key is not this event's") }
    }
}

impl RunEvent {
    /// An event about one effect.
    pub fn about(effect_id: &EffectId, body: RunEventBody) -> Self {
        let key = match &body {
            // One answer may hold several documents.
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
            // A run may pause more than once.
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
            _ => format!("run:{}", body.name()),
        };
        Self { key, body }
    }
}

/// An event with its place in the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequencedEvent {
    /// The run.
    pub run_id: RunId,
    /// From 1, without gaps.
    pub seq: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: RunEvent,
}

/// The kinds of events. No kind carries a time or a latency: those differ between two equal runs
/// and are kept beside them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[cfg_attr(test, derive(ts_rs::TS), ts(tag = "type"))]
pub enum RunEventBody {
    /// A workflow began.
    RunStarted {
        /// Which one.
        workflow: String,
    },
    /// A model answered; the usage is of this call alone.
    ModelReplied {
        /// The call.
        effect_id: EffectId,
        /// For whom it spoke.
        purpose: Purpose,
        /// Who was asked.
        model: ModelName,
        /// Tokens of this call.
        usage: Usage,
        /// Where they come from.
        usage_basis: UsageBasis,
        /// Absent where the price is unknown.
        cost_micro_usd: Option<MicroUsd>,
    },
    /// A model gave no usable answer.
    ModelFailed {
        /// The call.
        effect_id: EffectId,
        /// For whom it would have spoken.
        purpose: Purpose,
        /// Who was asked.
        model: ModelName,
        /// Why.
        kind: FailureKind,
        /// In words.
        detail: String,
    },
    /// An answer was not what was asked for; the next effect shows the model why.
    OutputRejected {
        /// The call whose answer it was.
        effect_id: EffectId,
        /// What is wrong with it.
        problems: Vec<String>,
    },
    /// Another program is about to be written.
    AttemptStarted {
        /// The call that writes it.
        effect_id: EffectId,
        /// From 1.
        attempt: u32,
        /// How many there may be.
        of: u32,
    },
    /// A model wrote a program. The program itself is in the call's answer, which the journal
    /// keeps; `reflexion::read_program` takes it out.
    CodeGenerated {
        /// The call whose answer holds it.
        effect_id: EffectId,
        /// The attempt.
        attempt: u32,
        /// The hash of the program's text.
        code_sha256: Sha256Hex,
        /// How many lines it has.
        code_lines: u64,
        /// Packages that the model says it needs.
        dependencies: Vec<String>,
        /// How sure the model says it is, in thousandths. Its word, and never used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confidence_permille: Option<u16>,
    },
    /// A program, or the check of its results, was run.
    Executed {
        /// The execution: `attempt-1/execute` or `attempt-1/check`.
        effect_id: EffectId,
        /// The attempt.
        attempt: u32,
        /// How it ended.
        exit: Exit,
        /// What ran it, such as `microvm`.
        engine: String,
        /// How strong the wall around it was.
        class: IsolationClass,
        /// What was kept of its output.
        stdout_bytes: u64,
        /// What was kept of its errors.
        stderr_bytes: u64,
        /// Files it left.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        files: BTreeMap<GuestPath, FileRef>,
    },
    /// An attempt was judged. The verdict of the attempt follows from the findings, as that of a
    /// run does.
    Judged {
        /// What was judged: the execution, or the call where it gave no program.
        effect_id: EffectId,
        /// The attempt.
        attempt: u32,
        /// What was observed.
        findings: Vec<Finding>,
    },
    /// A model said what went wrong.
    Critiqued {
        /// The call.
        effect_id: EffectId,
        /// The attempt it is about.
        attempt: u32,
        /// Its words, cut to a bearable length.
        text: String,
    },
    /// A consultation began.
    ConsultStarted {
        /// The ticker, or the name of a company that has none.
        ticker: String,
        /// Whether `ticker` is a ticker. Events of version 0.1 do not say.
        #[serde(default = "yes", skip_serializing_if = "is_yes")]
        #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
        listed: bool,
        /// Rounds of each debate.
        rounds: u32,
        /// Moves that there shall be.
        moves: u32,
        /// Where the evidence comes from.
        provenance: EvidenceSource,
        /// Model calls that it takes, rewrites and re-asks apart.
        est_calls: u32,
    },
    /// A layer began: 0 gather, 1 infer, 2 analyse, 3 debate, 4 rank.
    LayerStart {
        /// Which one.
        layer: u8,
        /// Always `running`.
        status: LayerStatus,
    },
    /// A layer is done.
    LayerComplete {
        /// Which one.
        layer: u8,
        /// Always `done`.
        status: LayerStatus,
        /// The documents that it made: `F1.md`, `m3.md`.
        artifacts: Vec<String>,
        /// How many moves were scored, for the layer that scores.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total_policies_scored: Option<u32>,
        /// What there is to go on, for the layer that gathers it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gathered: Option<Box<Gathered>>,
    },
    /// An agent of a layer began.
    AgentStart {
        /// The layer.
        layer: u8,
        /// `analyst_3`.
        agent_id: String,
        /// What people call it.
        persona: String,
    },
    /// An agent of a layer is done.
    AgentComplete {
        /// The layer.
        layer: u8,
        /// `analyst_3`.
        agent_id: String,
        /// The first document that it made; absent where it made none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// All documents that it made.
        outputs: Vec<String>,
        /// What the moves among them are called, by move.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        titles: BTreeMap<String, String>,
    },
    /// The numbers and citations of a document were checked by code.
    ClaimChecked {
        /// The call whose answer it is; the last one, where there was a rewrite.
        effect_id: EffectId,
        /// `F1.md`, `m3.md`.
        document: String,
        /// Numbers that were read.
        numbers: u32,
        /// Of these, supported or marked as assumptions.
        supported: u32,
        /// What is flagged.
        flagged: Vec<Finding>,
        /// Whether the author is asked to write it again.
        rewrite: bool,
    },
    /// A person has looked at the moves before they are debated.
    MovesReviewed {
        /// The question.
        effect_id: EffectId,
        /// Moves that are not debated.
        vetoed: Vec<String>,
        /// Moves that were written anew.
        edited: Vec<String>,
        /// Moves that were added.
        added: Vec<String>,
        /// What the edited and added ones are called, by move.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        titles: BTreeMap<String, String>,
    },
    /// The walls around a debate.
    Isolation {
        /// The effect that is the debate: `m7`.
        effect_id: EffectId,
        /// The move.
        #[serde(rename = "move")]
        move_id: String,
        /// The class.
        class: IsolationClass,
        /// Why it is not what was wanted, where it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fallback: Option<String>,
    },
    /// A debate came a half round further.
    SandboxRound {
        /// The move.
        #[serde(rename = "move")]
        move_id: String,
        /// From 1.
        round: u32,
        /// Who has spoken.
        status: RoundStatus,
    },
    /// Somebody spoke in a debate. The words are in the call's answer.
    SandboxTurn {
        /// The call.
        effect_id: EffectId,
        /// The move.
        #[serde(rename = "move")]
        move_id: String,
        /// The decision maker whose thread it is; `all` for the opening.
        thread: String,
        /// From 1.
        round: u32,
        /// `critic` or the decision maker.
        role: String,
        /// The beginning of what was said.
        preview: String,
        /// Where the decision maker stands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stance: Option<Stance>,
        /// The evidence that was cited.
        cites: Vec<String>,
    },
    /// A move was scored.
    SandboxScored {
        /// The move.
        #[serde(rename = "move")]
        move_id: String,
        /// The sum of all scores.
        score: u32,
        /// The highest sum there can be.
        out_of: u32,
        /// Scores by decision maker and metric.
        breakdown: BTreeMap<String, BTreeMap<String, u8>>,
        /// Rounds that every thread came through.
        rounds_done: u32,
        /// What is not as it should be.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        degraded: Vec<Degradation>,
        /// The hardest objection that still stands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_objection: Option<Objection>,
    },
    /// All moves are ranked. Nothing follows.
    PipelineComplete {
        /// What the trial came to.
        verdict: Verdict,
        /// The recommended moves, best first.
        recommended: Vec<String>,
        /// All others.
        other: Vec<String>,
    },
    /// The run stands still and can go on.
    RunPaused {
        /// How often it has paused, this time included.
        number: u32,
        /// What it waits for.
        reason: PauseReason,
        /// In words.
        detail: String,
    },
    /// The run came to its end. Nothing follows.
    RunFinished {
        /// What the trial came to.
        verdict: Verdict,
    },
    /// The run cannot go on. Nothing follows.
    RunFailed {
        /// Why, in words.
        detail: String,
        /// The kind of the model failure that ended it, if it was one. Events of version 0.1 have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        model_failure: Option<FailureKind>,
    },
    /// Someone stopped the run. Nothing follows.
    RunCancelled,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_yes(value: &bool) -> bool {
    *value
}
