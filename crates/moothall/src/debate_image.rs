//! The image of debate sandboxes, which is installed when a consultation first needs it: from the
//! bundle of a package, else by building it. Images for programs are only built on request.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use moothall_core::sandbox::IsolationClass;
use moothall_engine::DebateSandboxes;
use moothall_sandbox::SandboxError;
use moothall_sandbox::image::{
    BuildOptions, ExistingImagePolicy, ImageBuilder, ImageOrigin, ImageRecipe, ImageStore,
    PendingBuild,
};

use crate::config::LoadedConfig;
use crate::error::CliError;
use crate::isolation;

/// Limit of a build that the user did not ask for. It normally takes about 10 seconds.
const BUILD_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Where a package installs the bundle, relative to the directory of the program.
const BUNDLE: &str = "../share/moothall/images/debate.tar";

/// Reports what a command waits for.
#[derive(Clone)]
pub(crate) struct ProgressNotice(pub(crate) Arc<dyn Fn(&str) + Send + Sync>);

impl fmt::Debug for ProgressNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressNotice").finish_non_exhaustive()
    }
}

impl Default for ProgressNotice {
    /// To the log, for processes without a user who waits.
    fn default() -> Self {
        Self(Arc::new(|message| tracing::info!("{message}")))
    }
}

/// Whether a missing image may be installed without a request. The user's own configuration can
/// forbid it for every working directory.
pub(crate) fn may_provide(loaded: &LoadedConfig) -> Result<bool, CliError> {
    let own = isolation::user_config_value(loaded, "build")?;
    Ok(loaded.resolved.config.isolation.build && own.is_none_or(|own| own.as_bool() == Some(true)))
}

/// Installs the image if it is missing. Cancelling leaves nothing behind.
pub(crate) async fn provide(
    store: &ImageStore,
    progress: &ProgressNotice,
) -> Result<(), SandboxError> {
    let started = Instant::now();
    let build: PendingBuild<'_> = Box::pin(build(store, progress));
    let bundle = bundle();
    // Includes the wait for another process, which may be suspended.
    let provided = store.provide(DebateSandboxes::IMAGE, bundle.as_deref(), build);
    let waited = SandboxError::NotReady { what: "the image", waited: BUILD_TIMEOUT };
    let origin = tokio::time::timeout(BUILD_TIMEOUT, provided).await.unwrap_or(Err(waited))?;
    if origin == ImageOrigin::Built {
        let seconds = started.elapsed().as_secs_f64();
        (progress.0)(&format!("built the sandbox image for debates in {seconds:.0} s"));
    }
    Ok(())
}

async fn build(store: &ImageStore, progress: &ProgressNotice) -> Result<(), SandboxError> {
    let recipe = ImageRecipe::named(DebateSandboxes::IMAGE)?;
    let mut builder = ImageBuilder::new(store, build_options(Vec::new()), |_| {}).await?;
    builder.require_mirror(&recipe).await?;
    (progress.0)("building the sandbox image for debates (only once, about 10 s)");
    builder.build(&recipe, ExistingImagePolicy::Keep).await.map(drop)
}

/// Options with the environment of this process.
pub(crate) fn build_options(mirrors: Vec<String>) -> BuildOptions {
    let environment: BTreeMap<String, OsString> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .collect();
    BuildOptions { mirrors, environment }
}

/// The bundle that a package installed.
fn bundle() -> Option<PathBuf> {
    let program = std::env::current_exe().and_then(fs_err::canonicalize).ok()?;
    bundle_beside(&program)
}

fn bundle_beside(program: &Path) -> Option<PathBuf> {
    let bundle = program.parent()?.join(BUNDLE);
    bundle.is_file().then_some(bundle)
}

/// What keeps debates out of a microVM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MicrovmObstacle {
    /// QEMU is not installed.
    NoQemu,
    /// The image is missing and was not or could not be built.
    NoImage,
    /// Anything else.
    Other,
}

/// The one command after which debates run in a microVM.
pub(crate) fn command_for(obstacle: MicrovmObstacle) -> String {
    let missing = match bundle() {
        Some(_) => Vec::new(),
        None => ImageBuilder::missing_programs(&build_options(Vec::new())),
    };
    command_with(obstacle, &missing)
}

fn command_with(obstacle: MicrovmObstacle, missing_programs: &[&str]) -> String {
    let mut packages = Vec::new();
    if obstacle == MicrovmObstacle::NoQemu {
        packages.push("qemu-system-x86");
    }
    for program in missing_programs {
        packages.extend(match *program {
            "mmdebstrap" => Some("mmdebstrap"),
            "mksquashfs" => Some("squashfs-tools"),
            _ => None,
        });
    }
    let is_debian = !missing_programs.contains(&"apt-get");
    match obstacle {
        MicrovmObstacle::Other => "moothall doctor".to_owned(),
        // Without apt the image cannot be built on this machine.
        MicrovmObstacle::NoImage if !is_debian => {
            "moothall image import moothall-images.tar".to_owned()
        }
        MicrovmObstacle::NoImage if packages.is_empty() => "moothall image build debate".to_owned(),
        MicrovmObstacle::NoQemu if !is_debian => "moothall doctor".to_owned(),
        MicrovmObstacle::NoQemu | MicrovmObstacle::NoImage => {
            format!("sudo apt install {}", packages.join(" "))
        }
    }
}

/// The line that a run with weaker isolation than a microVM starts with. The reason comes last,
/// because a long line is truncated.
pub(crate) fn weaker_class_line(class: IsolationClass, reason: &str, command: &str) -> String {
    format!("debates run in isolation class {class}; to use a microVM, run `{command}` ({reason})")
}

#[cfg(test)]
#[path = "debate_image_tests.rs"]
mod tests;
