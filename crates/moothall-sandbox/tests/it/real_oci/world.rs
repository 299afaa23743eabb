//! A runtime with its own folders, and what the host can observe of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use moothall_core::Sha256Hex;
use moothall_core::sandbox::{
    ExecuteRequest, ExecutionExit, GuestPath, SandboxExecution, SandboxLabels,
};
use moothall_sandbox::image::ImageStore;
use moothall_sandbox::oci::{OciEngine, OciOptions, UserNamespace};
use moothall_sandbox::{
    EngineName, GuestBinary, MemoryBudget, PoolOptions, ProbeReport, ProbedEngine, SandboxEngine,
    SandboxError, SandboxRegistry, SandboxRunner,
};

/// Set in the process that will be killed: the folder of the test that kills it.
pub(crate) const VICTIM: &str = "MOOTHALL_TEST_VICTIM";

pub(crate) struct World {
    pub(crate) name: EngineName,
    pub(crate) engine: Arc<dyn SandboxEngine>,
    pub(crate) sandboxes: SandboxRunner,
    pub(crate) folder: tempfile::TempDir,
    /// Part of its sandbox names, because other tests run at the same time.
    pub(crate) label: String,
}

impl World {
    /// A runtime with its own folders.
    pub(crate) fn of(name: EngineName) -> Result<Self, SandboxError> {
        // A killed process cannot remove its folder, so it is created inside the folder of the
        // killing test.
        let above = std::env::var_os(VICTIM).map_or_else(std::env::temp_dir, PathBuf::from);
        let folder = tempfile::Builder::new().prefix("oci").tempdir_in(above).unwrap();
        let label = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
        let registry = SandboxRegistry::open(&folder.path().join("records")).unwrap();
        let engine = engine(name, folder.path(), registry)?;
        let report = ProbeReport {
            engine: name,
            version: engine.version().to_owned(),
            class: engine.class(),
            self_tests: Vec::new(),
            held_by: engine.enforced_limits(),
            start_ms: 0,
            run_ms: 0,
        };
        let probed = ProbedEngine { engine: Arc::clone(&engine), report };
        let options = PoolOptions { idle: 0, memory: MemoryBudget::new(4 << 30) };
        Ok(Self { name, engine, sandboxes: SandboxRunner::new(probed, options), folder, label })
    }

    pub(crate) async fn run(&self, program: &str) -> SandboxExecution {
        self.execute(&request(program)).await
    }

    pub(crate) async fn execute(&self, request: &ExecuteRequest) -> SandboxExecution {
        let none = BTreeMap::new();
        let executed = self.sandboxes.execute(&self.labels(), request, &none, None).await.unwrap();
        executed.clean_up.await.unwrap();
        executed.execution
    }

    pub(crate) fn labels(&self) -> SandboxLabels {
        SandboxLabels(BTreeMap::from([("run".to_owned(), self.label.clone())]))
    }

    /// Existing bundle folders, records and cgroups.
    pub(crate) fn leftovers(&self) -> BTreeSet<PathBuf> {
        let mut left = names(&self.folder.path().join("state"));
        left.remove(&self.folder.path().join("state/bare"));
        left.extend(names(&self.folder.path().join("records")));
        left.retain(|path| path.extension().is_none_or(|extension| extension != "lock"));
        left.extend(
            cgroups().into_iter().filter(|path| path.to_string_lossy().contains(&self.label)),
        );
        left
    }
}

pub(crate) fn engine(
    name: EngineName,
    folder: &Path,
    registry: SandboxRegistry,
) -> Result<Arc<dyn SandboxEngine>, SandboxError> {
    let options = OciOptions {
        runtime: name,
        images: ImageStore::at(images()),
        guest: guest(),
        registry,
        state: folder.join("state"),
        user_namespace: UserNamespace::Private,
    };
    Ok(Arc::new(OciEngine::new(options)?))
}

pub(crate) fn images() -> PathBuf {
    let given = std::env::var_os("MOOTHALL_TEST_IMAGES").map(PathBuf::from);
    given.unwrap_or_else(|| {
        let home = std::env::var_os("HOME").expect("a home");
        Path::new(&home).join(".cache/moothall/images-data/images")
    })
}

pub(crate) fn guest() -> GuestBinary {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guest/moothall-guest");
    let bytes = fs_err::read(&path).expect("the agent; `cargo xtask guest` builds it");
    GuestBinary { path, sha256: Sha256Hex::of(&bytes), bytes: bytes.into() }
}

pub(crate) fn request(program: &str) -> ExecuteRequest {
    ExecuteRequest::python("python", path("main.py"), program)
}

pub(crate) fn path(text: &str) -> GuestPath {
    text.parse().unwrap()
}

pub(crate) fn names(folder: &Path) -> BTreeSet<PathBuf> {
    let Ok(entries) = fs_err::read_dir(folder) else { return BTreeSet::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// All cgroups of moothall on this host.
pub(crate) fn cgroups() -> BTreeSet<PathBuf> {
    let top = Path::new("/sys/fs/cgroup");
    let mut found = names(&top.join("moothall"));
    for hierarchy in names(top) {
        found.extend(names(&hierarchy.join("moothall")));
    }
    found.retain(|path| path.is_dir());
    found
}

/// The host process ids of a sandbox.
pub(crate) fn processes(name: &str) -> BTreeSet<i32> {
    let groups = cgroups().into_iter().filter(|group| group.ends_with(name));
    let members =
        groups.filter_map(|group| fs_err::read_to_string(group.join("cgroup.procs")).ok());
    members
        .flat_map(|pids| pids.lines().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

pub(crate) fn printed(execution: &SandboxExecution) -> &str {
    assert_eq!(execution.exit, ExecutionExit::Exited { code: 0 }, "{}", execution.stderr.text);
    execution.stdout.text.trim()
}
