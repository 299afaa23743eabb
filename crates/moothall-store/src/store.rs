//! The store interface.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug};
use std::pin::Pin;
use std::str::FromStr;
use std::time::Duration;

use moothall_core::access::{RunLimitError, RunOwner, TeamName};
use moothall_core::budget::Settlement;
use moothall_core::consult::{MoveApproval, ReviewChange, RunOutcomes};
use moothall_core::money::{MicroUsd, SpendTotals};
use moothall_core::receipt::EffectTiming;
use moothall_core::{EffectId, EffectResult, Outcome, RunEvent, RunId, Sha256Hex, StoredSpec};
use serde::{Deserialize, Serialize};

use crate::{BatchAdmission, BatchStart, StoreError};

/// Maximum stored size of one value (a result, an event, an outcome, an input).
pub const MAX_TEXT_BYTES: usize = 32 * 1024 * 1024;

/// Maximum size of one artifact.
pub const MAX_ARTIFACT_BYTES: usize = 16 * 1024 * 1024;

/// Maximum length of an idempotency key.
pub const MAX_REQUEST_KEY_BYTES: usize = 200;

/// The future of one request to a [`Store`].
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Stores runs.
///
/// Implementors must guarantee:
/// - *Atomicity.* A request takes effect completely, or returns an error and has no effect.
/// - *Durability.* What was acknowledged with `Ok` survives `kill -9` and power loss.
/// - *Idempotency.* A commit can be repeated: events are identified by key and results by effect
///   id, the first one is kept, and nothing is published twice. So a request whose response was
///   lost can simply be repeated.
/// - *Numbering.* The events of a run are numbered from 1 without gaps in commit order, and a
///   reader never sees a number before all smaller ones.
/// - *Cancellation.* A request whose future is dropped takes effect completely or not at all, and
///   the store stays usable.
/// - *Concurrency.* Several handles in several processes can use the same store concurrently. The
///   store does not decide which process drives a run.
/// - *Termination.* A run in a terminal state accepts only repetitions.
///
/// Futures are boxed because the store is chosen at run time from the configuration.
pub trait Store: Debug + Send + Sync {
    /// Creates a run in the state [`RunState::Running`], without events.
    ///
    /// Errors: [`StoreError::RunExists`], [`StoreError::UnknownTeam`].
    fn create_run(&self, run: NewRun) -> StoreFuture<'_, ()>;

    /// Creates a run if the terms allow it: at most one per idempotency key, and only within the
    /// limits of its token. Key, limits and run are handled in one transaction, so concurrent
    /// requests to any number of processes cannot bypass them. A repeated request returns its run
    /// before the limits are checked.
    ///
    /// Errors: those of [`Self::create_run`], [`StoreError::UnknownToken`], and
    /// [`StoreError::TooLarge`] for the key.
    fn admit_run(&self, run: NewRun, terms: AdmissionTerms) -> StoreFuture<'_, AdmissionDecision>;

