//! Drafts on a disk: a confined workspace, a store beside it, and the journal that is the truth.
//!
//! Every operation takes the lock of the store, reads what others appended, decides in
//! `moothall-core`, appends, and only then touches the workspace. Whoever is killed in between is
//! finished or taken back by the next one that opens the store.

mod anchor;
mod apply;
mod blobs;
mod check_cache;
mod checkpoints;
mod checks;
mod confined_open;
mod difference;
mod editing;
mod error;
mod head;
mod journal;
mod notifications;
mod policy_files;
mod prepared;
mod reviewing;
mod snapshot;
mod submit;
mod surroundings;
mod tree;
mod verify;
mod view;
mod workspace;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{
    Client, Command, Draft, DraftId, Drafts, Event, MAX_TEXT_CHARS, Principal, PrincipalKind,
    Record, Refusal, RelPath, Retention, Step, decide, kept_blobs,
};
use moothall_core::gate::{FingerprintKey, Layer, Policy, made_by_tools, scan_secrets};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub use self::anchor::Anchor;
pub use self::checks::{CheckReport, Checker, Reviewer};
pub use self::confined_open::{Mounts, open as open_confined};
pub use self::difference::{DiffLine, Difference, Part, Side, difference, whole_difference};
pub use self::editing::{Edit, Existing};
pub use self::error::{DraftError, FileFault, OldTextFault};
pub use self::head::Head;
pub use self::journal::Line;
pub use self::notifications::{Heard, Told};
pub use self::policy_files::policy_layers;
pub use self::submit::{Judged, ShownFile, Submitted, today};
pub use self::verify::{TornFile, Verified, read_journal, torn_files, verify};
pub use self::view::Handoff;

use self::blobs::Blobs;
use self::check_cache::Memory;
use self::journal::{Journal, Locked};
use self::notifications::Ring;
use self::workspace::Workspace;

/// Places in the work at which a test may stop a process, or a disk may be full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// Before a content is stored.
    Blob,
    /// Before a record is written.
    Journal,
    /// Before it is flushed.
    JournalSync,
    /// Before the intent to change the workspace.
    BeforeIntent,
    /// After it.
    AfterIntent,
    /// Before the staging file is written.
    Staging,
    /// After.
    Staged,
    /// After the exchange with the original.
    Exchanged,
    /// After the original is gone.
    Unlinked,
    /// Before the end is recorded.
    BeforeEnd,
}

/// How long an operation waits for those of other threads, and then for those of other processes.
/// None of them runs checks, asks a model or judges while it holds the lock.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// The most bytes of contents that a store holds, where nobody says otherwise.
const MAX_STORED_BYTES: u64 = 1 << 30;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const SWEEP_EVERY_MS: u64 = 10 * 60 * 1000;

/// What happens at a [`Point`]: nothing, in the product.
pub type Reached = dyn Fn(Point) -> io::Result<()> + Send + Sync;

/// Where and how.
pub struct Options {
    /// The folder whose files are drafted.
    pub workspace: PathBuf,
    /// The folder of the store, outside of it.
    pub state: PathBuf,
    /// The file that keeps the newest record of the journal, outside of `state`. `None` keeps none,
    /// and a journal that was cut is then not noticed.
    pub anchor: Option<PathBuf>,
    /// The policy above that of the workspace, if there is one.
    pub organisation_policy: Option<PathBuf>,
    /// Runs the checks of the policy; without one they are not run, and that is escalated.
    pub checker: Option<Box<dyn Checker>>,
    /// Asks the model of the policy; without one it is not asked, and that is escalated.
    pub reviewer: Option<Box<dyn Reviewer>>,
    /// Milliseconds since 1970.
    pub clock: Box<dyn Fn() -> u64 + Send + Sync>,
    /// What becomes of the view that other tools read.
    pub handoff: Handoff,
    /// What happens on the way.
    pub reached: Box<Reached>,
    /// Bytes after which a file of the journal is closed; `None` for the usual.
    pub rotate_at: Option<u64>,
    /// The most bytes of contents that the store holds.
    pub max_stored_bytes: u64,
}

