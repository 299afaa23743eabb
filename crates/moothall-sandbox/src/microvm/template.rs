//! A virtual machine that was booted once and is then only copied.
//!
//! Its RAM is a sealed file of memory, and every clone sees it copy-on-write; the rest of its state
//! has 60 kB. So a clone costs a twentieth of a boot, and an interpreter that was started in the
//! template runs in every clone without having started there.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use moothall_core::guest::{RunRequest, WayToEnd};
use moothall_core::sandbox::Limits;
use moothall_core::{Sha256Hex, canonical_json};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;

use super::machine::{Launcher, Machine, Plan, Start};
use super::{Accel, memory};
use crate::image::{Image, init_archive};
use crate::registry::now_ms;
use crate::session::RanEnd;
use crate::{GuestBinary, SandboxError, Spec};

/// Counts up whenever a template of an older version of this program would not do.
const FORMAT: u32 = 1;

/// What the kernel, the agent and the interpreter need beside what the program may use.
const OVERHEAD: u64 = 96 << 20;

/// A guest's memory is a multiple of this, so that there are few kinds of templates.
const STEP: u64 = 32 << 20;

/// The largest kernel or initramfs.
const LARGEST_PART: u64 = 256 << 20;

/// How long an emulated machine may take to come up on a busy host.
const EMULATED_BOOT: Duration = Duration::from_secs(60);

/// How long a machine on the CPU's own virtualisation may take. One that hangs hangs for ever.
const HARDWARE_BOOT: Duration = Duration::from_secs(10);

/// How long the interpreter may take to start for the first time, and to import what it should.
const WARM_UP: Duration = Duration::from_secs(120);

/// What an interpreter that waits has imported, where the image has it, beside what is usual.
/// Under emulation `import pandas` takes longer than most programs.
const LARGE_MODULES: [&str; 3] = ["numpy", "pandas", "matplotlib.pyplot"];

/// The usual modules, for images that have large ones; for others the agent knows them.
const USUAL_MODULES: [&str; 12] = [
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

/// How long a clone may take to give its first answer.
const FIRST_ANSWER: Duration = Duration::from_secs(20);

/// How far the speed of the CPU's counter may be from the one that a template was told, in
/// thousandths: its clock goes wrong by as much, and the time of day is set anew in every clone.
const TSC_TOLERANCE: u64 = 2;

/// Everything that a template depends on. Two equal recipes make the same template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Recipe {
    pub(super) accel: Accel,
    pub(super) ram_bytes: u64,
    /// The kernel's command line without the speed of the CPU's counter.
    pub(super) command_line: String,
    /// How fast the CPU's counter ticks. Not part of the key: two measurements differ a little.
    pub(super) tsc_khz: u64,
    pub(super) key: Sha256Hex,
}

/// What is written down beside a template that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Label {
    /// For people who look.
    pub(super) image: String,
    pub(super) ram_bytes: u64,
    pub(super) tsc_khz: u64,
    pub(super) state_sha256: Sha256Hex,
}

/// A template in memory.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) label: Label,
    pub(super) accel: Accel,
    pub(super) ram: OwnedFd,
    pub(super) state: OwnedFd,
    pub(super) root: Option<Arc<OwnedFd>>,
    pub(super) image_sha256: Sha256Hex,
    /// Whether a clone of it ever gave an answer. One from the disk may be broken.
    pub(super) proven: AtomicBool,
}

/// The memory of a guest for a program that may use `memory_bytes`.
pub(super) fn ram_bytes(memory_bytes: u64) -> u64 {
    memory_bytes.saturating_add(OVERHEAD).checked_next_multiple_of(STEP).unwrap_or(u64::MAX)
}

