//! The engine `microvm`: QEMU's smallest machine, on KVM or emulated, jailed, and cloned from a
//! template that was booted once.
//!
//! ```text
//! start ─► template ─► in memory ─────────────┐
//!             ├─ on disk  (shelf.rs)  60 ms ──┤
//!             └─ boot     (template.rs)  6 s ─┤
//!                                             ▼
//!          clone: jail ─► QEMU ─► load state ─► go on ─► reseed ─► vessel     100 ms
//! ```
//!
//! KVM or emulation makes a difference of speed and of how strong the wall is, and none in how it
//! is done. Whether KVM works is found out by booting: the device alone proves nothing.

mod host;
mod machine;
mod memory;
mod qmp;
#[cfg(test)]
#[path = "microvm/real_microvm_tests.rs"]
pub(crate) mod real_microvm;
mod shelf;
mod template;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::{Duration, Instant};

use moothall_core::Sha256Hex;
use moothall_core::sandbox::{IsolationClass, Labels, LimitName, Limits, SelfTest};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::timeout;

use self::host::{Notes, Program};
use self::machine::{LastWords, Launcher, Machine};
use self::shelf::Shelf;
use self::template::{Recipe, Template};
use crate::image::{Image, ImageStore};
use crate::jail::{JailCommand, JailReport};
use crate::spawner::Process;
use crate::{
    Engine, EngineFuture, EngineName, GuestBinary, Leaves, ProcessId, RecordGuard, Registry,
    SandboxError, Spec, Vessel, VesselEnd,
};

/// What QEMU itself takes beside its guest's memory.
const QEMU_BYTES: u64 = 50 << 20;

/// How long a killed QEMU may take to be gone.
const DYING: Duration = Duration::from_secs(5);

/// What the engine needs to know.
#[derive(Debug, Clone)]
pub struct MicroVmOptions {
    /// QEMU: a path, or a name that is looked for where programs are installed. Usually
    /// [`MicroVmOptions::QEMU`].
    pub qemu: PathBuf,
    /// How the jail is started.
    pub jail: JailCommand,
    /// Where images are.
    pub images: ImageStore,
    /// The agent.
    pub guest: GuestBinary,
    /// A folder for what takes long to make: templates. It is made where it is missing.
    pub cache: PathBuf,
    /// Where sandboxes are written down.
    pub registry: Registry,
    /// What runs the guest's instructions.
    pub accel: AccelChoice,
}

impl MicroVmOptions {
    /// The usual name of QEMU.
    pub const QEMU: &str = "qemu-system-x86_64";
}

/// What is wanted to run a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccelChoice {
    /// KVM where it works, and emulation elsewhere.
    Automatic,
    /// This and nothing else.
    Only(Accel),
}

/// What runs a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accel {
    /// The CPU, by Linux's KVM.
    Kvm,
    /// QEMU's emulator.
    Tcg,
}

impl Accel {
    /// The word as QEMU knows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }
}

/// The engine.
#[derive(Debug)]
pub struct MicroVm {
    images: ImageStore,
    guest: GuestBinary,
    registry: Registry,
    launcher: Launcher,
    shelf: Shelf,
    accel: Accel,
    version: String,
    tsc_khz: u64,
    /// What else of this host a template depends on.
    machine: serde_json::Value,
    templates: StdMutex<BTreeMap<Sha256Hex, Place>>,
}

/// Where a template is or will be. Whoever holds the lock makes it.
type Place = Arc<Mutex<Option<Arc<Template>>>>;

impl MicroVm {
    /// Finds QEMU, looks whether KVM works, and opens the cache. Nothing is started but what finds
    /// that out, and that is remembered until the next boot.
    pub async fn open(options: MicroVmOptions) -> Result<Self, SandboxError> {
        let shelf = Shelf::open(&options.cache)?;
        let notes_file = options.cache.join("microvm-host.json");
        let (mut notes, qemu) = Notes::take(&notes_file, &options.qemu, &options.jail).await?;
        let accel = match options.accel {
            AccelChoice::Only(accel) => accel,
            AccelChoice::Automatic if notes.kvm == Some(true) => Accel::Kvm,
            AccelChoice::Automatic => Accel::Tcg,
        };
        let launcher =
            Launcher { qemu: qemu.path.clone(), jail: options.jail, walls: notes.walls.clone() };
        let mut engine = Self {
            images: options.images,
            guest: options.guest,
            registry: options.registry,
            launcher,
            shelf,
            accel,
            version: String::new(),
            tsc_khz: notes.tsc_khz,
            machine: json!(null),
            templates: StdMutex::default(),
        };
        engine.settle(accel, &notes, &qemu);
        if options.accel == AccelChoice::Automatic
            && notes.kvm.is_none()
            && host::kvm_is_plausible()
        {
            engine.settle(Accel::Kvm, &notes, &qemu);
            match engine.try_boot().await {
                Ok(tried) => {
                    notes.kvm = tried.then_some(true);
                }
                Err(error) => {
                    tracing::warn!(%error, "KVM is there and does not work; guests are emulated");
                    notes.kvm = Some(false);
                }
            }
            notes.keep(&notes_file);
            if notes.kvm != Some(true) {
                engine.settle(Accel::Tcg, &notes, &qemu);
            }
        }
        Ok(engine)
    }

