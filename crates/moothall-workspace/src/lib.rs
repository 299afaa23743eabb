//! The draft store on disk: a confined workspace, a store outside of it, and a journal as the
//! source of truth.
//!
//! Every operation takes the store lock, reads what other processes appended, decides in
//! `moothall-core`, appends to the journal, and only then changes the workspace. If a process is
//! killed midway, the next one that opens the store finishes or rolls back its work.

mod amend;
mod anchor;
mod apply;
mod base_index;
mod blob_store;
mod change_set;
mod check_cache;
mod checkpoints;
mod checks;
mod confined_open;
mod copy_changes;
mod copy_submit;
mod diff;
mod edit;
mod error;
mod file_context;
mod git_diff;
mod git_patch;
mod git_repository;
mod handoff;
mod journal;
mod journal_head;
mod notifications;
mod object_reader;
mod policy_files;
mod prepared_drafts;
mod review;
mod snapshot;
mod submission_listener;
mod submit;
mod verify;
mod workspace;
mod workspace_files;
mod worktree_files;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{
    AuditRecord, BlobRetention, ClientInfo, Draft, DraftEvent, DraftId, DraftOperation,
    DraftRefusal, DraftSet, FileStep, MAX_TEXT_CHARS, Principal, PrincipalKind, RelPath, decide,
    referenced_blobs,
};
use moothall_core::gate::{FingerprintKey, Policy, PolicyLayer, is_build_output, scan_secrets};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub use self::amend::{AmendReport, AmendResult, FileAmendment, SubmissionHunk};
pub use self::anchor::JournalAnchor;
pub use self::base_index::{AgentStart, BaseIndex};
pub use self::change_set::judge_change_set;
pub use self::checks::{CheckReport, CheckRunner, ModelReviewer};
pub use self::confined_open::{MountPolicy, open as open_confined};
pub use self::copy_changes::{CopyChanges, CopyFolder, GitFolderChanges, ShownPaths};
pub use self::copy_submit::{CopyFileResult, CopyOutcome, CopyVerdict};
pub use self::diff::{DiffLine, DiffSide, DiffSpan, DraftDiff, difference, full_difference};
pub use self::edit::{DraftEdit, FileRequirement};
pub use self::error::{DraftError, DraftStateFile, FileFault, OldTextFault};
pub use self::git_diff::{GitDiffSelection, judge_git_diff};
pub use self::git_patch::{GitPatchError, judge_git_patch};
pub use self::git_repository::{GitEnvironment, GitError, GitRepository, ObjectId};
pub use self::handoff::HandoffMode;
pub use self::journal::JournalLine;
pub use self::journal_head::JournalHead;
pub use self::notifications::{NotificationBatch, NotificationEntry};
pub use self::policy_files::{is_policy_trusted, policy_layers};
pub use self::submission_listener::{SubmissionListener, SubmissionNotice, SubmissionNoticeKind};
pub use self::submit::{GateReport, SubmissionFile, SubmissionResult, today};
pub use self::verify::{JournalVerification, TornFile, read_journal, torn_files, verify};

use self::blob_store::BlobStore;
use self::check_cache::CheckCache;
use self::journal::{DraftJournal, FileLock};
use self::notifications::NotificationBuffer;
use self::workspace::ConfinedWorkspace;

/// Points at which a test can kill the process or simulate a full disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailPoint {
    Blob,
    Journal,
    /// Before a record is flushed.
    JournalSync,
    /// Before the intent to change the workspace is recorded.
    BeforeIntent,
    /// After the intent is recorded.
    AfterIntent,
    /// Before the staging file is written.
    Staging,
    /// After the staging file is written.
    Staged,
    /// After the staging file and the original are exchanged.
    Exchanged,
    /// After the original is deleted.
    Unlinked,
    /// Before the end is recorded.
    BeforeEnd,
}

/// How long an operation waits for other threads, and then for other processes. No operation runs
/// checks, calls a model or judges while it holds the lock.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// Default limit for stored contents.
const MAX_STORED_BYTES: u64 = 1 << 30;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const SWEEP_EVERY_MS: u64 = 10 * 60 * 1000;

/// Called at each [`FailPoint`]. Does nothing outside of tests.
pub type Reached = dyn Fn(FailPoint) -> io::Result<()> + Send + Sync;