impl Recipe {
    /// The recipe for a template. `machine` is what else it depends on: QEMU's version and file,
    /// and the CPU where the guest sees it.
    pub(super) fn new(
        accel: Accel,
        tsc_khz: u64,
        machine: &serde_json::Value,
        image: &Image,
        guest: &GuestBinary,
        limits: &Limits,
    ) -> Result<Self, SandboxError> {
        let ram_bytes = ram_bytes(limits.memory_bytes);
        // `panic=-1 reboot=t`: a guest that panics ends QEMU, which is noticed at once. A word that
        // the kernel does not know would become an argument of the agent, unless it has a dot.
        let mut command_line = format!(
            "reboot=t panic=-1 quiet loglevel=0 no_timer_check audit=0 random.trust_cpu=on \
             moothall.agent=vm moothall.disk={}",
            limits.disk_bytes
        );
        if accel == Accel::Tcg {
            // Emulation is no boundary against what these guard from, and they cost a third.
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
            .map_err(|error| SandboxError::Request(error.to_string()))?;
        let key = Sha256Hex::of(key.as_bytes());
        Ok(Self { accel, ram_bytes, command_line, tsc_khz, key })
    }

    /// The whole command line. A guest under emulation has no chip by which it could find out how
    /// fast the CPU's counter is, and waits for ever; so it is told.
    fn whole_command_line(&self) -> String {
        match self.accel {
            Accel::Kvm => self.command_line.clone(),
            Accel::Tcg => {
                format!("{} tsc=reliable tsc_early_khz={}", self.command_line, self.tsc_khz)
            }
        }
    }

    /// Whether a template with this label is one of this recipe.
    pub(super) fn accepts(&self, label: &Label) -> bool {
        let difference = self.tsc_khz.abs_diff(label.tsc_khz);
        label.ram_bytes == self.ram_bytes
            && (self.accel == Accel::Kvm || difference <= self.tsc_khz * TSC_TOLERANCE / 1_000)
    }

    fn boot_patience(&self) -> Duration {
        match self.accel {
            Accel::Kvm => HARDWARE_BOOT,
            Accel::Tcg => EMULATED_BOOT,
        }
    }
}

/// Boots a machine whose RAM is `ram`, and waits until its agent is there.
pub(super) async fn boot(
    launcher: &Launcher,
    recipe: &Recipe,
    image: &Image,
    guest: &GuestBinary,
    ram: &OwnedFd,
    root: Option<&OwnedFd>,
) -> Result<Machine, SandboxError> {
    let unusable = || SandboxError::host("a guest's memory cannot be made");
    let read = |path| {
        memory::read_bounded(path, LARGEST_PART).map_err(|error| SandboxError::Image {
            image: image.name.clone(),
            problem: error.to_string(),
        })
    };
    let kernel = memory::sealed("moothall-kernel", &[&read(&image.vmlinuz)?]).map_err(unusable())?;
    let parts: [&[u8]; 2] = [&read(&image.modules)?, &init_archive(guest)?];
    let initramfs = memory::sealed("moothall-initramfs", &parts).map_err(unusable())?;
    let command_line = recipe.whole_command_line();
    let start = Start::Boot { kernel: &kernel, initramfs: &initramfs, command_line: &command_line };
    let (accel, ram_bytes) = (recipe.accel, recipe.ram_bytes);
    let mut machine = launcher.launch(&Plan { accel, ram, ram_bytes, root, start }).await?;
    machine.session.ready(recipe.boot_patience()).await?;
    Ok(machine)
}

/// The root file system of an image, open for reading.
pub(super) fn open_root(image: &Image) -> Result<Option<Arc<OwnedFd>>, SandboxError> {
    let Some(path) = &image.rootfs else { return Ok(None) };
    let file = fs_err::File::open(path).map_err(|error| SandboxError::Image {
        image: image.name.clone(),
        problem: error.to_string(),
    })?;
    Ok(Some(Arc::new(file.into_parts().0.into())))
}

/// New, blank memory for a guest.
pub(super) fn blank_ram(recipe: &Recipe) -> Result<OwnedFd, SandboxError> {
    memory::blank("moothall-ram", recipe.ram_bytes)
        .map_err(SandboxError::host("a guest's memory cannot be made"))
}

impl Template {
    /// Boots a machine, has its interpreter start and wait, and stops it for good.
    pub(super) async fn build(
        launcher: &Launcher,
        recipe: &Recipe,
        image: &Image,
        guest: &GuestBinary,
        spec: &Spec,
    ) -> Result<Self, SandboxError> {
        let unusable = || SandboxError::host("a template cannot be kept in memory");
        let ram = blank_ram(recipe)?;
        let root = open_root(image)?;
        let mut machine = boot(launcher, recipe, image, guest, &ram, root.as_deref()).await?;
        if image.packages.iter().any(|package| package.name == "python3") {
            warm_up(&mut machine, &spec.limits, interpreter(&image.python_modules)).await?;
        }
        let state = memory::blank("moothall-state", 0).map_err(unusable())?;
        let own = state.try_clone().map_err(unusable())?;
        let Machine { mut process, mut qmp, .. } = machine;
        qmp.execute("stop", json!({})).await?;
        qmp.hand_over("state", own.as_fd()).await?;
        qmp.execute("migrate", json!({ "uri": "fd:state" })).await?;
        qmp.migrated().await?;
        // Its memory can be sealed when nobody has it mapped any more. All that mattered was
        // written, so it may go the quick way.
        process.kill();
        let late = SandboxError::NotReady { what: "the end of QEMU", waited: FIRST_ANSWER };
        timeout(FIRST_ANSWER, process.wait()).await.map_err(|_| late)?.map_err(unusable())?;
        memory::seal(&ram).map_err(unusable())?;
        memory::seal(&state).map_err(unusable())?;
        let state_sha256 = state_hash(&state).map_err(unusable())?;
        let (tsc_khz, ram_bytes) = (recipe.tsc_khz, recipe.ram_bytes);
        let label = Label { image: image.name.clone(), ram_bytes, tsc_khz, state_sha256 };
        let proven = AtomicBool::new(true);
        let (accel, image_sha256) = (recipe.accel, image.sha256);
        Ok(Self { label, accel, ram, state, root, image_sha256, proven })
    }

