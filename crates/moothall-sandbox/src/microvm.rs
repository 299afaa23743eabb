//! The `microvm` engine: QEMU's `microvm` machine, on KVM or emulated, jailed, and cloned from a
//! template that was booted once.
//!
//! ```text
//! start ─► template ─► in memory ─────────────────────┐
//!             ├─ on disk  (template_cache.rs)  60 ms ─┤
//!             └─ boot     (template.rs)          6 s ─┤
//!                                                     ▼
//!          clone: jail ─► QEMU ─► load state ─► resume ─► reseed ─► sandbox     100 ms
//! ```
//!
//! KVM and emulation differ in speed and isolation strength but use the same code. KVM is tested by
//! booting a guest, because an existing device does not mean that it works.

mod host_info;
mod machine;
mod memory;
mod qmp;
#[cfg(test)]
#[path = "microvm/real_microvm_tests.rs"]
pub(crate) mod real_microvm;
mod template;
mod template_cache;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::{Duration, Instant};

use moothall_core::Sha256Hex;
use moothall_core::sandbox::{IsolationClass, LimitName, SandboxLabels, SandboxLimits, SelfTest};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::timeout;

use self::host_info::{HostInfo, ProgramFile};
use self::machine::{QemuLauncher, QemuMachine, QemuStderrTail};
use self::template::{MicroVmTemplate, TemplateRecipe};
use self::template_cache::TemplateCache;
use crate::image::{ImageStore, SandboxImage};
use crate::jail::{JailCommand, JailReport};
use crate::spawner::ChildProcess;
use crate::{
    CleanupList, EngineFuture, EngineName, GuestBinary, ProcessId, RecordGuard, SandboxEngine,
    SandboxError, SandboxHandle, SandboxRegistry, SandboxSpec, StartedSandbox,
};

/// Memory that QEMU uses in addition to the guest's.
const QEMU_BYTES: u64 = 50 << 20;

/// How long to wait for a killed QEMU to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct MicroVmOptions {
    /// QEMU: a path, or a name to search for in the standard program folders. Usually
    /// [`MicroVmOptions::QEMU`].
    pub qemu: PathBuf,
    /// Command that starts the jail.
    pub jail: JailCommand,
    pub images: ImageStore,
    /// The agent binary.
    pub guest: GuestBinary,
    /// Folder for cached templates. Created if missing.
    pub cache: PathBuf,
    /// Registry for sandbox records.
    pub registry: SandboxRegistry,
    /// How guest code is executed.
    pub accel: AcceleratorChoice,
}

impl MicroVmOptions {
    /// Default name of the QEMU binary.
    pub const QEMU: &str = "qemu-system-x86_64";
}

/// Requested accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceleratorChoice {
    /// KVM if it works, otherwise emulation.
    Automatic,
    /// Exactly this accelerator.
    Only(VmAccelerator),
}

/// QEMU accelerator: how guest code is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VmAccelerator {
    /// Linux KVM, on the CPU's virtualization support.
    Kvm,
    /// QEMU's emulator.
    Tcg,
}

impl VmAccelerator {
    /// The name QEMU uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }
}

#[derive(Debug)]
pub struct MicroVmEngine {
    images: ImageStore,
    guest: GuestBinary,
    registry: SandboxRegistry,
    launcher: QemuLauncher,
    cache: TemplateCache,
    accel: VmAccelerator,
    version: String,
    tsc_khz: u64,
    /// Other properties of this host that templates depend on.
    machine: serde_json::Value,
    /// Least recently requested first.
    templates: StdMutex<Vec<(Sha256Hex, Place)>>,
}

/// Limit of templates in memory, because each takes up to 300 MB. Sandboxes keep using an evicted
/// one.
const TEMPLATES_IN_MEMORY: usize = 4;

/// Slot for a template in memory. The holder of the lock builds it.
type Place = Arc<Mutex<Option<Arc<MicroVmTemplate>>>>;

impl MicroVmEngine {
    /// Finds QEMU, tests KVM and opens the template cache. Results are cached until the next boot
    /// of the host.
    pub async fn open(options: MicroVmOptions) -> Result<Self, SandboxError> {
        let cache = TemplateCache::open(&options.cache)?;
        let info_file = options.cache.join("microvm-host.json");
        let (mut info, qemu) =
            HostInfo::load_or_measure(&info_file, &options.qemu, &options.jail).await?;
        let accel = match options.accel {
            AcceleratorChoice::Only(accel) => accel,
            AcceleratorChoice::Automatic if info.kvm == Some(true) => VmAccelerator::Kvm,
            AcceleratorChoice::Automatic => VmAccelerator::Tcg,
        };
        let launcher = QemuLauncher {
            qemu: qemu.path.clone(),
            jail: options.jail,
            restrictions: info.walls.clone(),
        };
        let mut engine = Self {
            images: options.images,
            guest: options.guest,
            registry: options.registry,
            launcher,
            cache,
            accel,
            version: String::new(),
            tsc_khz: info.tsc_khz,
            machine: json!(null),
            templates: StdMutex::default(),
        };
        engine.set_accelerator(accel, &info, &qemu);
        if options.accel == AcceleratorChoice::Automatic
            && info.kvm.is_none()
            && host_info::kvm_is_plausible()
        {
            engine.set_accelerator(VmAccelerator::Kvm, &info, &qemu);
            match engine.try_boot().await {
                Ok(booted) => {
                    info.kvm = booted.then_some(true);
                }
                Err(error) => {
                    tracing::warn!(%error, "KVM is available but does not work; falling back to emulation");
                    info.kvm = Some(false);
                }
            }
            info.save(&info_file);
            if info.kvm != Some(true) {
                engine.set_accelerator(VmAccelerator::Tcg, &info, &qemu);
            }
        }
        Ok(engine)
    }

