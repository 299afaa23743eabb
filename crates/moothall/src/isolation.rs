//! Opens sandboxes according to configuration and flags.

use std::collections::BTreeMap;
use std::path::PathBuf;

use moothall_core::ErrorCode;
use moothall_core::sandbox::{
    ExecuteRequest, GuestPath, IsolationClass, SandboxExecution, SandboxLabels, SandboxLimits,
};
use moothall_sandbox::image::{ImageRecipe, ImageStore};
use moothall_sandbox::jail::JailCommand;
use moothall_sandbox::{
    EngineName, HostOptions, LeaseOutcome, MemoryBudget, OutputListener, PoolOptions, ProbedEngine,
    SandboxError, SandboxHost, SandboxPolicy, SandboxRunner, SharedKernel,
};

use crate::args::SandboxFlags;
use crate::config::{
    self, ConfigFileSource, ConfigOrigin, EngineChoice, LoadedConfig, SandboxFallback,
};
use crate::error::CliError;
use crate::guest_binary::GUEST;
use crate::process_resources;

/// The hidden command that confines a hypervisor.
pub(crate) const JAIL_COMMAND: &str = "jail";

/// The requirements for a sandbox.
pub(crate) fn policy(
    loaded: &LoadedConfig,
    named: Option<EngineChoice>,
    allow_shared_kernel: bool,
) -> Result<SandboxPolicy, CliError> {
    refuse_loosening(loaded)?;
    let section = &loaded.resolved.config.isolation;
    let engine = match named.unwrap_or(section.engine) {
        EngineChoice::Auto => None,
        EngineChoice::Microvm => Some(EngineName::Microvm),
        EngineChoice::Runsc => Some(EngineName::Runsc),
        EngineChoice::Runc => Some(EngineName::Runc),
        EngineChoice::Crun => Some(EngineName::Crun),
    };
    // Naming a runtime that shares the kernel is as explicit as the flag.
    let named_shared = matches!(engine, Some(EngineName::Runc | EngineName::Crun));
    let accepted = allow_shared_kernel || section.allow_shared_kernel || named_shared;
    let minimum = section.minimum.unwrap_or(IsolationClass::SharedKernel);
    Ok(SandboxPolicy {
        engine,
        minimum: minimum.max(user_config_minimum(loaded)?),
        shared_kernel: if accepted { SharedKernel::Accepted } else { SharedKernel::Refused },
    })
}

/// A `moothall.toml` in the working directory is untrusted, like the program to run there: it can
/// require stronger isolation, never weaker.
fn refuse_loosening(loaded: &LoadedConfig) -> Result<(), CliError> {
    let from_folder =
        loaded.locations.used().is_some_and(|used| used.by == ConfigFileSource::WorkingFolder);
    if !from_folder {
        return Ok(());
    }
    let is_from_file = |key: &str| {
        matches!(
            loaded.resolved.origin(&format!("isolation.{key}")),
            ConfigOrigin::File { .. } | ConfigOrigin::DotEnv { .. }
        )
    };
    let section = &loaded.resolved.config.isolation;
    let shares = matches!(section.engine, EngineChoice::Runc | EngineChoice::Crun);
    if (section.allow_shared_kernel && is_from_file("allow_shared_kernel"))
        || (shares && is_from_file("engine"))
    {
        return Err(CliError::usage(
            "the untrusted moothall.toml in the working directory allows programs to share the host kernel",
        )
        .with_hint("if you trust it, pass `--config moothall.toml`"));
    }
    Ok(())
}

/// The minimum in the user's own configuration file, which applies even if a file in the working
/// directory is used instead.
fn user_config_minimum(loaded: &LoadedConfig) -> Result<IsolationClass, CliError> {
    let minimum = user_config_value(loaded, "minimum")?;
    match minimum.as_ref().map(|minimum| minimum.as_str().map(str::parse)) {
        None => Ok(IsolationClass::SharedKernel),
        Some(Some(Ok(minimum))) => Ok(minimum),
        Some(_) => {
            let own = loaded.locations.folders.config.join(config::FILE_NAME);
            Err(CliError::usage(format!("{}: invalid `isolation.minimum`", own.display()))
                .with_hint("use hardware-vm, user-kernel, emulated-vm or shared-kernel"))
        }
    }
}