impl Options {
    /// The usual ones.
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
            clock: Box::new(clock),
            handoff: Handoff::default(),
            reached: Box::new(|_| Ok(())),
            rotate_at: None,
            max_stored_bytes: MAX_STORED_BYTES,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("workspace", &self.workspace)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// The drafts of one workspace.
#[derive(Debug)]
pub struct DraftStore {
    options: Options,
    workspace: Workspace,
    blobs: Blobs,
    lock: File,
    policy: Policy,
    policy_layers: Vec<Layer>,
    key: FingerprintKey,
    inner: parking_lot::Mutex<Inner>,
    memory: Mutex<Memory>,
    journal_failing: Arc<AtomicBool>,
    stopped: CancellationToken,
}

/// What the journal comes to, and what is under way.
#[derive(Debug)]
struct Inner {
    journal: Journal,
    drafts: Drafts,
    /// Intents without an end, by their first draft.
    pending: BTreeMap<DraftId, Intent>,
    news: Ring,
    policy_differs: bool,
    /// The last record for which the view was looked after.
    viewed: u64,
    /// The last record of which this process knows a snapshot.
    snapshot_at: u64,
    /// When this process last removed contents that nothing needs, in milliseconds since 1970.
    swept_at: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Intent {
    drafts: Vec<DraftId>,
    steps: Vec<Step>,
}

/// A caller: who, and through what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who, as the gate knows it.
    pub who: Principal,
    /// Through what, as it says.
    pub client: Option<Client>,
}

impl Caller {
    /// A caller whose program does not matter.
    pub fn new(who: Principal) -> Self {
        Self { who, client: None }
    }
}

impl DraftStore {
    /// Opens the store of a workspace, and finishes what a crash left.
    pub fn open(options: Options) -> Result<Self, DraftError> {
        let cannot = "the store cannot be opened";
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
        let workspace = Workspace::open(&options.workspace, policy.limits.max_file_bytes)?;
        let mut journal = Journal::open(state, options.anchor.as_deref())?;
        if let Some(bytes) = options.rotate_at {
            journal.rotate_at(bytes);
        }
        let key = fingerprint_key(state).map_err(DraftError::io(cannot))?;
        let blobs = Blobs::open(state, options.max_stored_bytes)?;
        let mut inner = Inner {
            journal,
            drafts: Drafts::default(),
            pending: BTreeMap::new(),
            news: Ring::default(),
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
            memory: Mutex::default(),
            stopped: CancellationToken::new(),
            options,
        };
        store.with(|_, _| Ok(()))?;
        store.begin_view()?;
        Ok(store)
    }