    /// What runs the guests' instructions.
    pub fn accel(&self) -> Accel {
        self.accel
    }

    /// The walls around every QEMU.
    pub fn walls(&self) -> &JailReport {
        &self.launcher.walls
    }

    /// Makes the template for this spec ready, so that the next start only clones.
    pub async fn prepare(&self, spec: &Spec) -> Result<(), SandboxError> {
        let image = self.images.find(&spec.image)?;
        let recipe = self.recipe(&image, &spec.limits)?;
        self.template(&image, &recipe, spec).await.map(|_| ())
    }

    /// Boots a sandbox from its kernel, without a template: for measuring what a template is worth.
    pub async fn start_cold(&self, spec: &Spec, labels: &Labels) -> Result<Vessel, SandboxError> {
        let image = self.images.find(&spec.image)?;
        let machine = self.boot(&image, &spec.limits).await?;
        self.vessel(machine, spec, labels, image.sha256)
    }

    async fn boot(&self, image: &Image, limits: &Limits) -> Result<Machine, SandboxError> {
        let recipe = self.recipe(image, limits)?;
        let ram = template::blank_ram(&recipe)?;
        let root = template::open_root(image)?;
        let root = root.as_deref();
        let mut machine =
            template::boot(&self.launcher, &recipe, image, &self.guest, &ram, root).await?;
        template::freshen(&mut machine).await?;
        Ok(machine)
    }

    /// Whether a guest comes up; `false` where there is no image to try with.
    async fn try_boot(&self) -> Result<bool, SandboxError> {
        let images = self.images.list()?;
        let Some(image) = images.into_iter().find_map(|listed| listed.image.ok()) else {
            return Ok(false);
        };
        self.boot(&image, &Limits::default()).await.map(|_| true)
    }

    /// Decides what runs the guests' instructions, and everything that follows from it.
    fn settle(&mut self, accel: Accel, notes: &Notes, qemu: &Program) {
        let walls = &notes.walls;
        self.accel = accel;
        self.version = format!(
            "{} ({}, user {}, landlock {})",
            notes.version,
            accel.as_str(),
            walls.uid,
            walls.landlock_abi
        );
        let cpu = match accel {
            Accel::Kvm => host::cpu_kind().to_string(),
            Accel::Tcg => "emulated".to_owned(),
        };
        self.machine = json!({ "qemu": qemu, "version": notes.version, "cpu": cpu });
    }

    fn recipe(&self, image: &Image, limits: &Limits) -> Result<Recipe, SandboxError> {
        Recipe::new(self.accel, self.tsc_khz, &self.machine, image, &self.guest, limits)
    }

    fn place(&self, recipe: &Recipe) -> Place {
        let mut places = self.templates.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(places.entry(recipe.key).or_default())
    }

    /// The template for a recipe: from memory, from disk, or made now.
    async fn template(
        &self,
        image: &Image,
        recipe: &Recipe,
        spec: &Spec,
    ) -> Result<Arc<Template>, SandboxError> {
        let place = self.place(recipe);
        let mut place = place.lock().await;
        if let Some(template) = &*place {
            return Ok(Arc::clone(template));
        }
        let template = match self.shelf.load(recipe, image).await {
            Some(template) => Arc::new(template),
            None => self.make_template(image, recipe, spec).await?,
        };
        *place = Some(Arc::clone(&template));
        Ok(template)
    }

    async fn make_template(
        &self,
        image: &Image,
        recipe: &Recipe,
        spec: &Spec,
    ) -> Result<Arc<Template>, SandboxError> {
        let turn = self.shelf.turn(recipe).await?;
        // Whoever had the turn before may have made it.
        if let Some(template) = self.shelf.load(recipe, image).await {
            return Ok(Arc::new(template));
        }
        let started = Instant::now();
        let template = Template::build(&self.launcher, recipe, image, &self.guest, spec).await?;
        let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(image = image.name, elapsed_ms, "a template was made");
        let template = Arc::new(template);
        self.shelf.keep(recipe, &template, turn).await;
        Ok(template)
    }