    pub fn accel(&self) -> VmAccelerator {
        self.accel
    }

    /// The restrictions that every QEMU process runs under.
    pub fn restrictions(&self) -> &JailReport {
        &self.launcher.restrictions
    }

    /// Prepares the template for `spec`, so the next start only clones it.
    pub async fn prepare(&self, spec: &SandboxSpec) -> Result<(), SandboxError> {
        let image = self.images.find(&spec.image)?;
        let recipe = self.recipe(&image, &spec.limits)?;
        self.template(&image, &recipe, spec).await.map(|_| ())
    }

    /// Boots a sandbox without a template, to measure how much time a template saves.
    pub async fn start_cold(
        &self,
        spec: &SandboxSpec,
        labels: &SandboxLabels,
    ) -> Result<StartedSandbox, SandboxError> {
        let image = self.images.find(&spec.image)?;
        let machine = self.boot(&image, &spec.limits).await?;
        self.register_sandbox(machine, spec, labels, image.sha256)
    }

    async fn boot(
        &self,
        image: &SandboxImage,
        limits: &SandboxLimits,
    ) -> Result<QemuMachine, SandboxError> {
        let recipe = self.recipe(image, limits)?;
        let ram = template::blank_ram(&recipe)?;
        let root = template::open_root(image)?;
        let root = root.as_deref();
        let mut machine =
            template::boot(&self.launcher, &recipe, image, &self.guest, &ram, root).await?;
        machine.session.refresh().await?;
        Ok(machine)
    }

    /// Boots a guest as a test. Returns `false` if there is no image to boot.
    async fn try_boot(&self) -> Result<bool, SandboxError> {
        let images = self.images.list()?;
        let Some(image) = images.into_iter().find_map(|listed| listed.image.ok()) else {
            return Ok(false);
        };
        self.boot(&image, &SandboxLimits::default()).await.map(|_| true)
    }

    /// Sets the accelerator and everything derived from it.
    fn set_accelerator(&mut self, accel: VmAccelerator, info: &HostInfo, qemu: &ProgramFile) {
        let restrictions = &info.walls;
        self.accel = accel;
        self.version = format!(
            "{} ({}, user {}, landlock {})",
            info.version,
            accel.as_str(),
            restrictions.uid,
            restrictions.landlock_abi
        );
        let cpu = match accel {
            VmAccelerator::Kvm => host_info::cpu_kind().to_string(),
            VmAccelerator::Tcg => "emulated".to_owned(),
        };
        self.machine = json!({ "qemu": qemu, "version": info.version, "cpu": cpu });
    }

    fn recipe(
        &self,
        image: &SandboxImage,
        limits: &SandboxLimits,
    ) -> Result<TemplateRecipe, SandboxError> {
        TemplateRecipe::new(self.accel, self.tsc_khz, &self.machine, image, &self.guest, limits)
    }

    fn slot(&self, recipe: &TemplateRecipe) -> Place {
        let mut slots = self.templates.lock().unwrap_or_else(PoisonError::into_inner);
        let at = slots.iter().position(|(key, _)| *key == recipe.key);
        let slot = at.map(|at| slots.remove(at)).unwrap_or_else(|| (recipe.key, Place::default()));
        if slots.len() >= TEMPLATES_IN_MEMORY {
            slots.remove(0);
        }
        Arc::clone(&slots.push_mut(slot).1)
    }

    /// Returns the template for a recipe from memory or disk, or builds it.
    async fn template(
        &self,
        image: &SandboxImage,
        recipe: &TemplateRecipe,
        spec: &SandboxSpec,
    ) -> Result<Arc<MicroVmTemplate>, SandboxError> {
        let slot = self.slot(recipe);
        let mut slot = slot.lock().await;
        if let Some(template) = &*slot {
            return Ok(Arc::clone(template));
        }
        let template = match self.cache.load(recipe, image).await {
            Some(template) => Arc::new(template),
            None => self.make_template(image, recipe, spec).await?,
        };
        *slot = Some(Arc::clone(&template));
        Ok(template)
    }