    /// Ends checks and questions to a model that are under way, for good. What was being looked at
    /// is not handed in; what was written down is finished all the same.
    pub fn stop(&self) {
        self.stopped.cancel();
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The folder of the store.
    pub fn state_folder(&self) -> &Path {
        &self.options.state
    }

    /// A draft that the caller may know of.
    pub fn status(&self, caller: &Caller, id: DraftId) -> Result<Draft, DraftError> {
        self.with(|_, inner| {
            let draft = inner.drafts.of(&caller.who, id).ok_or(Refusal::Unknown)?;
            Ok(draft.clone())
        })
    }

    /// All drafts that the caller may know of, oldest touch first.
    pub fn list(&self, caller: &Caller) -> Result<Vec<Draft>, DraftError> {
        self.with(|_, inner| {
            let known = |draft: &&Draft| inner.drafts.of(&caller.who, draft.id).is_some();
            let mut all: Vec<Draft> = inner.drafts.all().filter(known).cloned().collect();
            all.sort_by_key(|draft| (draft.touched, draft.id));
            Ok(all)
        })
    }

    /// The names of files that workers may draft, without what tools make.
    pub fn files(&self) -> Result<Vec<RelPath>, DraftError> {
        let mut names = self.workspace.names(&|path| made_by_tools(path))?;
        names.retain(|path| !self.policy.denies(path) && !made_by_tools(path));
        Ok(names)
    }

    /// Whether a text may go to a model: one that may hold a credential does not.
    pub fn may_be_shown(&self, text: &str) -> bool {
        scan_secrets(text.as_bytes(), &self.key).is_clean()
    }

    /// A summary or a reason as the journal may keep it: cut to its limit, and withheld if it may hold
    /// a credential. Cut before the scan, and scanned outside of the lock: a long text must
    /// not block other processes.
    fn recordable(&self, text: &str) -> String {
        let text: String = text.chars().take(MAX_TEXT_CHARS).collect();
        match self.may_be_shown(&text) {
            true => text,
            false => "(withheld: it looks like it holds a credential)".to_owned(),
        }
    }

    /// Gives a draft up.
    pub fn discard(&self, caller: &Caller, id: DraftId) -> Result<Draft, DraftError> {
        self.with(|store, inner| {
            store.tell(inner, caller, Command::Withdraw { draft: id })?;
            store.known(inner, id)
        })
    }

    /// Where the journal stands.
    pub fn head(&self) -> Result<Head, DraftError> {
        self.with(|_, inner| Ok(inner.journal.head()))
    }

    /// Whether the last write of the journal by this process failed.
    pub fn is_journal_failing(&self) -> bool {
        self.journal_failing.load(Ordering::Relaxed)
    }

    /// Tries whether the journal can be written if the last write failed. A server that nobody
    /// sends requests to while it is not ready recovers this way.
    pub fn check_journal(&self) -> Result<(), DraftError> {
        if !self.is_journal_failing() {
            return Ok(());
        }
        self.with(|store, inner| inner.journal.probe(store.now(), &*store.options.reached))
    }

    /// Gives up every open draft and removes all contents. The journal stays.
    pub fn purge(&self, caller: &Caller) -> Result<u64, DraftError> {
        self.with(|store, inner| {
            let open: Vec<DraftId> =
                inner.drafts.all().filter(|one| one.state.is_open()).map(|one| one.id).collect();
            for draft in open {
                store.tell(inner, caller, Command::Withdraw { draft })?;
            }
            let (blobs, _) = store.blobs.sweep(&std::collections::BTreeSet::new())?;
            store.record(inner, caller, Event::Purged { blobs })?;
            Ok(blobs)
        })
    }

    /// Closes what nobody touched for too long, and removes contents that nothing needs: at most
    /// once in ten minutes, because it looks at every content.
    pub fn tidy(&self) -> Result<u64, DraftError> {
        self.with(|store, inner| {
            store.tell(inner, &Caller::new(Principal::gate()), Command::Expire)?;
            let now = store.now();
            if inner.swept_at.is_some_and(|at| now.abs_diff(at) < SWEEP_EVERY_MS) {
                return Ok(0);
            }
            inner.swept_at = Some(now);
            store.sweep(inner)
        })
    }

    fn sweep(&self, inner: &Inner) -> Result<u64, DraftError> {
        let kept = kept_blobs(&inner.drafts, Retention::default(), self.now());
        Ok(self.blobs.sweep(&kept)?.0)
    }

    /// Sees to it that so many bytes more fit. Workers write as often as they like, so old revisions
    /// go now and then; where that is not enough, what is kept for undoing goes before its time, and
    /// then nothing more is taken. It removes what no record names yet, so it comes before the first
    /// content of an operation is stored.
    fn make_room(&self, inner: &Inner, bytes: usize) -> Result<(), DraftError> {
        let bytes = bytes as u64;
        if !self.blobs.wants_sweep(bytes) {
            return Ok(());
        }
        let most = self.options.max_stored_bytes;
        let short = Retention { applied_ms: DAY_MS, closed_ms: 0 };
        for retention in [Retention::default(), short] {
            let kept = kept_blobs(&inner.drafts, retention, self.now());
            if self.blobs.sweep(&kept)?.1.saturating_add(bytes) <= most {
                return Ok(());
            }
        }
        let most = most >> 20;
        Err(DraftError::Input(format!("drafts hold {most} MiB, the most: submit or discard some")))
    }

    /// Runs one operation alone, on what is true now.
    fn with<T>(
        &self,
        operation: impl FnOnce(&Self, &mut Inner) -> Result<T, DraftError>,
    ) -> Result<T, DraftError> {
        let mut inner = self.inner.try_lock_for(LOCK_WAIT).ok_or(DraftError::Busy)?;
        let _held = Locked::take(&self.lock, LOCK_WAIT).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => DraftError::Busy,
            _ => DraftError::io("the store cannot be locked")(error),
        })?;
        let Inner { journal, drafts, pending, news, .. } = &mut *inner;
        journal.catch_up(|seq, record| {
            take_in(drafts, pending, record);
            news.hear(drafts, seq, record);
        })?;
        if self.needs_recovery(&inner) {
            self.recover(&mut inner)?;
        }
        let done = operation(self, &mut inner);
        self.refresh_view(&mut inner);
        done
    }