/// How to open a [`DraftStore`].
pub struct DraftStoreOptions {
    /// The directory whose files are drafted.
    pub workspace: PathBuf,
    /// The store's directory, outside of the workspace.
    pub state: PathBuf,
    /// The anchor file, outside of `state`. Without one, a truncated journal is not detected.
    pub anchor: Option<PathBuf>,
    /// The policy file above that of the workspace.
    pub organisation_policy: Option<PathBuf>,
    /// Runs the policy's checks. Without one they do not run, which is escalated.
    pub checker: Option<Box<dyn CheckRunner>>,
    /// Calls the policy's reviewing model. Without one it is not called, which is escalated.
    pub reviewer: Option<Box<dyn ModelReviewer>>,
    /// Told about submissions that need a person and about their reviews, if this process records
    /// them.
    pub listener: Option<Box<SubmissionListener>>,
    /// Current time in milliseconds since 1970.
    pub clock: Box<dyn Fn() -> u64 + Send + Sync>,
    /// Whether drafts are exported for other tools.
    pub handoff: HandoffMode,
    pub reached: Box<Reached>,
    /// Size at which a new journal file is started, or `None` for the default.
    pub rotate_at: Option<u64>,
    /// Limit for stored contents.
    pub max_stored_bytes: u64,
}

impl DraftStoreOptions {
    /// The default options.
    pub fn new(workspace: PathBuf, state: PathBuf) -> Self {
        let clock = || {
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            since.map_or(0, |since| since.as_millis() as u64)
        };
        Self {
            workspace,
            state,
            anchor: None,
            organisation_policy: None,
            checker: None,
            reviewer: None,
            listener: None,
            clock: Box::new(clock),
            handoff: HandoffMode::default(),
            reached: Box::new(|_| Ok(())),
            rotate_at: None,
            max_stored_bytes: MAX_STORED_BYTES,
        }
    }
}

impl std::fmt::Debug for DraftStoreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DraftStoreOptions")
            .field("workspace", &self.workspace)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// The drafts of one workspace.
#[derive(Debug)]
pub struct DraftStore {
    options: DraftStoreOptions,
    workspace: ConfinedWorkspace,
    blobs: BlobStore,
    lock: File,
    policy: Policy,
    policy_layers: Vec<PolicyLayer>,
    key: FingerprintKey,
    inner: parking_lot::Mutex<DraftStoreState>,
    check_cache: Mutex<CheckCache>,
    journal_failing: Arc<AtomicBool>,
    stopped: CancellationToken,
}

/// State derived from the journal, and work in progress.
#[derive(Debug)]
struct DraftStoreState {
    journal: DraftJournal,
    drafts: DraftSet,
    /// Intents without an end, by their first draft.
    pending: BTreeMap<DraftId, ApplyIntent>,
    notifications: NotificationBuffer,
    policy_differs: bool,
    /// The last record included in the export.
    viewed: u64,
    /// The last record covered by a snapshot, as far as this process knows.
    snapshot_at: u64,
    /// When this process last removed unneeded contents, in milliseconds since 1970.
    swept_at: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplyIntent {
    drafts: Vec<DraftId>,
    steps: Vec<FileStep>,
}

/// Who calls the store, and through which program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftCaller {
    /// The authenticated principal.
    pub principal: Principal,
    /// The client program, as it names itself.
    pub client: Option<ClientInfo>,
}

impl DraftCaller {
    /// A caller without a client program.
    pub fn new(principal: Principal) -> Self {
        Self { principal, client: None }
    }
}

