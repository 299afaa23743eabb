//! The measured engines of this machine, with separate directories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use moothall_core::Sha256Hex;
use moothall_core::sandbox::{
    ExecuteRequest, ExecutionExit, IsolationClass, LimitName, SandboxExecution, SandboxLabels,
    SandboxLimits,
};
use moothall_sandbox::image::{ImageStore, SandboxImage};
use moothall_sandbox::jail::JailCommand;
use moothall_sandbox::microvm::{AcceleratorChoice, MicroVmEngine, MicroVmOptions};
use moothall_sandbox::oci::{OciEngine, OciOptions, UserNamespace};
use moothall_sandbox::{
    EngineFuture, EngineName, GuestBinary, PoolOptions, ProbeReport, ProbedEngine, SandboxEngine,
    SandboxRecord, SandboxRegistry, SandboxRunner, SandboxSpec, StartedSandbox,
};

/// The program that every sandbox runs.
pub(crate) const PROGRAM: &str = "print(1)";
pub(crate) const PRINTED: &str = "1\n";

const IMAGE: &str = "python";

/// The engines and their directories.
pub(crate) struct World {
    pub(crate) microvm: Arc<MicroVmEngine>,
    pub(crate) runsc: Arc<dyn SandboxEngine>,
    pub(crate) runc: Arc<dyn SandboxEngine>,
    /// Without a user namespace, which needs mounts that a bare runtime does not have.
    pub(crate) plain_runc: Arc<dyn SandboxEngine>,
    pub(crate) image: SandboxImage,
    pub(crate) images: PathBuf,
    pub(crate) guest: GuestBinary,
    /// Templates, shared with the tests.
    pub(crate) cache: PathBuf,
    /// Everything else; deleted on drop.
    pub(crate) folder: Folder,
}

/// A directory that is deleted on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        // Short, because runsc creates a socket in it, and a socket path has at most 107 bytes.
        let path = std::env::temp_dir().join(format!("mhb{}", std::process::id()));
        fs_err::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs_err::remove_dir_all(&self.0);
    }
}

impl World {
    pub(crate) async fn open() -> Result<Self> {
        let target = target()?;
        let images = images()?;
        let guest = guest(&target)?;
        let folder = Folder::new()?;
        let cache = target.join("tmp/sandboxes");
        let store = ImageStore::at(&images);
        let image = store.find(IMAGE).context("run `moothall image build python`")?;
        let registry = SandboxRegistry::open(&folder.path().join("records"))?;
        let microvm = MicroVmEngine::open(MicroVmOptions {
            qemu: MicroVmOptions::QEMU.into(),
            jail: JailCommand {
                program: std::env::current_exe()?,
                args: vec![super::JAIL.to_owned()],
            },
            images: store.clone(),
            guest: guest.clone(),
            cache: cache.clone(),
            registry: registry.clone(),
            accel: AcceleratorChoice::Automatic,
        });
        let microvm = Arc::new(microvm.await?);
        let oci = |runtime, user_namespace| -> Result<Arc<dyn SandboxEngine>> {
            Ok(Arc::new(OciEngine::new(OciOptions {
                runtime,
                images: store.clone(),
                guest: guest.clone(),
                registry: registry.clone(),
                state: folder.path().join("oci"),
                user_namespace,
            })?))
        };
        let runsc = oci(EngineName::Runsc, UserNamespace::Private)?;
        let runc = oci(EngineName::Runc, UserNamespace::Private)?;
        let plain_runc = oci(EngineName::Runc, UserNamespace::Host)?;
        Ok(Self { microvm, runsc, runc, plain_runc, image, images, guest, cache, folder })
    }

    /// A microVM engine that boots for every execution instead of using templates.
    pub(crate) fn booted(&self) -> Arc<dyn SandboxEngine> {
        Arc::new(Booted(Arc::clone(&self.microvm)))
    }

    pub(crate) fn cloned(&self) -> Arc<dyn SandboxEngine> {
        Arc::clone(&self.microvm) as Arc<dyn SandboxEngine>
    }