/// A key of `[isolation]` in the user's own configuration file, if a file in the working directory
/// is used instead.
pub(crate) fn user_config_value(
    loaded: &LoadedConfig,
    key: &str,
) -> Result<Option<toml::Value>, CliError> {
    let hidden =
        loaded.locations.used().is_some_and(|used| used.by == ConfigFileSource::WorkingFolder);
    let own = loaded.locations.folders.config.join(config::FILE_NAME);
    if !hidden || !own.exists() {
        return Ok(None);
    }
    let unreadable = || CliError::usage(format!("cannot read {}", own.display()));
    let text = fs_err::read_to_string(&own).map_err(|error| unreadable().with_source(error))?;
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| unreadable().with_source(error))?;
    Ok(table.get("isolation").and_then(|section| section.get(key)).cloned())
}

/// Whether debates, which are text and may run without isolation, must have a sandbox: if a minimum
/// class is configured, or the fallback is disabled.
pub(crate) fn debate_needs_sandbox(loaded: &LoadedConfig) -> Result<bool, CliError> {
    let section = &loaded.resolved.config.isolation;
    let requires_sandbox = |minimum: IsolationClass| minimum > IsolationClass::None;
    let own = user_config_value(loaded, "on_failure")?;
    Ok(section.minimum.is_some_and(requires_sandbox)
        || section.on_failure == SandboxFallback::Fail
        || user_config_value(loaded, "minimum")?.is_some()
        || own.is_some_and(|own| own.as_str() != Some("fallback")))
}

/// Resource limits of a program.
pub(crate) fn limits(flags: &SandboxFlags) -> SandboxLimits {
    SandboxLimits { memory_bytes: flags.memory << 20, ..limits_with_timeout(flags.timeout) }
}

/// The default limits with this time limit.
pub(crate) fn limits_with_timeout(seconds: u64) -> SandboxLimits {
    let defaults = SandboxLimits::default();
    SandboxLimits {
        wall_ms: seconds * 1000,
        cpu_seconds: defaults.cpu_seconds.max(seconds),
        ..defaults
    }
}

pub(crate) fn host(loaded: &LoadedConfig) -> Result<SandboxHost, CliError> {
    // Checked first, because on other systems the hint to build the guest agent would not help.
    if !cfg!(target_os = "linux") {
        return Err(CliError::failed("sandboxes need Linux")
            .with_hint("consultations work on this system, with debates reported as not isolated")
            .with_code(ErrorCode::NoSandbox));
    }
    let guest = GUEST.ok_or_else(|| {
        CliError::failed("this build has no embedded guest agent")
            .with_hint("run `cargo xtask guest`, then rebuild moothall")
    })?;
    let program = std::env::current_exe().map_err(|error| {
        CliError::failed("cannot find the path of the moothall executable").with_source(error)
    })?;
    let folders = &loaded.locations.folders;
    SandboxHost::open(HostOptions {
        images: images(loaded),
        cache: folders.cache.clone(),
        state: folders.state.clone(),
        guest,
        jail: JailCommand { program, args: vec![JAIL_COMMAND.to_owned()] },
    })
    .map_err(failure)
}

/// The image directory without symbolic links, because container runtimes reject a root behind a
/// link, and home directories often are links.
pub(crate) fn images(loaded: &LoadedConfig) -> PathBuf {
    let folder = loaded.locations.folders.images();
    fs_err::canonicalize(&folder).unwrap_or(folder)
}

/// Chooses an engine that satisfies the policy, tested with this image. A process that serves
/// requests keeps its sandboxes ready.
pub(crate) async fn sandboxes(
    loaded: &LoadedConfig,
    policy: &SandboxPolicy,
    image: &str,
    idle: usize,
) -> Result<SandboxRunner, CliError> {
    let host = host(loaded)?;
    let options = PoolOptions { idle, memory: memory(loaded) };
    let runner = match process_resources::kept_sandboxes() {
        Some(kept) => kept.runners.runner(&host, policy, image, options).await,
        None => host.choose(policy, image).await.map(|chosen| SandboxRunner::new(chosen, options)),
    };
    runner.map_err(failure)
}

/// The engine that programs with this image run on. Tests the engines, unless that was done before.
pub(crate) async fn usable_sandbox(
    loaded: &LoadedConfig,
    image: &str,
) -> Result<ProbedEngine, CliError> {
    let policy = policy(loaded, None, false)?;
    // Checked first, because it is fast and the most common reason.
    ImageStore::at(images(loaded)).find(image).map_err(failure)?;
    host(loaded)?.choose(&policy, image).await.map_err(failure)
}

