//! A workspace with a store, and its users. Also used by the engine's tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{Draft, DraftId, Principal};
use moothall_core::sandbox::{
    CapturedOutput, ExecuteRequest, ExecutionExit, FileRef, GuestPath, IsolationClass,
    SandboxAttestation, SandboxExecution, SandboxLimits,
};
use moothall_workspace::{
    CheckRunner, DraftCaller, DraftEdit, DraftStore, DraftStoreOptions, FileRequirement,
    SubmissionResult,
};
use tokio_util::sync::CancellationToken;

pub(crate) const CHECK: &str =
    "version = 1\n[[check]]\nid = \"tests\"\nrun = [\"make\"]\ntimeout = \"1m\"\n";

pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    clock: Arc<AtomicU64>,
}

impl World {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let world = Self { folder, clock: Arc::new(AtomicU64::new(1_000_000)) };
        fs_err::create_dir_all(world.workspace()).unwrap();
        for (name, text) in files {
            world.save(name, text);
        }
        world
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("ws")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn save(&self, name: &str, text: &str) {
        let path = self.workspace().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        fs_err::read_to_string(self.workspace().join(name)).ok()
    }

    pub(crate) fn options(&self) -> DraftStoreOptions {
        let clock = Arc::clone(&self.clock);
        DraftStoreOptions {
            clock: Box::new(move || clock.load(Ordering::Relaxed)),
            ..DraftStoreOptions::new(self.workspace(), self.state())
        }
    }

    pub(crate) fn open(&self) -> DraftStore {
        DraftStore::open(self.options()).unwrap()
    }

    pub(crate) fn at(&self, ms: u64) {
        self.clock.store(ms, Ordering::Relaxed);
    }

    /// All paths in the workspace.
    pub(crate) fn names(&self) -> Vec<String> {
        fn walk(folder: &Path, below: &str, names: &mut Vec<String>) {
            for entry in fs_err::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let name = format!("{below}{}", entry.file_name().to_string_lossy());
                match entry.file_type().unwrap().is_dir() {
                    true => walk(&entry.path(), &format!("{name}/"), names),
                    false => names.push(name),
                }
            }
        }
        let mut names = Vec::new();
        walk(&self.workspace(), "", &mut names);
        names.sort();
        names
    }

    pub(crate) fn journal(&self) -> String {
        fs_err::read_to_string(self.state().join("audit/000001.ndjson")).unwrap()
    }
}

pub(crate) fn worker() -> DraftCaller {
    DraftCaller::new(Principal::worker("ada/one"))
}

pub(crate) fn person() -> DraftCaller {
    DraftCaller::new(Principal::human("ada"))
}

pub(crate) fn request(store: &DraftStore, name: &str) -> DraftId {
    store.request(&worker(), "t1", name, FileRequirement::Must).unwrap().0.id
}

pub(crate) fn write(store: &DraftStore, id: DraftId, text: &str) -> Draft {
    store.write(&worker(), id, DraftEdit::Content(text.to_owned()), None).unwrap()
}

pub(crate) fn submit(store: &DraftStore, ids: &[DraftId]) -> SubmissionResult {
    store.submit(&worker(), ids, "why").unwrap()
}

/// A submitted draft of `name` with the content `text`.
pub(crate) fn drafted(store: &DraftStore, name: &str, text: &str) -> (DraftId, SubmissionResult) {
    let id = request(store, name);
    write(store, id, text);
    (id, submit(store, &[id]))
}

/// A fake credential.
pub(crate) fn token() -> String {
    format!("ghp_{}", &Sha256Hex::of(b"a token of nobody").to_string()[..36])
}

/// A check that runs until it is stopped, and signals its start.
#[derive(Debug)]
struct Unending(mpsc::Sender<()>);

impl CheckRunner for Unending {
    fn execute(
        &self,
        _: Option<&str>,
        _: &ExecuteRequest,
        _: &BTreeMap<GuestPath, Vec<u8>>,
        stop: &CancellationToken,
    ) -> Result<SandboxExecution, String> {
        self.0.send(()).unwrap();
        while !stop.is_cancelled() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Err("stopped".to_owned())
    }
}

/// A store whose check never ends.
pub(crate) fn unending(world: &World) -> (DraftStoreOptions, mpsc::Receiver<()>) {
    world.save(".moothall/policy.toml", CHECK);
    let (begins, begun) = mpsc::channel();
    let mut options = world.options();
    options.checker = Some(Box::new(Unending(begins)));
    (options, begun)
}

pub(crate) fn execution() -> SandboxExecution {
    SandboxExecution {
        exit: ExecutionExit::Exited { code: 0 },
        stdout: CapturedOutput { text: "done\n".to_owned(), truncated: false },
        stderr: CapturedOutput::default(),
        // Ignored by the reader: only files that were actually stored count.
        files: BTreeMap::from([(
            "lie.txt".parse().unwrap(),
            FileRef { sha256: Sha256Hex::of(b"a lie"), bytes: 5 },
        )]),
        left_behind: Vec::new(),
        attestation: SandboxAttestation {
            engine: "runsc".to_owned(),
            engine_version: "1".to_owned(),
            class: IsolationClass::UserKernel,
            image: "python".to_owned(),
            image_sha256: Sha256Hex::of(b"image"),
            guest_sha256: Sha256Hex::of(b"guest"),
            limits: SandboxLimits::default(),
            held_by: BTreeMap::new(),
            self_tests: Vec::new(),
        },
    }
}
