//! A virtual machine that is booted once and then cloned.
//!
//! Its RAM is a sealed memory file that clones map copy-on-write; the rest of its state takes 60
//! kB. A clone costs a twentieth of a boot, and an interpreter started in the template is already
//! running in every clone.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use moothall_core::guest::{ExitCause, GuestRunRequest};
use moothall_core::sandbox::SandboxLimits;
use moothall_core::{Sha256Hex, canonical_json};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;

use super::machine::{QemuConfig, QemuLauncher, QemuMachine, QemuStartMode};
use super::{VmAccelerator, memory};
use crate::image::{SandboxImage, init_archive};
use crate::session::SessionRunEnd;
use crate::{GuestBinary, SandboxError, SandboxSpec};

/// Increment this when templates of older versions become incompatible.
const FORMAT: u32 = 1;

/// Memory for the kernel, the agent and the interpreter, in addition to the program's limit.
const RAM_OVERHEAD: u64 = 96 << 20;

/// Guest memory is rounded up to a multiple of this, to limit the number of templates.
const RAM_STEP: u64 = 32 << 20;

/// Size limit of a kernel or initramfs.
const MAX_PART_BYTES: u64 = 256 << 20;

/// Boot time limit for an emulated machine on a busy host.
const EMULATED_BOOT_TIMEOUT: Duration = Duration::from_secs(60);

/// Boot time limit with KVM. A guest that hangs there never recovers.
const KVM_BOOT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for the first start of the interpreter and its imports.
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(120);

/// Modules that the parked interpreter imports if the image has them. Under emulation `import
/// pandas` takes longer than most programs.
const LARGE_MODULES: [&str; 3] = ["numpy", "pandas", "matplotlib.pyplot"];

/// Common modules, for images with large modules. For other images the agent has its own list.
const COMMON_MODULES: [&str; 12] = [
    "collections",
    "csv",
    "dataclasses",
    "datetime",
    "functools",
    "io",
    "itertools",
    "json",
    "math",
    "random",
    "re",
    "statistics",
];

/// Time limit for the first reply of a clone.
const CLONE_TIMEOUT: Duration = Duration::from_secs(20);

/// Allowed TSC frequency difference from the template, in thousandths. A clone's clock drifts by as
/// much; its time of day is set anew.
const TSC_TOLERANCE: u64 = 2;

/// Everything that a template depends on. Equal recipes produce the same template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateRecipe {
    pub(crate) accel: VmAccelerator,
    pub(crate) ram_bytes: u64,
    /// Kernel command line without the TSC frequency.
    pub(crate) command_line: String,
    /// TSC frequency. Not part of the key, because measurements vary slightly.
    pub(crate) tsc_khz: u64,
    pub(crate) key: Sha256Hex,
}

/// Metadata of a template on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TemplateLabel {
    /// Informational only.
    pub(crate) image: String,
    pub(crate) ram_bytes: u64,
    pub(crate) tsc_khz: u64,
    pub(crate) state_sha256: Sha256Hex,
}

#[derive(Debug)]
pub(crate) struct MicroVmTemplate {
    pub(crate) label: TemplateLabel,
    pub(crate) accel: VmAccelerator,
    pub(crate) ram: OwnedFd,
    pub(crate) state: OwnedFd,
    pub(crate) root: Option<Arc<OwnedFd>>,
    pub(crate) image_sha256: Sha256Hex,
    /// Whether a clone of it has ever replied. A template from disk may be broken.
    pub(crate) proven: AtomicBool,
}

/// Guest memory for a program with a limit of `memory_bytes`.
pub(crate) fn ram_bytes(memory_bytes: u64) -> u64 {
    memory_bytes.saturating_add(RAM_OVERHEAD).checked_next_multiple_of(RAM_STEP).unwrap_or(u64::MAX)
}

impl TemplateRecipe {
    /// Builds the recipe. `machine` has the remaining inputs: QEMU's version and file, and the CPU
    /// model if the guest sees it.
    pub(crate) fn new(
        accel: VmAccelerator,
        tsc_khz: u64,
        machine: &serde_json::Value,
        image: &SandboxImage,
        guest: &GuestBinary,
        limits: &SandboxLimits,
    ) -> Result<Self, SandboxError> {
        let ram_bytes = ram_bytes(limits.memory_bytes);
        // `panic=-1 reboot=t`: a guest that panics makes QEMU exit, which is detected immediately.
        // The kernel passes unknown parameters to the agent as arguments unless they contain a dot.
        let mut command_line = format!(
            "reboot=t panic=-1 quiet loglevel=0 no_timer_check audit=0 random.trust_cpu=on \
             moothall.agent=vm moothall.disk={}",
            limits.disk_bytes
        );
        if accel == VmAccelerator::Tcg {
            // Emulation is not vulnerable to these attacks, and the mitigations cost a third of the
            // speed.
            command_line.push_str(" mitigations=off");
        }
        let depends_on = json!({
            "format": FORMAT,
            "accel": accel.as_str(),
            "machine": machine,
            "ram_bytes": ram_bytes,
            "command_line": command_line,
            "image": image.sha256,
            "guest": guest.sha256,
        });
        let key = canonical_json(&depends_on)
            .map_err(|error| SandboxError::Request(format!("cannot name the template: {error}")))?;
        let key = Sha256Hex::of(key.as_bytes());
        Ok(Self { accel, ram_bytes, command_line, tsc_khz, key })
    }

