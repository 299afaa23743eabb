//! From configuration and flags to sandboxes.

use std::path::PathBuf;

use moothall_core::ErrorCode;
use moothall_core::sandbox::{IsolationClass, Limits};
use moothall_sandbox::image::Recipe;
use moothall_sandbox::jail::JailCommand;
use moothall_sandbox::{
    EngineName, Host, HostOptions, Policy, PoolOptions, SandboxError, Sandboxes, SharedKernel,
};

use crate::args::SandboxFlags;
use crate::config::{self, EngineChoice, FoundBy, Loaded, OnFailure, Origin};
use crate::error::CliError;
use crate::guest_binary::GUEST;

/// The hidden command that puts a hypervisor behind walls of its own.
pub(crate) const JAIL_COMMAND: &str = "jail";

/// What is demanded of a sandbox.
pub(crate) fn policy(
    loaded: &Loaded,
    named: Option<EngineChoice>,
    allow_shared_kernel: bool,
) -> Result<Policy, CliError> {
    refuse_loosening(loaded)?;
    let section = &loaded.resolved.config.isolation;
    let engine = match named.unwrap_or(section.engine) {
        EngineChoice::Auto => None,
        EngineChoice::Microvm => Some(EngineName::Microvm),
        EngineChoice::Runsc => Some(EngineName::Runsc),
        EngineChoice::Runc => Some(EngineName::Runc),
        EngineChoice::Crun => Some(EngineName::Crun),
    };
    // Naming a runtime that shares the kernel is as explicit as the switch.
    let named_shared = matches!(engine, Some(EngineName::Runc | EngineName::Crun));
    let accepted = allow_shared_kernel || section.allow_shared_kernel || named_shared;
    let minimum = section.minimum.unwrap_or(IsolationClass::SharedKernel);
    Ok(Policy {
        engine,
        minimum: minimum.max(users_own_minimum(loaded)?),
        shared_kernel: if accepted { SharedKernel::Accepted } else { SharedKernel::Refused },
    })
}

/// A moothall.toml that merely lies in the working folder may come from a stranger, as may the
/// program that is to be run there. It may ask for stronger walls, not for weaker ones.
fn refuse_loosening(loaded: &Loaded) -> Result<(), CliError> {
    let from_folder = loaded.places.used().is_some_and(|used| used.by == FoundBy::WorkingFolder);
    if !from_folder {
        return Ok(());
    }
    let theirs = |key: &str| {
        matches!(
            loaded.resolved.origin(&format!("isolation.{key}")),
            Origin::File { .. } | Origin::DotEnv { .. }
        )
    };
    let section = &loaded.resolved.config.isolation;
    let shares = matches!(section.engine, EngineChoice::Runc | EngineChoice::Crun);
    if (section.allow_shared_kernel && theirs("allow_shared_kernel"))
        || (shares && theirs("engine"))
    {
        return Err(CliError::usage(
            "the moothall.toml in this folder wants programs to share this machine's kernel",
        )
        .with_hint("if you trust it, name it: `--config moothall.toml`"));
    }
    Ok(())
}

/// The minimum of the user's own configuration file, which a file of the working folder stands in
/// front of and must not hide.
fn users_own_minimum(loaded: &Loaded) -> Result<IsolationClass, CliError> {
    let minimum = users_own(loaded, "minimum")?;
    match minimum.as_ref().map(|minimum| minimum.as_str().map(str::parse)) {
        None => Ok(IsolationClass::SharedKernel),
        Some(Some(Ok(minimum))) => Ok(minimum),
        Some(_) => Err(CliError::usage("your own moothall.toml cannot be used")
            .with_hint("`isolation.minimum` is not a class")),
    }
}

/// A key of `[isolation]` in the user's own configuration file, where a file of the working folder
/// stands in front of it.
fn users_own(loaded: &Loaded, key: &str) -> Result<Option<toml::Value>, CliError> {
    let hidden = loaded.places.used().is_some_and(|used| used.by == FoundBy::WorkingFolder);
    let own = loaded.places.folders.config.join(config::FILE_NAME);
    if !hidden || !own.exists() {
        return Ok(None);
    }
    let unreadable = || CliError::usage(format!("{} cannot be read", own.display()));
    let text = fs_err::read_to_string(&own).map_err(|error| unreadable().with_source(error))?;
    let table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| unreadable().with_source(error))?;
    Ok(table.get("isolation").and_then(|section| section.get(key)).cloned())
}