impl DraftStore {
    /// Opens the store of a workspace and recovers from a crash.
    pub fn open(options: DraftStoreOptions) -> Result<Self, DraftError> {
        let cannot = "cannot open the store";
        let state = &options.state;
        let (policy, policy_layers) = policy_files::load(&options)?;
        let make = || -> io::Result<File> {
            let mut folders = std::fs::DirBuilder::new();
            std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
            folders.recursive(true).create(state)?;
            OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(state.join("store.lock"))
        };
        let lock = make().map_err(DraftError::io(cannot))?;
        let workspace = ConfinedWorkspace::open(&options.workspace, policy.limits.max_file_bytes)?;
        let mut journal = DraftJournal::open(state, options.anchor.as_deref())?;
        if let Some(bytes) = options.rotate_at {
            journal.rotate_at(bytes);
        }
        let key = fingerprint_key(state).map_err(DraftError::io(cannot))?;
        let blobs = BlobStore::open(state, options.max_stored_bytes)?;
        let mut inner = DraftStoreState {
            journal,
            drafts: DraftSet::default(),
            pending: BTreeMap::new(),
            notifications: NotificationBuffer::default(),
            policy_differs: false,
            viewed: 0,
            snapshot_at: 0,
            swept_at: None,
        };
        inner.restore(state)?;
        let store = Self {
            journal_failing: inner.journal.failing(),
            workspace,
            blobs,
            lock,
            policy,
            policy_layers,
            key,
            inner: parking_lot::Mutex::new(inner),
            check_cache: Mutex::default(),
            stopped: CancellationToken::new(),
            options,
        };
        store.with(|_, _| Ok(()))?;
        store.begin_view()?;
        Ok(store)
    }

