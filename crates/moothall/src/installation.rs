//! How this program was installed. Every package contains a small file with the answer, at a fixed
//! place relative to the program.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use moothall_core::text::sanitize_line;
use serde::Deserialize;

/// Where packages install the file, relative to the directory of the program.
const MARKER: &str = "../share/moothall/install.json";
const MAX_MARKER_BYTES: u64 = 4096;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum InstallKind {
    Wheel,
    Npm,
    Deb,
    Rpm,
    Homebrew,
    Container,
    Tarball,
    InstallScript,
    /// Built with Cargo.
    #[serde(skip)]
    Source,
    /// A copied binary.
    #[serde(skip)]
    Unknown,
}

#[derive(Debug, Deserialize)]
struct InstallMarker {
    kind: InstallKind,
    version: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Installation {
    kind: InstallKind,
    program: Option<PathBuf>,
    /// The version of the package, if it differs from the version of this program.
    other_version: Option<String>,
}

impl Installation {
    pub(crate) fn of_this_program() -> Self {
        let program = std::env::current_exe().and_then(fs_err::canonicalize).ok();
        match program {
            Some(program) => Self::of(program),
            None => Self { kind: InstallKind::Unknown, program: None, other_version: None },
        }
    }

    fn of(program: PathBuf) -> Self {
        let (kind, other_version) = match read_marker(&program) {
            Some(marker) => {
                (marker.kind, Some(marker.version).filter(|version| version != VERSION))
            }
            None => (kind_without_marker(&program), None),
        };
        Self { kind, program: Some(program), other_version }
    }

    pub(crate) fn version(&self) -> &'static str {
        VERSION
    }

    /// A short name for scripts.
    pub(crate) fn kind(&self) -> &'static str {
        match self.kind {
            InstallKind::Wheel => "wheel",
            InstallKind::Npm => "npm",
            InstallKind::Deb => "deb",
            InstallKind::Rpm => "rpm",
            InstallKind::Homebrew => "homebrew",
            InstallKind::Container => "container",
            InstallKind::Tarball => "tarball",
            InstallKind::InstallScript => "install-script",
            InstallKind::Source => "source",
            InstallKind::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let installed = match self.kind {
            InstallKind::Wheel => "installed as a Python package",
            InstallKind::Npm => "installed as an npm package",
            InstallKind::Deb => "installed as a Debian package",
            InstallKind::Rpm => "installed as an RPM package",
            InstallKind::Homebrew => "installed with Homebrew",
            InstallKind::Container => "in a container image",
            InstallKind::Tarball => "unpacked from a release archive",
            InstallKind::InstallScript => "installed with install.sh",
            InstallKind::Source => "built from source",
            InstallKind::Unknown => "a binary without a package",
        };
        write!(f, "moothall {VERSION}, {installed}")?;
        if let Some(program) = &self.program {
            write!(f, ": {}", sanitize_line(&program.display().to_string()))?;
        }
        if let Some(version) = &self.other_version {
            write!(f, " (its package has version {})", sanitize_line(version))?;
        }
        Ok(())
    }
}

/// A file that is missing, too large or not as expected does not count.
fn read_marker(program: &Path) -> Option<InstallMarker> {
    let file = fs_err::File::open(program.parent()?.join(MARKER)).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_MARKER_BYTES).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Cargo writes programs to `target/PROFILE` or `target/TRIPLE/PROFILE`, and installs them in
/// `.cargo/bin`.
fn kind_without_marker(program: &Path) -> InstallKind {
    let is_cargo_home = program.parent().is_some_and(|folder| folder.ends_with(".cargo/bin"));
    let is_target =
        program.ancestors().skip(1).take(3).any(|folder| folder.join("CACHEDIR.TAG").is_file());
    if is_cargo_home || is_target { InstallKind::Source } else { InstallKind::Unknown }
}

#[cfg(test)]
#[path = "installation_tests.rs"]
mod tests;