    /// Forgets a template that is no good, here and on disk.
    async fn discard(&self, recipe: &Recipe, template: &Arc<Template>) {
        let place = self.place(recipe);
        let mut place = place.lock().await;
        if place.as_ref().is_some_and(|current| Arc::ptr_eq(current, template)) {
            *place = None;
            self.shelf.remove(recipe);
        }
    }

    async fn clone_for(&self, spec: &Spec, labels: &Labels) -> Result<Vessel, SandboxError> {
        let image = self.images.find(&spec.image)?;
        let recipe = self.recipe(&image, &spec.limits)?;
        let template = self.template(&image, &recipe, spec).await?;
        let machine = match template.machine(&self.launcher).await {
            Err(error) if !template.proven.load(Ordering::Relaxed) => {
                tracing::warn!(%error, "a template from disk does not come to life");
                self.discard(&recipe, &template).await;
                let template = self.template(&image, &recipe, spec).await?;
                template.machine(&self.launcher).await?
            }
            other => other?,
        };
        self.vessel(machine, spec, labels, template.image_sha256)
    }

    fn vessel(
        &self,
        machine: Machine,
        spec: &Spec,
        labels: &Labels,
        image_sha256: Sha256Hex,
    ) -> Result<Vessel, SandboxError> {
        let Machine { process, session, words, .. } = machine;
        let name = self.registry.name_for(labels);
        // It dies with us; the record is for people who look, and for the reaper as a second net.
        let pid = i32::try_from(process.id()).ok();
        let processes = pid.and_then(ProcessId::of).into_iter().collect();
        let leaves = Leaves { processes, ..Leaves::default() };
        let (engine, class) = (self.name(), self.class());
        let record = self.registry.record(&name, engine, class, &spec.image, labels, leaves)?;
        let end = Box::new(End { name, process, words, record: Some(record) });
        Ok(Vessel { session, end, image_sha256, guest_sha256: self.guest.sha256 })
    }
}

impl Engine for MicroVm {
    fn name(&self) -> EngineName {
        EngineName::Microvm
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn class(&self) -> IsolationClass {
        match self.accel {
            Accel::Kvm => IsolationClass::HardwareVm,
            Accel::Tcg => IsolationClass::EmulatedVm,
        }
    }

    fn holds(&self) -> BTreeMap<LimitName, String> {
        [
            (LimitName::Wall, "guest agent, host"),
            (LimitName::CpuTime, "guest rlimit"),
            (LimitName::CpuShare, "guest cgroup"),
            (LimitName::Memory, "guest cgroup, size of the machine"),
            (LimitName::Pids, "guest cgroup"),
            (LimitName::Output, "guest agent, host"),
            (LimitName::FileSize, "guest rlimit"),
            (LimitName::Disk, "guest tmpfs"),
            (LimitName::OpenFiles, "guest rlimit"),
        ]
        .map(|(limit, holder)| (limit, holder.to_owned()))
        .into()
    }

    fn self_tests(&self) -> Vec<SelfTest> {
        self.walls().self_tests()
    }

    fn footprint_bytes(&self, spec: &Spec) -> u64 {
        let translated = match self.accel {
            Accel::Kvm => 0,
            Accel::Tcg => machine::TRANSLATED_MIB << 20,
        };
        template::ram_bytes(spec.limits.memory_bytes)
            .saturating_add(QEMU_BYTES)
            .saturating_add(translated)
    }

    fn is_worth_pooling(&self) -> bool {
        true
    }

    fn start<'a>(&'a self, spec: &'a Spec, labels: &'a Labels) -> EngineFuture<'a, Vessel> {
        Box::pin(self.clone_for(spec, labels))
    }
}

/// The end of a virtual machine. Dropping it kills QEMU.
#[derive(Debug)]
struct End {
    name: String,
    process: Process,
    words: LastWords,
    record: Option<RecordGuard>,
}

impl VesselEnd for End {
    fn name(&self) -> &str {
        &self.name
    }

    fn assign(&mut self, labels: &Labels) {
        if let Some(record) = &mut self.record {
            record.assign(labels);
        }
    }

    /// The agent sees it: the guest's kernel holds the limit.
    fn was_out_of_memory(&mut self) -> bool {
        false
    }

    fn last_words(&mut self) -> String {
        self.words.text()
    }

    fn finish(mut self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            self.process.kill();
            match timeout(DYING, self.process.wait()).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(sandbox = self.name, %error, "QEMU's end is unseen")
                }
                Err(_) => tracing::warn!(sandbox = self.name, "QEMU does not die"),
            }
        })
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // Nothing survives this signal, so nothing is left for the reaper.
        self.process.kill();
        if let Some(record) = self.record.take() {
            record.remove();
        }
    }
}