    /// Cancels running checks and model calls for good. Their drafts are not submitted; what is
    /// already journaled is still finished.
    pub fn stop(&self) {
        self.stopped.cancel();
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The workspace, without links.
    pub fn workspace_folder(&self) -> &Path {
        &self.options.workspace
    }

    pub fn state_folder(&self) -> &Path {
        &self.options.state
    }

    /// Returns a draft, if the caller may see it.
    pub fn status(&self, caller: &DraftCaller, id: DraftId) -> Result<Draft, DraftError> {
        self.with(|_, inner| {
            let draft = inner.drafts.of(&caller.principal, id).ok_or(DraftRefusal::Unknown)?;
            Ok(draft.clone())
        })
    }

    /// All drafts the caller may see, least recently changed first.
    pub fn list(&self, caller: &DraftCaller) -> Result<Vec<Draft>, DraftError> {
        self.with(|_, inner| {
            let known = |draft: &&Draft| inner.drafts.of(&caller.principal, draft.id).is_some();
            let mut all: Vec<Draft> = inner.drafts.all().filter(known).cloned().collect();
            all.sort_by_key(|draft| (draft.touched, draft.id));
            Ok(all)
        })
    }

    /// Files that workers may draft, without build output and installed dependencies.
    pub fn files(&self) -> Result<Vec<RelPath>, DraftError> {
        let mut names = self.workspace.names(&|path| is_build_output(path))?;
        names.retain(|path| !self.policy.denies(path) && !is_build_output(path));
        Ok(names)
    }

    /// Whether a text may be sent to a model. False if it may contain a credential.
    pub fn may_be_shown(&self, text: &str) -> bool {
        scan_secrets(text.as_bytes(), &self.key).is_clean()
    }

    /// Prepares a summary or a reason for the journal: truncates it, and withholds it if it may
    /// contain a credential. Truncates before scanning and scans without the lock, so a long
    /// text does not block other processes.
    fn recordable(&self, text: &str) -> String {
        let text: String = text.chars().take(MAX_TEXT_CHARS).collect();
        match self.may_be_shown(&text) {
            true => text,
            false => "(withheld: may contain a credential)".to_owned(),
        }
    }

    /// Discards a draft.
    pub fn discard(&self, caller: &DraftCaller, id: DraftId) -> Result<Draft, DraftError> {
        self.with(|store, inner| {
            store.execute_command(inner, caller, DraftOperation::Withdraw { draft: id })?;
            store.draft_by_id(inner, id)
        })
    }

    /// The head of the journal.
    pub fn head(&self) -> Result<JournalHead, DraftError> {
        self.with(|_, inner| Ok(inner.journal.head()))
    }

    /// Whether this process's last journal write failed.
    pub fn is_journal_failing(&self) -> bool {
        self.journal_failing.load(Ordering::Relaxed)
    }

    /// Tests whether the journal is writable if the last write failed. This lets a server recover
    /// that gets no requests while it is not ready.
    pub fn check_journal(&self) -> Result<(), DraftError> {
        if !self.is_journal_failing() {
            return Ok(());
        }
        self.with(|store, inner| inner.journal.probe(store.now(), &*store.options.reached))
    }

    /// Discards every open draft and removes all contents. The journal is kept.
    pub fn purge(&self, caller: &DraftCaller) -> Result<u64, DraftError> {
        self.with(|store, inner| {
            let open: Vec<DraftId> =
                inner.drafts.all().filter(|one| one.state.is_open()).map(|one| one.id).collect();
            for draft in open {
                store.execute_command(inner, caller, DraftOperation::Withdraw { draft })?;
            }
            let (blobs, _) = store.blobs.sweep(&std::collections::BTreeSet::new())?;
            store.record(inner, caller, DraftEvent::Purged { blobs })?;
            Ok(blobs)
        })
    }

    /// Expires idle drafts and removes unneeded contents. Contents are swept at most once in ten
    /// minutes, because a sweep reads the whole directory.
    pub fn tidy(&self) -> Result<u64, DraftError> {
        self.with(|store, inner| {
            store.execute_command(
                inner,
                &DraftCaller::new(Principal::gate()),
                DraftOperation::Expire,
            )?;
            let now = store.now();
            if inner.swept_at.is_some_and(|at| now.abs_diff(at) < SWEEP_EVERY_MS) {
                return Ok(0);
            }
            inner.swept_at = Some(now);
            store.sweep(inner)
        })
    }

    fn sweep(&self, inner: &DraftStoreState) -> Result<u64, DraftError> {
        let kept = referenced_blobs(&inner.drafts, BlobRetention::default(), self.now());
        Ok(self.blobs.sweep(&kept)?.0)
    }

    /// Makes room for more bytes. First removes old revisions, then shortens the time in which
    /// drafts can be undone; if that is not enough, returns an error. Removes contents that no
    /// record refers to yet, so it must run before an operation stores its first content.
    fn make_room(&self, inner: &DraftStoreState, bytes: usize) -> Result<(), DraftError> {
        let bytes = bytes as u64;
        if !self.blobs.wants_sweep(bytes) {
            return Ok(());
        }
        let most = self.options.max_stored_bytes;
        let short = BlobRetention { applied_ms: DAY_MS, closed_ms: 0 };
        for retention in [BlobRetention::default(), short] {
            let kept = referenced_blobs(&inner.drafts, retention, self.now());
            if self.blobs.sweep(&kept)?.1.saturating_add(bytes) <= most {
                return Ok(());
            }
        }
        let most = most >> 20;
        Err(DraftError::Input(format!(
            "draft storage is full (limit: {most} MiB): submit or discard some drafts"
        )))
    }

    /// Runs one operation under the lock, on the current state.
    fn with<T>(
        &self,
        operation: impl FnOnce(&Self, &mut DraftStoreState) -> Result<T, DraftError>,
    ) -> Result<T, DraftError> {
        let mut inner = self.inner.try_lock_for(LOCK_WAIT).ok_or(DraftError::Busy)?;
        let _held = FileLock::take(&self.lock, LOCK_WAIT).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => DraftError::Busy,
            _ => DraftError::io("cannot lock the store")(error),
        })?;
        let DraftStoreState { journal, drafts, pending, notifications, .. } = &mut *inner;
        journal.catch_up(|seq, record| {
            apply_record(drafts, pending, record);
            notifications.push(drafts, seq, record);
        })?;
        if self.needs_recovery(&inner) {
            self.recover(&mut inner)?;
        }
        let done = operation(self, &mut inner);
        self.refresh_view(&mut inner);
        done
    }

    /// Decides on a command and records its events.
    fn execute_command(
        &self,
        inner: &mut DraftStoreState,
        caller: &DraftCaller,
        command: DraftOperation,
    ) -> Result<(), DraftError> {
        let limits = self.policy.draft_limits();
        let reviewers = &self.policy.reviewers;
        let events =
            decide(&inner.drafts, &caller.principal, command, &limits, reviewers, self.now())?;
        for event in events {
            self.record(inner, caller, event)?;
        }
        Ok(())
    }

    /// Whether a command would be carried out. Records nothing.
    fn require_allowed(
        &self,
        inner: &DraftStoreState,
        caller: &DraftCaller,
        command: DraftOperation,
    ) -> Result<(), DraftError> {
        let (limits, reviewers) = (self.policy.draft_limits(), &self.policy.reviewers);
        decide(&inner.drafts, &caller.principal, command, &limits, reviewers, self.now())?;
        Ok(())
    }

    fn record(
        &self,
        inner: &mut DraftStoreState,
        caller: &DraftCaller,
        event: DraftEvent,
    ) -> Result<(), DraftError> {
        // Caller names are user input, too.
        if !self.may_be_shown(&caller.principal.id) {
            let message = "the caller's name may contain a credential";
            return Err(DraftError::Input(message.to_owned()));
        }
        let recordable = |client: &ClientInfo| ClientInfo {
            name: self.recordable(&client.name),
            version: self.recordable(&client.version),
        };
        let record = AuditRecord {
            ts: self.now(),
            actor: caller.principal.clone(),
            client: caller.client.as_ref().map(recordable),
            event,
        };
        // Take the number before appending: a record that fills its file is followed by a rotation
        // record.
        let seq = inner.journal.head().seq + 1;
        let notice = self.submission_notice(&inner.drafts, &record);
        inner.journal.append(&record, &*self.options.reached)?;
        apply_record(&mut inner.drafts, &mut inner.pending, &record);
        inner.notifications.push(&inner.drafts, seq, &record);
        self.save_snapshot(inner);
        if let (Some(listener), Some(notice)) = (&self.options.listener, notice) {
            listener(&notice);
        }
        Ok(())
    }

    /// Returns a draft whose content the caller may read. Workers cannot read paths that the policy
    /// denies, even if the draft is older than the policy.
    fn readable(
        &self,
        inner: &DraftStoreState,
        caller: &DraftCaller,
        id: DraftId,
    ) -> Result<Draft, DraftError> {
        let draft = inner.drafts.of(&caller.principal, id).ok_or(DraftRefusal::Unknown)?;
        if caller.principal.kind == PrincipalKind::Worker {
            self.may_be_read(&draft.path)?;
        }
        Ok(draft.clone())
    }

    fn may_be_read(&self, path: &RelPath) -> Result<(), DraftError> {
        if !self.policy.denies(path) {
            return Ok(());
        }
        Err(DraftError::file(path, FileFault::Denied))
    }

    fn draft_by_id(&self, inner: &DraftStoreState, id: DraftId) -> Result<Draft, DraftError> {
        let draft = inner.drafts.of(&Principal::gate(), id).ok_or(DraftRefusal::Unknown)?;
        Ok(draft.clone())
    }

    fn put(&self, bytes: &[u8]) -> Result<Sha256Hex, DraftError> {
        self.blobs.put(bytes, &*self.options.reached)
    }

    fn now(&self) -> u64 {
        (self.options.clock)()
    }
}

