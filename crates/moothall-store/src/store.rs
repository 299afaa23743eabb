//! What a store is, whatever it is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug};
use std::pin::Pin;
use std::str::FromStr;
use std::time::Duration;

use moothall_core::access::{Excess, Owner, TeamName};
use moothall_core::consult::{Approval, Change};
use moothall_core::money::{MicroUsd, Spent};
use moothall_core::purse::Word;
use moothall_core::receipt::Timing;
use moothall_core::{EffectId, EffectResult, Outcome, RunEvent, RunId, Sha256Hex, StoredSpec};
use serde::{Deserialize, Serialize};

use crate::{Beginning, Begun, StoreError};

/// The most that one value (a result, an event, an outcome, an input) may take when stored.
pub const MAX_TEXT_BYTES: usize = 32 * 1024 * 1024;

/// The most that one artefact may take.
pub const MAX_ARTIFACT_BYTES: usize = 16 * 1024 * 1024;

/// The longest key of a request to start a run.
pub const MAX_REQUEST_KEY_BYTES: usize = 200;

/// The future of one request to a [`Store`].
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Where runs live.
///
/// What implementors promise:
/// - *Atomicity.* A request happens as a whole, or it returns an error and nothing happened.
/// - *Durability.* What was answered with `Ok` survives `kill -9` and a loss of power.
/// - *Repetition.* A commit may be made again: an event is known by its key and a result by its
///   effect id, the first one stays, and nothing is published twice. So a request whose answer was
///   lost is simply made again.
/// - *Numbers.* Events of a run are numbered from 1 without gaps, in the order in which commits
///   took place, and a reader never sees a number before all smaller ones.
/// - *Cancellation.* A request whose future is dropped happens as a whole or not at all, and the
///   store stays usable.
/// - *Concurrency.* Several handles, in several processes, may use the same store at once. Which
///   process drives a run is not the store's business.
/// - *The end.* After a terminal state a run takes nothing more than repetitions.
///
/// Boxed futures because the store is chosen at run time from configuration.
pub trait Store: Debug + Send + Sync {
    /// Makes a run, in the state [`RunState::Running`] and without events.
    ///
    /// Errors: [`StoreError::RunExists`], [`StoreError::UnknownTeam`].
    fn create_run(&self, run: NewRun) -> StoreFuture<'_, ()>;

    /// Makes a run on terms: at most one for the key of a request, and only within the limits of
    /// the token that it is started with. Key, limits and run are one transaction, so requests that
    /// come at the same time, to any number of processes, cannot get around them. A request that
    /// is made again is answered before limits are looked at.
    ///
    /// Errors: those of [`Self::create_run`], [`StoreError::UnknownToken`], and
    /// [`StoreError::TooLarge`] for the key.
    fn admit_run(&self, run: NewRun, terms: Terms) -> StoreFuture<'_, Admission>;