    /// Changes a run's cap within the limits of its token, or returns the exceeded limit.
    /// `day_began_at_ms` is the start of the day, as in [`AdmissionTerms`].
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::RunEnded`].
    fn change_cap<'a>(
        &'a self,
        id: &'a RunId,
        cap: Option<MicroUsd>,
        day_began_at_ms: u64,
    ) -> StoreFuture<'a, Result<(), RunLimitError>>;

    /// One run.
    fn run<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Option<RunRow>>;

    /// Runs, newest first.
    fn runs(&self, filter: RunFilter) -> StoreFuture<'_, Vec<RunRow>>;

    /// One page of the runs that match a query, and how many match it.
    fn run_page(&self, query: RunQuery) -> StoreFuture<'_, RunPage>;

    /// Number of runs in this state.
    fn count_runs(&self, state: RunState) -> StoreFuture<'_, u64>;

    /// Finds a run by an id prefix among the runs of these teams. Runs of other teams do not make
    /// it ambiguous.
    fn find_runs<'a>(&'a self, prefix: &'a str, teams: TeamFilter) -> StoreFuture<'a, RunMatch>;

    /// Writes the results of one or more steps and returns the new events.
    ///
    /// An event whose key already exists is skipped, whatever its content. A journal entry that
    /// already exists is skipped if request and result are equal; timing is ignored.
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::JournalConflict`],
    /// [`StoreError::RunEnded`], [`StoreError::Misfit`] if the commit breaks a rule of
    /// [`RunCommit`], [`StoreError::TooLarge`].
    fn commit<'a>(&'a self, id: &'a RunId, commit: RunCommit) -> StoreFuture<'a, Vec<StoredEvent>>;

    /// Publishes events and reserves budget for the calls that follow, in one transaction.
    /// Concurrent workers see each other's reservations. Nothing is reserved if there is a control
    /// request or if one of the calls already has a result.
    ///
    /// Errors: those of [`Self::commit`]; [`StoreError::RunEnded`] even if nothing is new.
    fn begin<'a>(&'a self, id: &'a RunId, batch: BatchStart) -> StoreFuture<'a, BatchAdmission>;

    /// All journal entries of a run.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn journal<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, BTreeMap<EffectId, JournalEntry>>;

    /// The journal entries of these effects. Effects without a result are omitted.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn journal_entries<'a>(
        &'a self,
        id: &'a RunId,
        effects: &'a [EffectId],
    ) -> StoreFuture<'a, BTreeMap<EffectId, JournalEntry>> {
        let journal = self.journal(id);
        Box::pin(async move {
            let mut journal = journal.await?;
            journal.retain(|id, _| effects.contains(id));
            Ok(journal)
        })
    }

    /// The timing of these effects, without reading their results. Effects without a result are
    /// omitted.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn timings<'a>(
        &'a self,
        id: &'a RunId,
        effects: &'a [EffectId],
    ) -> StoreFuture<'a, BTreeMap<EffectId, EffectTiming>> {
        let entries = self.journal_entries(id, effects);
        Box::pin(async move {
            Ok(entries.await?.into_iter().map(|(id, entry)| (id, entry.timing)).collect())
        })
    }

    /// Up to `limit` events with a number above `after`, in order.
    ///
    /// Errors: [`StoreError::UnknownRun`], so a follower notices a deleted run.
    fn events<'a>(
        &'a self,
        id: &'a RunId,
        after: u64,
        limit: u32,
    ) -> StoreFuture<'a, Vec<StoredEvent>>;

    /// The number of events of each run; unknown runs are omitted. Called several times a second by
    /// followers of runs that another process may drive.
    fn heads<'a>(&'a self, ids: &'a [RunId]) -> StoreFuture<'a, BTreeMap<RunId, u64>>;

    /// Waits until [`Self::heads`] may have changed: until a run of any process has new events if
    /// the store has notifications, otherwise for `poll_interval`. `seen` is the value returned by the
    /// last wait, initially 0; a change between two waits ends the second one immediately. May
    /// return early, and does so occasionally, because notifications can be lost.
    fn wait_for_change(
        &self,
        seen: u64,
        poll_interval: Duration,
    ) -> Pin<Box<dyn Future<Output = u64> + Send + '_>> {
        Box::pin(async move {
            tokio::time::sleep(poll_interval).await;
            seen
        })
    }

    /// Stores an artifact of a run and returns its hash. Idempotent.
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::TooLarge`], [`StoreError::RunEnded`]
    /// unless it is already stored.
    fn keep_artifact<'a>(&'a self, id: &'a RunId, content: &'a [u8]) -> StoreFuture<'a, Sha256Hex>;

    /// The content of an artifact, verified against its hash.
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::Unreadable`] if the content has changed.
    fn artifact<'a>(
        &'a self,
        id: &'a RunId,
        sha256: &'a Sha256Hex,
    ) -> StoreFuture<'a, Option<Vec<u8>>>;

    /// Leaves a control request for the driver of the run. Idempotent.
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::RunEnded`].
    fn request_control<'a>(&'a self, id: &'a RunId, request: ControlRequest)
    -> StoreFuture<'a, ()>;

    /// Clears a control request, if there is one, such as [`ControlRequest::Pause`] when a person resumes the
    /// run.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn clear_control<'a>(&'a self, id: &'a RunId, request: ControlRequest) -> StoreFuture<'a, ()>;

    /// The pending control requests.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn control_requests<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, BTreeSet<ControlRequest>>;

    /// The runs among `ids` that have this control request pending. Called several times a second
    /// by processes that drive many runs.
    fn runs_with_control_request<'a>(
        &'a self,
        ids: &'a [RunId],
        request: ControlRequest,
    ) -> StoreFuture<'a, BTreeSet<RunId>>;

    /// Stores a person's approval of a move. Only the first one per move is kept. It can arrive
    /// after the run has ended, because it changes only the ranking of the moves.
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::TooLarge`].
    fn approve<'a>(&'a self, id: &'a RunId, approval: MoveApproval) -> StoreFuture<'a, ()>;

    /// The stored approvals, by move.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn approvals<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Vec<MoveApproval>>;

    /// Appends changes that a person requests to the moves, all or none. The run reads them when it
    /// is resumed.
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::TooLarge`].
    fn add_changes<'a>(&'a self, id: &'a RunId, changes: Vec<ReviewChange>) -> StoreFuture<'a, ()>;

    /// The stored changes, in the order they were added.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn changes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Vec<ReviewChange>>;

    /// Deletes all changes, if there are any.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn forget_changes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, ()>;

    /// Replaces what is recorded about the time after a consultation.
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::TooLarge`].
    fn set_later_outcomes<'a>(
        &'a self,
        id: &'a RunId,
        outcomes: &'a RunOutcomes,
    ) -> StoreFuture<'a, ()>;

    /// What is recorded about the time after a consultation.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn later_outcomes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Option<RunOutcomes>>;

    /// Runs with recorded outcomes, by id.
    fn runs_with_later_outcomes(&self) -> StoreFuture<'_, Vec<RunId>>;

    /// Size of a run in bytes: input, outcome, journal, events and artifacts. The disk usage is
    /// slightly larger.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn run_bytes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, u64>;

    /// Deletes runs and everything that belongs to them, all or none. Unknown runs are ignored. A
    /// store that owns its file overwrites the content.
    fn delete_runs<'a>(&'a self, ids: &'a [RunId]) -> StoreFuture<'a, ()>;

    /// Makes the space of deleted data reusable, and returns it to the operating system where that
    /// is possible while others read and write. Returns the number of bytes returned to the system.
    /// Safe to interrupt.
    fn reclaim_space(&self) -> StoreFuture<'_, u64>;
}