    /// Decides, and writes down what comes of it.
    fn tell(&self, inner: &mut Inner, caller: &Caller, command: Command) -> Result<(), DraftError> {
        let limits = self.policy.draft_limits();
        let reviewers = &self.policy.reviewers;
        let events = decide(&inner.drafts, &caller.who, command, &limits, reviewers, self.now())?;
        for event in events {
            self.record(inner, caller, event)?;
        }
        Ok(())
    }

    fn record(&self, inner: &mut Inner, caller: &Caller, event: Event) -> Result<(), DraftError> {
        // Names of callers come from outside, too.
        if !self.may_be_shown(&caller.who.id) {
            let words = "the name of the caller looks like it holds a credential";
            return Err(DraftError::Input(words.to_owned()));
        }
        let recordable = |client: &Client| Client {
            name: self.recordable(&client.name),
            version: self.recordable(&client.version),
        };
        let record = Record {
            ts: self.now(),
            actor: caller.who.clone(),
            client: caller.client.as_ref().map(recordable),
            event,
        };
        // Before: a record that fills its file is followed by one that says so.
        let seq = inner.journal.head().seq + 1;
        inner.journal.append(&record, &*self.options.reached)?;
        take_in(&mut inner.drafts, &mut inner.pending, &record);
        inner.news.hear(&inner.drafts, seq, &record);
        self.save_snapshot(inner);
        Ok(())
    }

    /// A draft whose content the caller may know. What a policy denies, workers do not read, even
    /// where the draft is older than the policy.
    fn readable(&self, inner: &Inner, caller: &Caller, id: DraftId) -> Result<Draft, DraftError> {
        let draft = inner.drafts.of(&caller.who, id).ok_or(Refusal::Unknown)?;
        if caller.who.kind == PrincipalKind::Worker {
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

    fn known(&self, inner: &Inner, id: DraftId) -> Result<Draft, DraftError> {
        let draft = inner.drafts.of(&Principal::gate(), id).ok_or(Refusal::Unknown)?;
        Ok(draft.clone())
    }

    fn put(&self, bytes: &[u8]) -> Result<Sha256Hex, DraftError> {
        self.blobs.put(bytes, &*self.options.reached)
    }

    fn now(&self) -> u64 {
        (self.options.clock)()
    }
}

/// What a record changes. All of it is in snapshots: what is added here needs a new version of them.
fn take_in(drafts: &mut Drafts, pending: &mut BTreeMap<DraftId, Intent>, record: &Record) {
    drafts.evolve(record);
    match &record.event {
        Event::Applying { drafts, steps, .. } => {
            if let Some(first) = drafts.first() {
                let intent = Intent { drafts: drafts.clone(), steps: steps.clone() };
                pending.insert(*first, intent);
            }
        }
        Event::Ended { drafts, .. } => {
            if let Some(first) = drafts.first() {
                pending.remove(first);
            }
        }
        _ => {}
    }
}

/// Random bytes of the kernel.
fn random<const N: usize>() -> io::Result<[u8; N]> {
    use ring::rand::SecureRandom as _;
    let mut bytes = [0; N];
    ring::rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("no randomness"))?;
    Ok(bytes)
}

/// The key under which values of credentials are hashed; made when there is none.
fn fingerprint_key(state: &Path) -> io::Result<FingerprintKey> {
    let path = state.join("keys/fingerprint");
    if !path.exists() {
        checkpoints::write_private(&path, &random::<32>()?)?;
    }
    let bytes = fs_err::read(path)?;
    let bytes = <[u8; 32]>::try_from(bytes).map_err(|_| io::Error::other("not a key"))?;
    Ok(FingerprintKey::new(bytes))
}

/// The name of a store for a workspace: one folder has one.
pub fn workspace_id(workspace: &Path) -> io::Result<String> {
    let path = fs_err::canonicalize(workspace)?;
    let digits = Sha256Hex::of(path.as_os_str().as_encoded_bytes()).to_string();
    Ok(digits[..16].to_owned())
}