    /// A machine that goes on where the template stopped, with randomness and a clock of its own.
    /// There is no way to get one without.
    pub(super) async fn machine(&self, launcher: &Launcher) -> Result<Machine, SandboxError> {
        let mut machine = self.stale_machine(launcher).await?;
        let late = SandboxError::NotReady { what: "a clone", waited: FIRST_ANSWER };
        timeout(FIRST_ANSWER, freshen(&mut machine)).await.map_err(|_| late)??;
        self.proven.store(true, Ordering::Relaxed);
        Ok(machine)
    }

    /// A machine that does not know that it is a clone: it has the randomness of all others, and
    /// the time of day of its template.
    async fn stale_machine(&self, launcher: &Launcher) -> Result<Machine, SandboxError> {
        let unusable = || SandboxError::host("a template's state cannot be read");
        let plan = Plan {
            accel: self.accel,
            ram: &self.ram,
            ram_bytes: self.label.ram_bytes,
            root: self.root.as_deref(),
            start: Start::Clone,
        };
        let mut machine = launcher.launch(&plan).await?;
        let state = memory::reopened(&self.state).map_err(unusable())?;
        let qmp = &mut machine.qmp;
        qmp.hand_over("state", state.as_fd()).await?;
        qmp.execute("migrate-incoming", json!({ "uri": "fd:state" })).await?;
        qmp.migrated().await?;
        qmp.execute("cont", json!({})).await?;
        Ok(machine)
    }
}

/// Gives a machine its own randomness and the time of day. Its answer shows that it lives.
pub(super) async fn freshen(machine: &mut Machine) -> Result<(), SandboxError> {
    let mut seed = [0; 32];
    let mut source = fs_err::File::open("/dev/urandom")
        .map_err(SandboxError::host("there is no randomness for a guest"))?;
    std::io::Read::read_exact(&mut source, &mut seed)
        .map_err(SandboxError::host("there is no randomness for a guest"))?;
    machine.session.reseed(seed, now_ms()).await
}

/// The hash of a template's state.
pub(super) fn state_hash(state: &OwnedFd) -> std::io::Result<Sha256Hex> {
    let mut bytes = Vec::new();
    let state = std::fs::File::from(memory::reopened(state)?);
    std::io::Read::read_to_end(&mut std::io::Read::take(state, LARGEST_PART), &mut bytes)?;
    Ok(Sha256Hex::of(&bytes))
}

/// Runs the interpreter once, so that what it reads is in the guest's memory, and then has one start
/// and wait for a program.
async fn warm_up(
    machine: &mut Machine,
    limits: &Limits,
    interpreter: Vec<String>,
) -> Result<(), SandboxError> {
    let wall_ms = u64::try_from(WARM_UP.as_millis()).unwrap_or(u64::MAX);
    let request = RunRequest {
        argv: ["python3", "-c", "import json, random, re, statistics, datetime"]
            .map(ToOwned::to_owned)
            .to_vec(),
        env: std::collections::BTreeMap::new(),
        limits: Limits { wall_ms, cpu_permille: 1_000, ..*limits },
    };
    let ran = machine.session.run(request, b"", None).await;
    match ran.end {
        RanEnd::Told(ended) if ended.way == WayToEnd::Exited(0) => {}
        RanEnd::Broken(error) => return Err(error),
        RanEnd::Told(_) | RanEnd::Silent => {
            let words = String::from_utf8_lossy(&ran.stderr);
            let last = words.lines().last().unwrap_or_default();
            return Err(SandboxError::Start {
                engine: "a new guest".to_owned(),
                problem: format!("its interpreter does not run: {}", last.escape_default()),
            });
        }
    }
    machine.session.park(interpreter, WARM_UP).await
}

/// The interpreter that is parked, and what it imports.
fn interpreter(modules: &[String]) -> Vec<String> {
    let has = |large: &&str| {
        let top = large.split('.').next().unwrap_or(large);
        modules.iter().any(|module| module == top)
    };
    let large: Vec<&str> = LARGE_MODULES.into_iter().filter(has).collect();
    let usual = if large.is_empty() { &[][..] } else { &USUAL_MODULES };
    ["python3"].iter().chain(usual).chain(&large).map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