/// A run to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// The id.
    pub run_id: RunId,
    /// The owner.
    pub owner: RunOwner,
    /// The spending cap, if any.
    pub cap: Option<MicroUsd>,
    /// The workflow and its input.
    pub spec: StoredSpec,
    /// The title shown in lists.
    pub title: String,
    /// The requested model.
    pub model: String,
    /// The build that started the run.
    pub build: String,
    /// Creation time in milliseconds since 1970.
    pub created_at_ms: u64,
    /// The journal that a fork starts with, written in the same transaction.
    pub inherited: Vec<(EffectId, JournalEntry)>,
}

/// The conditions for creating a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionTerms {
    /// The idempotency key, if the request may be repeated.
    pub idempotency_key: Option<IdempotencyKey>,
    /// Start of the day for which the token's runs are counted, in milliseconds since 1970.
    pub day_began_at_ms: u64,
}

/// Identifies a request that may be sent more than once but must take effect once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key chosen by the client, unique within its team.
    pub key: String,
    /// The hash of the request.
    pub request_sha256: Sha256Hex,
}

/// The result of a request to start a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdmissionDecision {
    /// The run was created.
    Created,
    /// The same request already created this run.
    AlreadyCreated(RunId),
    /// A different request has used this key.
    OtherRequest,
    /// A limit would be exceeded.
    Refused(RunLimitError),
}

/// A stored run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The id.
    pub run_id: RunId,
    /// The owner.
    pub owner: RunOwner,
    /// The spending cap, if any.
    pub cap: Option<MicroUsd>,
    /// The workflow and its input.
    pub spec: StoredSpec,
    /// The title shown in lists.
    pub title: String,
    /// The requested model.
    pub model: String,
    /// The build that started the run.
    pub build: String,
    /// Creation time in milliseconds since 1970.
    pub created_at_ms: u64,
    /// The current state.
    pub state: RunState,
    /// Time of the last change in milliseconds since 1970.
    pub updated_at_ms: u64,
    /// Number of events, which is also the number of the last one.
    pub events: u64,
    /// The outcome, if the run ended with one.
    pub outcome: Option<Outcome>,
    /// What it has spent, if known.
    pub spent: Option<SpendTotals>,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// It is being driven, or was when last updated.
    Running,
    /// It is paused and can be resumed.
    Paused,
    /// It reached its outcome.
    Finished,
    /// It cannot continue.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl RunState {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Running, Self::Paused, Self::Finished, Self::Failed, Self::Cancelled];

    /// The name used in tables and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the run has ended.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Running | Self::Paused => false,
            Self::Finished | Self::Failed | Self::Cancelled => true,
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for RunState {
    type Err = UnknownRunState;

    fn from_str(text: &str) -> Result<Self, UnknownRunState> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or(UnknownRunState)
    }
}