/// Applies a record to the derived state. All of it is stored in snapshots: an addition requires a
/// new snapshot version.
fn apply_record(
    drafts: &mut DraftSet,
    pending: &mut BTreeMap<DraftId, ApplyIntent>,
    record: &AuditRecord,
) {
    drafts.evolve(record);
    match &record.event {
        DraftEvent::Applying { drafts, steps, .. } => {
            if let Some(first) = drafts.first() {
                let intent = ApplyIntent { drafts: drafts.clone(), steps: steps.clone() };
                pending.insert(*first, intent);
            }
        }
        DraftEvent::Ended { drafts, .. } => {
            if let Some(first) = drafts.first() {
                pending.remove(first);
            }
        }
        _ => {}
    }
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    use ring::rand::SecureRandom as _;
    let mut bytes = [0; N];
    ring::rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("no randomness available"))?;
    Ok(bytes)
}

/// Reads the key for credential fingerprints, or creates one.
fn fingerprint_key(state: &Path) -> io::Result<FingerprintKey> {
    let path = state.join("keys/fingerprint");
    if !path.exists() {
        checkpoints::write_private(&path, &random::<32>()?)?;
    }
    let bytes = fs_err::read(path)?;
    let bytes = <[u8; 32]>::try_from(bytes).map_err(|_| io::Error::other("not a valid key"))?;
    Ok(FingerprintKey::new(bytes))
}

/// A stable ID for a workspace directory, used as the name of its store.
pub fn workspace_id(workspace: &Path) -> io::Result<String> {
    let path = fs_err::canonicalize(workspace)?;
    let digits = Sha256Hex::of(path.as_os_str().as_encoded_bytes()).to_string();
    Ok(digits[..16].to_owned())
}