    async fn make_template(
        &self,
        image: &SandboxImage,
        recipe: &TemplateRecipe,
        spec: &SandboxSpec,
    ) -> Result<Arc<MicroVmTemplate>, SandboxError> {
        let lock = self.cache.lock(recipe).await?;
        // The previous holder of the lock may have built it.
        if let Some(template) = self.cache.load(recipe, image).await {
            return Ok(Arc::new(template));
        }
        let started = Instant::now();
        let template =
            MicroVmTemplate::build(&self.launcher, recipe, image, &self.guest, spec).await?;
        let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(image = image.name, elapsed_ms, "built a microVM template");
        let template = Arc::new(template);
        self.cache.store(recipe, &template, lock).await;
        Ok(template)
    }

    /// Removes a broken template from memory and disk.
    async fn discard(&self, recipe: &TemplateRecipe, template: &Arc<MicroVmTemplate>) {
        let slot = self.slot(recipe);
        let mut slot = slot.lock().await;
        if slot.as_ref().is_some_and(|current| Arc::ptr_eq(current, template)) {
            *slot = None;
            self.cache.remove(recipe);
        }
    }

    async fn clone_for(
        &self,
        spec: &SandboxSpec,
        labels: &SandboxLabels,
    ) -> Result<StartedSandbox, SandboxError> {
        let image = self.images.find(&spec.image)?;
        let recipe = self.recipe(&image, &spec.limits)?;
        let template = self.template(&image, &recipe, spec).await?;
        let machine = match template.clone_machine(&self.launcher).await {
            Err(error) if !template.proven.load(Ordering::Relaxed) => {
                tracing::warn!(%error, "discarding a cached template that does not start");
                self.discard(&recipe, &template).await;
                let template = self.template(&image, &recipe, spec).await?;
                template.clone_machine(&self.launcher).await?
            }
            other => other?,
        };
        self.register_sandbox(machine, spec, labels, template.image_sha256)
    }

    fn register_sandbox(
        &self,
        machine: QemuMachine,
        spec: &SandboxSpec,
        labels: &SandboxLabels,
        image_sha256: Sha256Hex,
    ) -> Result<StartedSandbox, SandboxError> {
        let QemuMachine { process, session, stderr_tail, .. } = machine;
        let name = self.registry.name_for(labels);
        // QEMU dies with this process. The record is for operators, and lets the reaper clean up if
        // that fails.
        let pid = i32::try_from(process.id()).ok();
        let processes = pid.and_then(ProcessId::of).into_iter().collect();
        let cleanup = CleanupList { processes, ..CleanupList::default() };
        let (engine, class) = (self.name(), self.class());
        let record = self.registry.record(&name, engine, class, &spec.image, labels, cleanup)?;
        let end = Box::new(MicroVmHandle { name, process, stderr_tail, record: Some(record) });
        Ok(StartedSandbox { session, end, image_sha256, guest_sha256: self.guest.sha256 })
    }
}

impl SandboxEngine for MicroVmEngine {
    fn name(&self) -> EngineName {
        EngineName::Microvm
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn class(&self) -> IsolationClass {
        match self.accel {
            VmAccelerator::Kvm => IsolationClass::HardwareVm,
            VmAccelerator::Tcg => IsolationClass::EmulatedVm,
        }
    }

    fn enforced_limits(&self) -> BTreeMap<LimitName, String> {
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
        self.restrictions().self_tests()
    }

    fn footprint_bytes(&self, spec: &SandboxSpec) -> u64 {
        let translated = match self.accel {
            VmAccelerator::Kvm => 0,
            VmAccelerator::Tcg => machine::TRANSLATED_MIB << 20,
        };
        template::ram_bytes(spec.limits.memory_bytes)
            .saturating_add(QEMU_BYTES)
            .saturating_add(translated)
    }

    fn is_worth_pooling(&self) -> bool {
        true
    }

    fn start<'a>(
        &'a self,
        spec: &'a SandboxSpec,
        labels: &'a SandboxLabels,
    ) -> EngineFuture<'a, StartedSandbox> {
        Box::pin(self.clone_for(spec, labels))
    }
}

/// Ends a virtual machine. Dropping it kills QEMU.
#[derive(Debug)]
struct MicroVmHandle {
    name: String,
    process: ChildProcess,
    stderr_tail: QemuStderrTail,
    record: Option<RecordGuard>,
}

impl SandboxHandle for MicroVmHandle {
    fn name(&self) -> &str {
        &self.name
    }

    fn assign(&mut self, labels: &SandboxLabels) {
        if let Some(record) = &mut self.record {
            record.assign(labels);
        }
    }

    /// The guest's kernel enforces the limit, so the agent reports it.
    fn was_out_of_memory(&mut self) -> bool {
        false
    }

    fn stderr_tail(&mut self) -> String {
        self.stderr_tail.text()
    }

    fn finish(mut self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            self.process.kill();
            match timeout(EXIT_TIMEOUT, self.process.wait()).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(sandbox = self.name, %error, "cannot wait for QEMU to exit")
                }
                Err(_) => {
                    tracing::warn!(sandbox = self.name, "QEMU did not exit after it was killed")
                }
            }
        })
    }
}

impl Drop for MicroVmHandle {
    fn drop(&mut self) {
        // SIGKILL cannot be ignored, so nothing is left for the reaper.
        self.process.kill();
        if let Some(record) = self.record.take() {
            record.remove();
        }
    }
}