/// What a debate, which is text and may go without a sandbox, must have all the same: a class that
/// somebody demanded, or any where a sandbox that fails shall not be done without.
pub(crate) fn debate_needs_walls(loaded: &Loaded) -> Result<bool, CliError> {
    let section = &loaded.resolved.config.isolation;
    let demanded = |minimum: IsolationClass| minimum > IsolationClass::None;
    let own = users_own(loaded, "on_failure")?;
    Ok(section.minimum.is_some_and(demanded)
        || section.on_failure == OnFailure::Fail
        || users_own(loaded, "minimum")?.is_some()
        || own.is_some_and(|own| own.as_str() != Some("fallback")))
}

/// What a program may use.
pub(crate) fn limits(flags: &SandboxFlags) -> Limits {
    let usual = Limits::default();
    Limits {
        wall_ms: flags.timeout * 1000,
        cpu_seconds: usual.cpu_seconds.max(flags.timeout),
        memory_bytes: flags.memory << 20,
        ..usual
    }
}

/// The sandboxes of this machine.
pub(crate) fn host(loaded: &Loaded) -> Result<Host, CliError> {
    // Elsewhere no agent is inside either, and building one would not help.
    if !cfg!(target_os = "linux") {
        return Err(CliError::failed("sandboxes need Linux")
            .with_hint("consultations work here, and say that their debates have no walls")
            .with_code(ErrorCode::NoSandbox));
    }
    let guest = GUEST.ok_or_else(|| {
        CliError::failed("this build has no sandbox agent inside")
            .with_hint("build it first: `cargo xtask guest`, then build moothall again")
    })?;
    let program = std::env::current_exe().map_err(|error| {
        CliError::failed("this program's own file is not known").with_source(error)
    })?;
    let folders = &loaded.places.folders;
    Host::open(HostOptions {
        images: images(loaded),
        cache: folders.cache.clone(),
        state: folders.state.clone(),
        guest,
        jail: JailCommand { program, args: vec![JAIL_COMMAND.to_owned()] },
    })
    .map_err(failure)
}

/// The folder of images, without links on the way: container runtimes refuse a root behind one, and
/// a home folder often is.
pub(crate) fn images(loaded: &Loaded) -> PathBuf {
    let folder = loaded.places.folders.images();
    fs_err::canonicalize(&folder).unwrap_or(folder)
}

/// Sandboxes as the policy wants them, tried out for this image.
pub(crate) async fn sandboxes(
    loaded: &Loaded,
    policy: &Policy,
    image: &str,
    idle: usize,
) -> Result<Sandboxes, CliError> {
    let host = host(loaded)?;
    let chosen = host.choose(policy, image).await.map_err(failure)?;
    let memory_bytes = memory_bytes(loaded);
    Ok(Sandboxes::new(chosen, PoolOptions { idle, memory_bytes }))
}

/// The memory that all sandboxes together may take.
pub(crate) fn memory_bytes(loaded: &Loaded) -> u64 {
    match loaded.resolved.config.isolation.memory_mib {
        Some(mib) => mib << 20,
        None => machine_memory() / 2,
    }
}

/// The memory of this machine; 2 GiB where it is not told.
fn machine_memory() -> u64 {
    let told = fs_err::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    told.map_or(2 << 30, |kib| kib << 10)
}

/// The folder of records of sandboxes.
pub(crate) fn records(loaded: &Loaded) -> PathBuf {
    Host::records(&loaded.places.folders.state)
}

/// Why nothing can be run, with the cure where there is one.
pub(crate) fn failure(error: SandboxError) -> CliError {
    let elsewhere = matches!(error, SandboxError::Start { .. } | SandboxError::NotReady { .. });
    let hint = hint(&error).or_else(|| {
        elsewhere.then(|| "`moothall doctor` tries every engine of this machine".to_owned())
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

/// The cure for what a sandbox lacks.
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
            "`moothall` runs programs on Linux; a virtual machine with Linux will do".to_owned()
        }
        SandboxError::TooWeak { minimum: IsolationClass::SharedKernel, .. } => {
            "`moothall doctor` shows what works on this machine and how to get more; \
             `--isolation runc` accepts a shared kernel"
                .to_owned()
        }
        SandboxError::TooWeak { .. } => {
            "`moothall doctor` shows what works on this machine and how to get more".to_owned()
        }
        SandboxError::Image { image, .. } if Recipe::names().any(|known| known == image) => {
            format!("build it: `moothall image build {image}`")
        }
        SandboxError::Image { .. } => {
            let known: Vec<&str> = Recipe::names().collect();
            format!("there are {}", known.join(", "))
        }
        _ => return None,
    })
}