    /// Waits until every sandbox has ended: some end in the background.
    pub(crate) async fn settle(&self) -> Result<()> {
        let patience = Instant::now() + Duration::from_secs(30);
        loop {
            let left = SandboxRegistry::list(&self.folder.path().join("records"))?;
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > patience {
                bail!("{} sandboxes do not end", left.len());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The record of a running sandbox.
    pub(crate) fn record(&self, name: &str) -> Result<SandboxRecord> {
        let records = SandboxRegistry::list(&self.folder.path().join("records"))?;
        records.into_iter().find(|record| record.name == name).context("it is not on record")
    }
}

/// Cargo's target directory: this program is in a profile's directory below it.
pub(crate) fn target() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(own.ancestors().nth(2).context("no target folder")?.to_owned())
}

pub(crate) fn images() -> Result<PathBuf> {
    let folder = match std::env::var_os("MOOTHALL_TEST_IMAGES") {
        Some(folder) => PathBuf::from(folder),
        None => {
            let home = std::env::var_os("HOME").context("there is no HOME")?;
            Path::new(&home).join(".cache/moothall/images-data/images")
        }
    };
    let built = "run `moothall image build python`, or set MOOTHALL_TEST_IMAGES";
    // Container runtimes reject a root that is a symbolic link.
    fs_err::canonicalize(folder).context(built)
}

fn guest(target: &Path) -> Result<GuestBinary> {
    let path = match std::env::var_os("MOOTHALL_TEST_GUEST") {
        Some(path) => PathBuf::from(path),
        None => target.join("guest/moothall-guest"),
    };
    let bytes = fs_err::read(&path).context("run `cargo xtask guest`")?;
    Ok(GuestBinary { path, sha256: Sha256Hex::of(&bytes), bytes: bytes.into() })
}

/// Sandboxes of an engine. Its isolation is not measured here, so it is not probed.
pub(crate) fn sandboxes(engine: Arc<dyn SandboxEngine>, options: PoolOptions) -> SandboxRunner {
    let report = ProbeReport {
        engine: engine.name(),
        version: engine.version().to_owned(),
        class: engine.class(),
        self_tests: Vec::new(),
        held_by: engine.enforced_limits(),
        start_ms: 0,
        run_ms: 0,
    };
    SandboxRunner::new(ProbedEngine { engine, report }, options)
}

pub(crate) fn spec() -> SandboxSpec {
    SandboxSpec { image: IMAGE.to_owned(), limits: SandboxLimits::default() }
}

pub(crate) fn labels() -> SandboxLabels {
    SandboxLabels(BTreeMap::from([("run".to_owned(), "bench".to_owned())]))
}

/// The program in the form of a typical user request: a file and an interpreter that runs it.
pub(crate) fn request() -> Result<ExecuteRequest> {
    Ok(ExecuteRequest {
        image: IMAGE.to_owned(),
        sources: BTreeMap::from([("main.py".parse()?, PROGRAM.to_owned())]),
        inputs: BTreeMap::new(),
        argv: argv(),
        env: BTreeMap::new(),
        stdin: String::new(),
        limits: SandboxLimits::default(),
        collect: false,
    })
}

pub(crate) fn argv() -> Vec<String> {
    ["python3", "main.py"].map(ToOwned::to_owned).to_vec()
}

/// Fails if the execution did not produce the expected result.
pub(crate) fn check(execution: &SandboxExecution) -> Result<()> {
    if execution.exit != (ExecutionExit::Exited { code: 0 }) || execution.stdout.text != PRINTED {
        bail!(
            "{}: {} and not {PRINTED:?}: {:?} {:?}",
            execution.attestation.engine,
            execution.exit,
            execution.stdout.text,
            execution.stderr.text
        );
    }
    Ok(())
}

#[derive(Debug)]
struct Booted(Arc<MicroVmEngine>);

impl SandboxEngine for Booted {
    fn name(&self) -> EngineName {
        self.0.name()
    }

    fn version(&self) -> &str {
        self.0.version()
    }

    fn class(&self) -> IsolationClass {
        self.0.class()
    }

    fn enforced_limits(&self) -> BTreeMap<LimitName, String> {
        self.0.enforced_limits()
    }

    fn footprint_bytes(&self, spec: &SandboxSpec) -> u64 {
        self.0.footprint_bytes(spec)
    }

    fn is_worth_pooling(&self) -> bool {
        false
    }

    fn start<'a>(
        &'a self,
        spec: &'a SandboxSpec,
        labels: &'a SandboxLabels,
    ) -> EngineFuture<'a, StartedSandbox> {
        Box::pin(self.0.start_cold(spec, labels))
    }
}