/// The text is not the name of a run state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown run state: expected running, paused, finished, failed or cancelled")]
pub struct UnknownRunState;

/// Selects teams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TeamFilter {
    /// All teams.
    All,
    /// Only this team.
    Only(TeamName),
}

impl TeamFilter {
    /// The name of the selected team; `None` for all.
    pub(crate) fn only(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Only(team) => Some(team.as_str()),
        }
    }
}

/// Selects runs to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs of these teams.
    pub teams: TeamFilter,
    /// Only runs in this state.
    pub state: Option<RunState>,
    /// Maximum number of runs.
    pub limit: u32,
}

/// Selects one page of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunQuery {
    /// Only runs of these teams.
    pub teams: TeamFilter,
    /// Only runs in this state.
    pub state: Option<RunState>,
    /// Only runs of this workflow.
    pub workflow: Option<String>,
    /// Only runs whose title or model contains this text, or whose id starts with it. Upper and
    /// lower case of ASCII letters are the same.
    pub text: Option<String>,
    /// The order.
    pub order: RunOrder,
    /// Number of runs to skip.
    pub offset: u32,
    /// Maximum number of runs.
    pub limit: u32,
}

/// The order of a page of runs. Equal runs are ordered newest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunOrder {
    /// By creation time, newest first.
    #[default]
    Newest,
    /// By creation time, oldest first.
    Oldest,
    /// By title.
    Title,
    /// By model.
    Model,
    /// By cost, highest first.
    Cost,
}

impl RunQuery {
    /// The text to search for, in lower case.
    pub(crate) fn needle(&self) -> Option<String> {
        self.text.as_deref().map(str::to_ascii_lowercase).filter(|text| !text.is_empty())
    }
}

/// One page of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPage {
    /// The runs of the page.
    pub rows: Vec<RunRow>,
    /// Number of runs that match the query, on all pages.
    pub total: u64,
}

/// The runs that match an id prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunMatch {
    /// No run.
    None,
    /// Exactly one run.
    One(RunId),
    /// Several runs: the newest ten.
    Several(Vec<RunId>),
}

/// A journaled result, used for replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// The hash of the request, so a result is never used for a different request.
    pub request_sha256: Sha256Hex,
    /// The result.
    pub result: EffectResult,
    /// Latency and number of attempts.
    pub timing: EffectTiming,
}

/// The results of one or more steps, written atomically.
///
/// A terminal event must be the last one, in the commit that sets a terminal state; so must an
/// outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunCommit {
    /// Results by effect. Several, because a flush to disk costs the same for many as for one.
    pub results: Vec<(EffectId, JournalEntry)>,
    /// Events in order.
    pub events: Vec<RunEvent>,
    /// The new state; `None` leaves it unchanged.
    pub state: Option<RunState>,
    /// The outcome of the run.
    pub outcome: Option<Outcome>,
    /// What the whole run has spent so far, including failed attempts; `None` leaves it unchanged.
    /// Stored separately from the journal, because attempts without a result also cost money.
    pub spent: Option<SpendTotals>,
    /// The settlement of a reservation made with [`Store::begin`]. The run's spending is derived
    /// from it.
    pub settlement: Option<Settlement>,
    /// Time of the commit in milliseconds since 1970.
    pub at_ms: u64,
}

/// An event with its sequence number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Sequence number, from 1 without gaps.
    pub seq: u64,
    /// Time of its commit in milliseconds since 1970.
    pub at_ms: u64,
    /// The event.
    pub event: RunEvent,
}

/// A request from another process to the driver of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlRequest {
    /// Cancel the run.
    Cancel,
    /// Pause the run.
    Pause,
}

impl ControlRequest {
    /// The name used in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Pause => "pause",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Cancel, Self::Pause].into_iter().find(|request| request.as_str() == text)
    }
}
