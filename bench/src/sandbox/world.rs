//! What is measured: the engines of this machine, with folders of their own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use moothall_core::Sha256Hex;
use moothall_core::sandbox::{
    ExecuteRequest, Execution, Exit, IsolationClass, Labels, LimitName, Limits,
};
use moothall_sandbox::image::{Image, ImageStore};
use moothall_sandbox::jail::JailCommand;
use moothall_sandbox::microvm::{AccelChoice, MicroVm, MicroVmOptions};
use moothall_sandbox::oci::{Oci, OciOptions, UserNamespace};
use moothall_sandbox::{
    Engine, EngineFuture, EngineName, GuestBinary, PoolOptions, ProbeReport, ProbedEngine, Record,
    Registry, Sandboxes, Spec, Vessel,
};

/// What is run everywhere.
pub(super) const PROGRAM: &str = "print(1)";
pub(super) const PRINTED: &str = "1\n";

const IMAGE: &str = "python";

/// The engines and where they keep things.
pub(super) struct World {
    pub(super) microvm: Arc<MicroVm>,
    pub(super) runsc: Arc<dyn Engine>,
    pub(super) runc: Arc<dyn Engine>,
    /// Without a user namespace, whose mounts a runtime alone does not have.
    pub(super) plain_runc: Arc<dyn Engine>,
    pub(super) image: Image,
    pub(super) images: PathBuf,
    pub(super) guest: GuestBinary,
    /// Templates, shared with the tests.
    pub(super) cache: PathBuf,
    /// Everything else; gone with this value.
    pub(super) folder: Folder,
}

/// A folder that goes with its value.
pub(super) struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        // Short: runsc has a socket in it, and a socket's path has at most 107 bytes.
        let path = std::env::temp_dir().join(format!("mhb{}", std::process::id()));
        fs_err::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs_err::remove_dir_all(&self.0);
    }
}

impl World {
    pub(super) async fn open() -> Result<Self> {
        let target = target()?;
        let images = images()?;
        let guest = guest(&target)?;
        let folder = Folder::new()?;
        let cache = target.join("tmp/sandboxes");
        let store = ImageStore::at(&images);
        let image = store.find(IMAGE).context("run `moothall image build python`")?;
        let registry = Registry::open(&folder.path().join("records"))?;
        let microvm = MicroVm::open(MicroVmOptions {
            qemu: MicroVmOptions::QEMU.into(),
            jail: JailCommand {
                program: std::env::current_exe()?,
                args: vec![super::JAIL.to_owned()],
            },
            images: store.clone(),
            guest: guest.clone(),
            cache: cache.clone(),
            registry: registry.clone(),
            accel: AccelChoice::Automatic,
        });
        let microvm = Arc::new(microvm.await?);
        let oci = |runtime, user_namespace| -> Result<Arc<dyn Engine>> {
            Ok(Arc::new(Oci::new(OciOptions {
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

    /// A microVM that is booted for every execution, as if there were no templates.
    pub(super) fn booted(&self) -> Arc<dyn Engine> {
        Arc::new(Booted(Arc::clone(&self.microvm)))
    }

    pub(super) fn cloned(&self) -> Arc<dyn Engine> {
        Arc::clone(&self.microvm) as Arc<dyn Engine>
    }

    /// Waits until every sandbox is gone: some end in the background.
    pub(super) async fn settle(&self) -> Result<()> {
        let patience = Instant::now() + Duration::from_secs(30);
        loop {
            let left = Registry::list(&self.folder.path().join("records"))?;
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > patience {
                bail!("{} sandboxes do not end", left.len());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// What is written down about a sandbox that runs.
    pub(super) fn record(&self, name: &str) -> Result<Record> {
        let records = Registry::list(&self.folder.path().join("records"))?;
        records.into_iter().find(|record| record.name == name).context("it is not on record")
    }
}

/// The folder that cargo builds into: this program is in a profile's folder below it.
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
    // Container runtimes refuse a root behind a link.
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

/// Sandboxes of an engine. What it is worth is not what is measured here, so it is not probed.
pub(super) fn sandboxes(engine: Arc<dyn Engine>, options: PoolOptions) -> Sandboxes {
    let report = ProbeReport {
        engine: engine.name(),
        version: engine.version().to_owned(),
        class: engine.class(),
        self_tests: Vec::new(),
        held_by: engine.holds(),
        start_ms: 0,
        run_ms: 0,
    };
    Sandboxes::new(ProbedEngine { engine, report }, options)
}

pub(super) fn spec() -> Spec {
    Spec { image: IMAGE.to_owned(), limits: Limits::default() }
}

pub(super) fn labels() -> Labels {
    Labels(BTreeMap::from([("run".to_owned(), "bench".to_owned())]))
}

/// The program as a user's would come: a file, and an interpreter that runs it.
pub(super) fn request() -> Result<ExecuteRequest> {
    Ok(ExecuteRequest {
        image: IMAGE.to_owned(),
        sources: BTreeMap::from([("main.py".parse()?, PROGRAM.to_owned())]),
        inputs: BTreeMap::new(),
        argv: argv(),
        env: BTreeMap::new(),
        stdin: String::new(),
        limits: Limits::default(),
        collect: false,
    })
}

pub(super) fn argv() -> Vec<String> {
    ["python3", "main.py"].map(ToOwned::to_owned).to_vec()
}

/// Refuses an execution that did not do what it should.
pub(super) fn check(execution: &Execution) -> Result<()> {
    if execution.exit != (Exit::Exited { code: 0 }) || execution.stdout.text != PRINTED {
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

/// See [`World::booted`].
#[derive(Debug)]
struct Booted(Arc<MicroVm>);

impl Engine for Booted {
    fn name(&self) -> EngineName {
        self.0.name()
    }

    fn version(&self) -> &str {
        self.0.version()
    }

    fn class(&self) -> IsolationClass {
        self.0.class()
    }

    fn holds(&self) -> BTreeMap<LimitName, String> {
        self.0.holds()
    }

    fn footprint_bytes(&self, spec: &Spec) -> u64 {
        self.0.footprint_bytes(spec)
    }

    fn is_worth_pooling(&self) -> bool {
        false
    }

    fn start<'a>(&'a self, spec: &'a Spec, labels: &'a Labels) -> EngineFuture<'a, Vessel> {
        Box::pin(self.0.start_cold(spec, labels))
    }
}