    /// The complete command line. An emulated guest has no device to measure the TSC frequency with
    /// and would wait forever, so it is given the value.
    fn full_command_line(&self) -> String {
        match self.accel {
            VmAccelerator::Kvm => self.command_line.clone(),
            VmAccelerator::Tcg => {
                format!("{} tsc=reliable tsc_early_khz={}", self.command_line, self.tsc_khz)
            }
        }
    }

    /// Whether a template with this label matches the recipe.
    pub(crate) fn accepts(&self, label: &TemplateLabel) -> bool {
        let difference = self.tsc_khz.abs_diff(label.tsc_khz);
        label.ram_bytes == self.ram_bytes
            && (self.accel == VmAccelerator::Kvm
                || difference <= self.tsc_khz * TSC_TOLERANCE / 1_000)
    }

    fn boot_timeout(&self) -> Duration {
        match self.accel {
            VmAccelerator::Kvm => KVM_BOOT_TIMEOUT,
            VmAccelerator::Tcg => EMULATED_BOOT_TIMEOUT,
        }
    }
}

/// Boots a machine with `ram` as its memory and waits for its agent.
pub(crate) async fn boot(
    launcher: &QemuLauncher,
    recipe: &TemplateRecipe,
    image: &SandboxImage,
    guest: &GuestBinary,
    ram: &OwnedFd,
    root: Option<&OwnedFd>,
) -> Result<QemuMachine, SandboxError> {
    let unusable = || SandboxError::host("cannot create the guest's memory");
    let read = |path| {
        memory::read_bounded(path, MAX_PART_BYTES).map_err(|error| SandboxError::Image {
            image: image.name.clone(),
            problem: error.to_string(),
        })
    };
    let kernel = memory::sealed("moothall-kernel", &[&read(&image.vmlinuz)?]).map_err(unusable())?;
    let parts: [&[u8]; 2] = [&read(&image.modules)?, &init_archive(guest)?];
    let initramfs = memory::sealed("moothall-initramfs", &parts).map_err(unusable())?;
    let command_line = recipe.full_command_line();
    let start =
        QemuStartMode::Boot { kernel: &kernel, initramfs: &initramfs, command_line: &command_line };
    let (accel, ram_bytes) = (recipe.accel, recipe.ram_bytes);
    let mut machine = launcher.launch(&QemuConfig { accel, ram, ram_bytes, root, start }).await?;
    machine.session.ready(recipe.boot_timeout()).await?;
    Ok(machine)
}

/// Opens the root file system of an image for reading.
pub(crate) fn open_root(image: &SandboxImage) -> Result<Option<Arc<OwnedFd>>, SandboxError> {
    let Some(path) = &image.rootfs else { return Ok(None) };
    let file = fs_err::File::open(path).map_err(|error| SandboxError::Image {
        image: image.name.clone(),
        problem: error.to_string(),
    })?;
    Ok(Some(Arc::new(file.into_parts().0.into())))
}

pub(crate) fn blank_ram(recipe: &TemplateRecipe) -> Result<OwnedFd, SandboxError> {
    memory::blank("moothall-ram", recipe.ram_bytes)
        .map_err(SandboxError::host("cannot create the guest's memory"))
}

impl MicroVmTemplate {
    /// Boots a machine, parks its interpreter, saves its state and kills it.
    pub(crate) async fn build(
        launcher: &QemuLauncher,
        recipe: &TemplateRecipe,
        image: &SandboxImage,
        guest: &GuestBinary,
        spec: &SandboxSpec,
    ) -> Result<Self, SandboxError> {
        let unusable = || SandboxError::host("cannot keep a template in memory");
        let ram = blank_ram(recipe)?;
        let root = open_root(image)?;
        let mut machine = boot(launcher, recipe, image, guest, &ram, root.as_deref()).await?;
        if image.packages.iter().any(|package| package.name == "python3") {
            warm_up(&mut machine, &spec.limits, interpreter(&image.python_modules)).await?;
        }
        let state = memory::blank("moothall-state", 0).map_err(unusable())?;
        let own = state.try_clone().map_err(unusable())?;
        let QemuMachine { mut process, mut qmp, .. } = machine;
        qmp.execute("stop", json!({})).await?;
        qmp.send_file("state", own.as_fd()).await?;
        qmp.execute("migrate", json!({ "uri": "fd:state" })).await?;
        qmp.wait_for_migration().await?;
        // Memory can be sealed only when it is not mapped. Everything needed has been written, so
        // QEMU can be killed.
        process.kill();
        let timed_out = SandboxError::NotReady { what: "QEMU's exit", waited: CLONE_TIMEOUT };
        timeout(CLONE_TIMEOUT, process.wait()).await.map_err(|_| timed_out)?.map_err(unusable())?;
        memory::seal(&ram).map_err(unusable())?;
        memory::seal(&state).map_err(unusable())?;
        let state_sha256 = state_hash(&state).map_err(unusable())?;
        let (tsc_khz, ram_bytes) = (recipe.tsc_khz, recipe.ram_bytes);
        let label = TemplateLabel { image: image.name.clone(), ram_bytes, tsc_khz, state_sha256 };
        let proven = AtomicBool::new(true);
        let (accel, image_sha256) = (recipe.accel, image.sha256);
        Ok(Self { label, accel, ram, state, root, image_sha256, proven })
    }

