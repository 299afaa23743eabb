//! A workspace with a store beside it, and who works in it. The tests of the engine use it, too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{Draft, DraftId, Principal};
use moothall_core::sandbox::{
    Attestation, ExecuteRequest, Execution, Exit, FileRef, GuestPath, IsolationClass, Limits,
    Output,
};
use moothall_workspace::{Caller, Checker, DraftStore, Edit, Existing, Options, Submitted};
use tokio_util::sync::CancellationToken;

/// A policy with a check.
pub(crate) const CHECK: &str =
    "version = 1\n[[check]]\nid = \"tests\"\nrun = [\"make\"]\ntimeout = \"1m\"\n";

/// A workspace with a store beside it.
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

    pub(crate) fn options(&self) -> Options {
        let clock = Arc::clone(&self.clock);
        Options {
            clock: Box::new(move || clock.load(Ordering::Relaxed)),
            ..Options::new(self.workspace(), self.state())
        }
    }

    pub(crate) fn open(&self) -> DraftStore {
        DraftStore::open(self.options()).unwrap()
    }

    pub(crate) fn at(&self, ms: u64) {
        self.clock.store(ms, Ordering::Relaxed);
    }

    /// Everything in the workspace, by name.
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

    /// The whole journal as text.
    pub(crate) fn journal(&self) -> String {
        fs_err::read_to_string(self.state().join("audit/000001.ndjson")).unwrap()
    }
}

pub(crate) fn worker() -> Caller {
    Caller::new(Principal::worker("ada/one"))
}

pub(crate) fn person() -> Caller {
    Caller::new(Principal::human("ada"))
}

pub(crate) fn request(store: &DraftStore, name: &str) -> DraftId {
    store.request(&worker(), "t1", name, Existing::Must).unwrap().0.id
}

pub(crate) fn write(store: &DraftStore, id: DraftId, text: &str) -> Draft {
    store.write(&worker(), id, Edit::Content(text.to_owned()), None).unwrap()
}

pub(crate) fn submit(store: &DraftStore, ids: &[DraftId]) -> Submitted {
    store.submit(&worker(), ids, "why").unwrap()
}

/// A draft of `name` that holds `text`, handed in.
pub(crate) fn drafted(store: &DraftStore, name: &str, text: &str) -> (DraftId, Submitted) {
    let id = request(store, name);
    write(store, id, text);
    (id, submit(store, &[id]))
}

/// A credential that is nobody's.
pub(crate) fn token() -> String {
    format!("ghp_{}", &Sha256Hex::of(b"a token of nobody").to_string()[..36])
}

/// A check that ends only when it is stopped, and whoever waits for its beginning.
#[derive(Debug)]
struct Unending(mpsc::Sender<()>);

impl Checker for Unending {
    fn execute(
        &self,
        _: Option<&str>,
        _: &ExecuteRequest,
        _: &BTreeMap<GuestPath, Vec<u8>>,
        stop: &CancellationToken,
    ) -> Result<Execution, String> {
        self.0.send(()).unwrap();
        while !stop.is_cancelled() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Err("stopped".to_owned())
    }
}

/// A store whose check does not end.
pub(crate) fn unending(world: &World) -> (Options, mpsc::Receiver<()>) {
    world.save(".moothall/policy.toml", CHECK);
    let (begins, begun) = mpsc::channel();
    let mut options = world.options();
    options.checker = Some(Box::new(Unending(begins)));
    (options, begun)
}

pub(crate) fn execution() -> Execution {
    Execution {
        exit: Exit::Exited { code: 0 },
        stdout: Output { text: "done\n".to_owned(), truncated: false },
        stderr: Output::default(),
        // Never believed: what is named is what was kept.
        files: BTreeMap::from([(
            "lie.txt".parse().unwrap(),
            FileRef { sha256: Sha256Hex::of(b"a lie"), bytes: 5 },
        )]),
        left_behind: Vec::new(),
        attestation: Attestation {
            engine: "runsc".to_owned(),
            engine_version: "1".to_owned(),
            class: IsolationClass::UserKernel,
            image: "python".to_owned(),
            image_sha256: Sha256Hex::of(b"image"),
            guest_sha256: Sha256Hex::of(b"guest"),
            limits: Limits::default(),
            held_by: BTreeMap::new(),
            self_tests: Vec::new(),
        },
    }
}