    /// Gives a run another cap, within the limits of the token that it was started with, and says
    /// why not where it does not fit. The day began at `day_began_at_ms`, as for [`Terms`].
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::RunEnded`].
    fn change_cap<'a>(
        &'a self,
        id: &'a RunId,
        cap: Option<MicroUsd>,
        day_began_at_ms: u64,
    ) -> StoreFuture<'a, Result<(), Excess>>;

    /// One run.
    fn run<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Option<RunRow>>;

    /// Runs, the newest first.
    fn runs(&self, filter: RunFilter) -> StoreFuture<'_, Vec<RunRow>>;

    /// How many runs are in this state.
    fn count_runs(&self, state: RunState) -> StoreFuture<'_, u64>;

    /// Finds the run of these teams that a person means by the beginning of an id. Runs of others do
    /// not make it ambiguous.
    fn find_runs<'a>(&'a self, prefix: &'a str, teams: Teams) -> StoreFuture<'a, RunMatch>;

    /// Writes what one step of a run brought, and returns the events that were new.
    ///
    /// An event whose key is there already is skipped, whatever it says. A journal entry that is
    /// there already is skipped if request and result are the same; timing does not count.
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::JournalConflict`],
    /// [`StoreError::RunEnded`], [`StoreError::Misfit`] where the commit breaks a rule that
    /// [`Commit`] states, [`StoreError::TooLarge`].
    fn commit<'a>(&'a self, id: &'a RunId, commit: Commit) -> StoreFuture<'a, Vec<StoredEvent>>;

    /// Publishes what happened until now and takes room in the run's budget for the calls that
    /// follow, as one transaction; of several workers that do so at once, each sees what the others
    /// have. Nothing is reserved where somebody left a wish, or where one of the calls is answered.
    ///
    /// Errors: those of [`Self::commit`]; [`StoreError::RunEnded`] also where nothing is new.
    fn begin<'a>(&'a self, id: &'a RunId, beginning: Beginning) -> StoreFuture<'a, Begun>;

    /// Everything that was answered in a run.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn journal<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, BTreeMap<EffectId, JournalEntry>>;

    /// What was answered to these effects of a run; who has no answer yet is left out.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn answers<'a>(
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

    /// At most `limit` events with a number above `after`, in order.
    ///
    /// Errors: [`StoreError::UnknownRun`], so that someone who follows a run notices that it was
    /// deleted.
    fn events<'a>(
        &'a self,
        id: &'a RunId,
        after: u64,
        limit: u32,
    ) -> StoreFuture<'a, Vec<StoredEvent>>;

    /// How many events each of these runs has; a run that does not exist is left out. It is asked
    /// several times a second, by whoever follows runs that another process may drive.
    fn heads<'a>(&'a self, ids: &'a [RunId]) -> StoreFuture<'a, BTreeMap<RunId, u64>>;

    /// Waits until it is worth asking for [`Self::heads`] again: until a run of any process moved,
    /// where the store hears of that, and for `look_again` where it does not. `seen` is what the last
    /// wait returned, and 0 at first: what moved between two waits ends the second at once. It may
    /// return early, and does so now and then, because a word can be lost.
    fn movement(
        &self,
        seen: u64,
        look_again: Duration,
    ) -> Pin<Box<dyn Future<Output = u64> + Send + '_>> {
        Box::pin(async move {
            tokio::time::sleep(look_again).await;
            seen
        })
    }

    /// Keeps a file of a run under the hash of its bytes, which is returned. To keep it twice is to
    /// keep it once.
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::TooLarge`], [`StoreError::RunEnded`] where
    /// it is not there already.
    fn keep_artifact<'a>(&'a self, id: &'a RunId, content: &'a [u8]) -> StoreFuture<'a, Sha256Hex>;

    /// The bytes of a file that was kept. They have this hash, whatever happened to the disk.
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::Unreadable`] where they are not what they
    /// were.
    fn artifact<'a>(
        &'a self,
        id: &'a RunId,
        sha256: &'a Sha256Hex,
    ) -> StoreFuture<'a, Option<Vec<u8>>>;

    /// Leaves a wish for whoever drives the run. To leave it twice is to leave it once.
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::RunEnded`].
    fn ask<'a>(&'a self, id: &'a RunId, wish: Wish) -> StoreFuture<'a, ()>;

    /// Takes a wish back, such as [`Wish::Pause`] when a person lets the run go on. It is fine if
    /// there is none.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn withdraw<'a>(&'a self, id: &'a RunId, wish: Wish) -> StoreFuture<'a, ()>;

    /// The wishes that were left and not taken back.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn wishes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, BTreeSet<Wish>>;

    /// Those of these runs that somebody left this wish for. It is asked several times a second, by
    /// whoever drives many runs.
    fn wished<'a>(&'a self, ids: &'a [RunId], wish: Wish) -> StoreFuture<'a, BTreeSet<RunId>>;

    /// Keeps a person's word on a move. Only the first word on a move stays. It may come after the
    /// end: it changes how the moves are ranked, not what happened.
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::TooLarge`].
    fn approve<'a>(&'a self, id: &'a RunId, approval: Approval) -> StoreFuture<'a, ()>;

    /// The words that were kept, by move.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn approvals<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Vec<Approval>>;

    /// Keeps what a person wants changed in the moves, behind what was said before; all of it or
    /// nothing. The run hears of it when it goes on.
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::TooLarge`].
    fn add_changes<'a>(&'a self, id: &'a RunId, changes: Vec<Change>) -> StoreFuture<'a, ()>;

    /// The changes that were kept, in the order in which they came.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn changes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, Vec<Change>>;

    /// Takes all changes back. It is fine if there are none.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn forget_changes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, ()>;

    /// How many bytes a run holds: its input and outcome, its journal, its events and its files. What
    /// they take on the disk is a little more.
    ///
    /// Errors: [`StoreError::UnknownRun`].
    fn run_bytes<'a>(&'a self, id: &'a RunId) -> StoreFuture<'a, u64>;

    /// Removes runs and everything that belongs to them: all of them, or none. It is fine if there is
    /// none. A store that owns its file overwrites the content.
    fn delete_runs<'a>(&'a self, ids: &'a [RunId]) -> StoreFuture<'a, ()>;

    /// Gives the space of what was deleted to runs to come, and back to the machine where that can be
    /// done while others read and write; says how many bytes the machine has back. Nothing is lost
    /// where it is interrupted.
    fn give_back(&self) -> StoreFuture<'_, u64>;
}

/// A run that is about to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Its id.
    pub run_id: RunId,
    /// Whom it belongs to.
    pub owner: Owner,
    /// The most that it may cost, where there is a cap.
    pub cap: Option<MicroUsd>,
    /// What it does.
    pub spec: StoredSpec,
    /// What people see in a list.
    pub title: String,
    /// The model that was asked for.
    pub model: String,
    /// The build that began the run.
    pub build: String,
    /// When, in milliseconds since 1970.
    pub created_at_ms: u64,
}

/// On what terms a run may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The request that asks for it, where it may be made again.
    pub once: Option<Once>,
    /// When the day began in which the runs of its token are counted, in milliseconds since 1970.
    pub day_began_at_ms: u64,
}

/// A request that may come more than once and counts once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Once {
    /// What the client calls it; a name within its team.
    pub key: String,
    /// The hash of what it asks for.
    pub request_sha256: Sha256Hex,
}

/// What came of a request to start a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// The run was made.
    Made,
    /// The same request was made before, and made this run.
    MadeBefore(RunId),
    /// Another request had this key.
    OtherRequest,
    /// The limits do not allow it.
    Refused(Excess),
}

/// A run as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Its id.
    pub run_id: RunId,
    /// Whom it belongs to.
    pub owner: Owner,
    /// The most that it may cost, where there is a cap.
    pub cap: Option<MicroUsd>,
    /// What it does.
    pub spec: StoredSpec,
    /// What people see in a list.
    pub title: String,
    /// The model that was asked for.
    pub model: String,
    /// The build that began the run.
    pub build: String,
    /// When it was made, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// Where it stands.
    pub state: RunState,
    /// When something last changed, in milliseconds since 1970.
    pub updated_at_ms: u64,
    /// How many events it has, which is also the number of the last one.
    pub events: u64,
    /// How it ended, where it ended with an outcome.
    pub outcome: Option<Outcome>,
    /// What it has spent, where anybody said so.
    pub spent: Option<Spent>,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Someone drives it, or did when they were last heard of.
    Running,
    /// It stands still and can go on.
    Paused,
    /// It came to its end.
    Finished,
    /// It cannot go on.
    Failed,
    /// Someone stopped it.
    Cancelled,
}

impl RunState {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Running, Self::Paused, Self::Finished, Self::Failed, Self::Cancelled];

    /// The word as it stands in tables and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing can follow.
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

/// A word that is not the name of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a state of a run: expected running, paused, finished, failed or cancelled")]
pub struct UnknownRunState;

/// Whose things are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Teams {
    /// Everyone's.
    All,
    /// Those of this team.
    Only(TeamName),
}

impl Teams {
    /// The one team, if it is one.
    pub(crate) fn only(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Only(team) => Some(team.as_str()),
        }
    }
}

/// Which runs to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFilter {
    /// Only those of these teams.
    pub teams: Teams,
    /// Only those in this state.
    pub state: Option<RunState>,
    /// At most so many.
    pub limit: u32,
}

/// What the beginning of an id stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunMatch {
    /// No run.
    None,
    /// This run.
    One(RunId),
    /// More than one: the newest ten of them.
    Several(Vec<RunId>),
}

/// The answer to an effect, as a replay needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// The hash of the request, so that an old answer is never given to a new question.
    pub request_sha256: Sha256Hex,
    /// What came back.
    pub result: EffectResult,
    /// How long it took.
    pub timing: Timing,
}

/// What one or more steps of a run brought. It is written as a whole.
///
/// A terminal event is the last one, and stands in the commit that sets a terminal state; an
/// outcome stands there too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// The effects that were answered. Several, because a flush to the disk costs the same for many
    /// as for one.
    pub results: Vec<(EffectId, JournalEntry)>,
    /// What happened, in this order.
    pub events: Vec<RunEvent>,
    /// Where the run stands now; `None` leaves it where it is.
    pub state: Option<RunState>,
    /// How the run ended.
    pub outcome: Option<Outcome>,
    /// What the whole run has spent by now, failed tries included; `None` leaves it as it is. It
    /// stands beside the journal, because tries that brought no result cost money as well.
    pub spent: Option<Spent>,
    /// What became of a reservation of [`Store::begin`]. What the run has spent follows from it.
    pub purse: Option<Word>,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// An event with its place in the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// From 1, without gaps.
    pub seq: u64,
    /// The time of the commit that brought it, in milliseconds since 1970.
    pub at_ms: u64,
    /// What happened.
    pub event: RunEvent,
}

/// What a person in another process wants of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wish {
    /// Stop for good.
    Cancel,
    /// Stand still.
    Pause,
}

impl Wish {
    /// The word as it stands in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Pause => "pause",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Cancel, Self::Pause].into_iter().find(|wish| wish.as_str() == text)
    }
}