    /// Clones the template and gives the clone its own randomness and clock. This is the only
    /// public way to get a clone.
    pub(crate) async fn clone_machine(
        &self,
        launcher: &QemuLauncher,
    ) -> Result<QemuMachine, SandboxError> {
        let mut machine = self.clone_without_reseed(launcher).await?;
        let timed_out = SandboxError::NotReady { what: "a clone", waited: CLONE_TIMEOUT };
        timeout(CLONE_TIMEOUT, machine.session.refresh()).await.map_err(|_| timed_out)??;
        self.proven.store(true, Ordering::Relaxed);
        Ok(machine)
    }

    /// Clones the template without reseeding: the clone has the same randomness as all others and
    /// the template's time of day.
    async fn clone_without_reseed(
        &self,
        launcher: &QemuLauncher,
    ) -> Result<QemuMachine, SandboxError> {
        let unusable = || SandboxError::host("cannot read the template's state");
        let config = QemuConfig {
            accel: self.accel,
            ram: &self.ram,
            ram_bytes: self.label.ram_bytes,
            root: self.root.as_deref(),
            start: QemuStartMode::Clone,
        };
        let mut machine = launcher.launch(&config).await?;
        let state = memory::reopened(&self.state).map_err(unusable())?;
        let qmp = &mut machine.qmp;
        qmp.send_file("state", state.as_fd()).await?;
        qmp.execute("migrate-incoming", json!({ "uri": "fd:state" })).await?;
        qmp.wait_for_migration().await?;
        qmp.execute("cont", json!({})).await?;
        Ok(machine)
    }
}

pub(crate) fn state_hash(state: &OwnedFd) -> std::io::Result<Sha256Hex> {
    let mut bytes = Vec::new();
    let state = std::fs::File::from(memory::reopened(state)?);
    std::io::Read::read_to_end(&mut std::io::Read::take(state, MAX_PART_BYTES), &mut bytes)?;
    Ok(Sha256Hex::of(&bytes))
}

/// Runs the interpreter once, so that its files are in the guest's page cache, then parks one that
/// waits for a program.
async fn warm_up(
    machine: &mut QemuMachine,
    limits: &SandboxLimits,
    interpreter: Vec<String>,
) -> Result<(), SandboxError> {
    let wall_ms = u64::try_from(WARM_UP_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
    let request = GuestRunRequest {
        argv: ["python3", "-c", "import json, random, re, statistics, datetime"]
            .map(ToOwned::to_owned)
            .to_vec(),
        env: std::collections::BTreeMap::new(),
        limits: SandboxLimits { wall_ms, cpu_permille: 1_000, ..*limits },
    };
    let ran = machine.session.run(request, b"", None).await;
    match ran.end {
        SessionRunEnd::Reported(ended) if ended.way == ExitCause::Exited(0) => {}
        SessionRunEnd::Broken(error) => return Err(error),
        SessionRunEnd::Reported(_) | SessionRunEnd::TimedOut => {
            let stderr = String::from_utf8_lossy(&ran.stderr);
            let last = stderr.lines().last().unwrap_or_default();
            return Err(SandboxError::Start {
                engine: "a new guest".to_owned(),
                problem: format!("its interpreter does not run: {}", last.escape_default()),
            });
        }
    }
    machine.session.park(interpreter, WARM_UP_TIMEOUT).await
}

/// The interpreter to park and the modules it imports.
fn interpreter(modules: &[String]) -> Vec<String> {
    let has = |large: &&str| {
        let top = large.split('.').next().unwrap_or(large);
        modules.iter().any(|module| module == top)
    };
    let large: Vec<&str> = LARGE_MODULES.into_iter().filter(has).collect();
    let common = if large.is_empty() { &[][..] } else { &COMMON_MODULES };
    ["python3"].iter().chain(common).chain(&large).map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