/// Runs one program and waits until its sandbox is removed.
pub(crate) async fn execute(
    loaded: &LoadedConfig,
    policy: &SandboxPolicy,
    labels: &[(&str, &str)],
    request: &ExecuteRequest,
    inputs: &BTreeMap<GuestPath, Vec<u8>>,
    listener: Option<&mut dyn OutputListener>,
) -> Result<(SandboxExecution, BTreeMap<GuestPath, Vec<u8>>), CliError> {
    // Idle sandboxes are of no use to a process that ends after this program.
    let idle = match process_resources::kept_sandboxes() {
        Some(_) => loaded.resolved.config.isolation.pool,
        None => 0,
    };
    let sandboxes = sandboxes(loaded, policy, &request.image, idle).await?;
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let labels = SandboxLabels(labels.collect());
    let executed = sandboxes.execute(&labels, request, inputs, listener).await;
    let LeaseOutcome { execution, files, clean_up } = executed.map_err(failure)?;
    // The reaper retries a failed clean-up, so the program does not fail.
    let _ = clean_up.await;
    sandboxes.shut_down().await;
    Ok((execution, files))
}

/// Memory of all sandboxes of this process together.
pub(crate) fn memory(loaded: &LoadedConfig) -> MemoryBudget {
    process_resources::memory(match loaded.resolved.config.isolation.memory_mib {
        Some(mib) => mib << 20,
        None => machine_memory() / 2,
    })
}

/// The memory of this machine; 2 GiB if unknown.
fn machine_memory() -> u64 {
    let total_kib = fs_err::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    total_kib.map_or(2 << 30, |kib| kib << 10)
}

/// The directory of sandbox records.
pub(crate) fn records(loaded: &LoadedConfig) -> PathBuf {
    SandboxHost::records(&loaded.locations.folders.state)
}

/// Converts a sandbox error, with a hint if there is one.
pub(crate) fn failure(error: SandboxError) -> CliError {
    let is_engine_failure = matches!(
        error,
        SandboxError::Start { .. }
            | SandboxError::NotReady { .. }
            | SandboxError::Protocol(_)
            | SandboxError::Lost(_)
    );
    let hint = hint(&error).or_else(|| {
        is_engine_failure
            .then(|| "test the engines of this machine with `moothall doctor`".to_owned())
    });
    let failed = match error {
        SandboxError::Request(_) => CliError::usage("the program was not run"),
        _ => CliError::failed("the program was not run"),
    }
    .with_source(error)
    .with_code(ErrorCode::NoSandbox);
    match hint {
        Some(hint) => failed.with_hint(hint),
        None => failed,
    }
}

/// How to fix a sandbox error.
pub(crate) fn hint(error: &SandboxError) -> Option<String> {
    Some(match error {
        SandboxError::Missing { program } => match program.as_str() {
            "qemu-system-x86_64" => "install QEMU, on Debian: `apt install qemu-system-x86`",
            "runsc" => "install gVisor (gvisor.dev), on Debian: `apt install runsc`",
            "runc" => "install runc, on Debian: `apt install runc`",
            "crun" => "install crun, on Debian: `apt install crun`",
            _ => return Some(format!("install `{program}`")),
        }
        .to_owned(),
        SandboxError::NeedsLinux { .. } => {
            "sandboxes require Linux; use a Linux virtual machine".to_owned()
        }
        SandboxError::TooWeak { minimum: IsolationClass::SharedKernel, .. } => {
            "`moothall doctor` shows which engines work on this machine and how to enable more; \
             `--isolation runc` accepts a shared kernel"
                .to_owned()
        }
        SandboxError::TooWeak { .. } => {
            "`moothall doctor` shows which engines work on this machine and how to enable more"
                .to_owned()
        }
        SandboxError::Image { image, .. } if ImageRecipe::names().any(|known| known == image) => {
            format!("build the image: `moothall image build {image}`")
        }
        SandboxError::Image { .. } => {
            let known: Vec<&str> = ImageRecipe::names().collect();
            format!("available images: {}", known.join(", "))
        }
        SandboxError::LandlockDisabled => {
            "add `landlock` to the kernel parameter `lsm=` and restart".to_owned()
        }
        SandboxError::LandlockTooOld { .. } => "update the Linux kernel".to_owned(),
        _ => return None,
    })
}
