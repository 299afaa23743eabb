//! `cargo xtask package`: writes the packages that users install, all from one binary.
//!
//! The packages are reproducible: the same binary, repository and `SOURCE_DATE_EPOCH` give the same
//! bytes. Every package is opened again after it is written, and its binary is compared.

mod agent_packages;
mod archives;
mod inspect;
mod payload;
mod platform;
mod release_files;
mod system_packages;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Args as ClapArgs, ValueEnum};
use sha2::{Digest as _, Sha256};

use self::payload::PackagePayload;
use crate::shell;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const SUMMARY: &str =
    "Check what AI agents produce (memos, programs, file edits) before you rely on it";
const SUMS: &str = "SHA256SUMS";

/// Size limit of what `uvx` and `npx` download before the first command runs.
const MAX_REGISTRY_BYTES: usize = 30_000_000;

#[derive(Debug, ClapArgs)]
pub(crate) struct PackageArgs {
    /// Packages to write [default: all that fit the platform of the binary]
    #[arg(value_name = "KIND")]
    kinds: Vec<PackageKind>,
    /// The `moothall` binary; `install-script` and `homebrew` need only the tarballs in `--out`
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The `moothall-pdf` binary, for the packages that contain it
    #[arg(long, value_name = "FILE")]
    pdf: Option<PathBuf>,
    /// Output directory [default: `packages` in the target directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// URL of the public repository; packages are downloaded from its releases
    #[arg(long, value_name = "URL", default_value = "https://moothall.invalid")]
    repository: String,
    /// Accept a binary that needs a newer glibc than 2.17; the packages then fit only systems like
    /// this one
    #[arg(long)]
    any_glibc: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum PackageKind {
    /// For `uvx`, `pipx` and `pip`
    Wheel,
    /// For `npx` and `npm`: a launcher and a package with the binary
    Npm,
    /// For Debian and Ubuntu
    Deb,
    /// For Fedora, RHEL and SUSE
    Rpm,
    /// For everything else
    Tarball,
    /// The build context of a container image
    Container,
    /// For Claude Desktop and other clients that install MCP bundles
    Mcpb,
    /// For Claude Code: the plugin directory, with the server and the hook; needs `moothall`
    ClaudePlugin,
    /// Downloads and verifies a tarball; contains the checksums of all tarballs in `--out`
    InstallScript,
    /// A formula with the checksums of all tarballs in `--out`
    Homebrew,
}

impl PackageKind {
    fn needs_binary(self) -> bool {
        !matches!(self, Self::ClaudePlugin | Self::InstallScript | Self::Homebrew)
    }

    fn needs_linux(self) -> bool {
        matches!(self, Self::Deb | Self::Rpm | Self::Container)
    }
}

/// A file that was written to the output directory.
#[derive(Debug)]
struct WrittenPackage {
    name: String,
    kind: PackageKind,
    has_binary: bool,
}

/// What all packages are made from.
struct PackageOptions<'a> {
    root: &'a Path,
    out: &'a Path,
    repository: &'a str,
    /// Modification time of every file, in Unix seconds.
    epoch: u64,
}

pub(crate) fn run(args: &PackageArgs) -> Result<()> {
    let root = shell::root()?;
    let out = args.out.clone().unwrap_or_else(|| shell::target_dir(&root).join("packages"));
    fs_err::create_dir_all(&out)?;
    let out = fs_err::canonicalize(out)?;
    let options = PackageOptions {
        root: &root,
        out: &out,
        repository: args.repository.trim_end_matches('/'),
        epoch: source_date_epoch(&root)?,
    };
    let mut kinds = args.kinds.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let written = match &args.binary {
        Some(binary) => {
            let payload = PackagePayload::read(&root, binary, args.pdf.as_deref(), args.any_glibc)?;
            if kinds.is_empty() {
                let fits = |kind: &PackageKind| payload.platform.is_linux() || !kind.needs_linux();
                kinds.extend(PackageKind::value_variants().iter().filter(|kind| fits(kind)));
            }
            write_packages(&options, &kinds, Some(&payload))?
        }
        None => {
            if kinds.is_empty() || kinds.iter().any(|kind| kind.needs_binary()) {
                bail!(
                    "no binary given\nhint: build one as described in docs/src/development/release.md and pass `--binary FILE`"
                );
            }
            write_packages(&options, &kinds, None)?
        }
    };
    write_sums(&out)?;
    for package in &written {
        let bytes = fs_err::metadata(out.join(&package.name))?.len();
        let same = if package.has_binary { "  same binary inside" } else { "" };
        shell::say(&format!("{:>7.1} MB  {}{same}", bytes as f64 / 1e6, package.name));
    }
    shell::say(&out.join(SUMS).display().to_string());
    Ok(())
}

fn write_packages(
    options: &PackageOptions<'_>,
    kinds: &[PackageKind],
    payload: Option<&PackagePayload>,
) -> Result<Vec<WrittenPackage>> {
    let mut written = Vec::new();
    for &kind in kinds {
        let first = written.len();
        match payload {
            _ if kind == PackageKind::InstallScript => {
                written.push(release_files::write_install_script(options)?);
            }
            _ if kind == PackageKind::Homebrew => {
                written.push(release_files::write_formula(options)?);
            }
            _ if kind == PackageKind::ClaudePlugin => {
                written.push(agent_packages::write_claude_plugin(options)?);
            }
            Some(payload) => write_with_binary(options, kind, payload, &mut written)?,
            None => bail!("{kind:?} packages need a binary"),
        }
        for package in &written[first..] {
            check_package(options, package, payload)?;
        }
    }
    Ok(written)
}

fn write_with_binary(
    options: &PackageOptions<'_>,
    kind: PackageKind,
    payload: &PackagePayload,
    written: &mut Vec<WrittenPackage>,
) -> Result<()> {
    if kind.needs_linux() && !payload.platform.is_linux() {
        bail!("{kind:?} packages need a Linux binary");
    }
    match kind {
        PackageKind::Wheel => written.extend(archives::write_wheels(options, payload)?),
        PackageKind::Npm => written.extend(archives::write_npm(options, payload)?),
        PackageKind::Tarball => written.push(archives::write_tarball(options, payload)?),
        PackageKind::Container => written.push(archives::write_container(options, payload)?),
        PackageKind::Deb => written.push(system_packages::write_deb(options, payload)?),
        PackageKind::Rpm => written.push(system_packages::write_rpm(options, payload)?),
        PackageKind::Mcpb => written.push(agent_packages::write_mcpb(options, payload)?),
        PackageKind::ClaudePlugin | PackageKind::InstallScript | PackageKind::Homebrew => {}
    }
    Ok(())
}

/// Opens a package again: it contains exactly the given binary and is not too large.
fn check_package(
    options: &PackageOptions<'_>,
    package: &WrittenPackage,
    payload: Option<&PackagePayload>,
) -> Result<()> {
    let path = options.out.join(&package.name);
    if package.has_binary {
        let found = inspect::binary_of(package.kind, &path)
            .with_context(|| format!("cannot read the binary of {}", package.name))?;
        let expected = payload.map(|payload| sha256(&payload.binary));
        if Some(sha256(&found)) != expected {
            bail!("{} contains another binary than the one given", package.name);
        }
    }
    agent_packages::check(package.kind, &path)
        .with_context(|| format!("{} is not valid", package.name))?;
    let bytes = usize::try_from(fs_err::metadata(&path)?.len())?;
    let is_in_registry = matches!(package.kind, PackageKind::Wheel | PackageKind::Npm);
    if is_in_registry && bytes > MAX_REGISTRY_BYTES {
        bail!("{} is too large: {bytes} bytes (limit: {MAX_REGISTRY_BYTES})", package.name);
    }
    Ok(())
}

/// The time of the last commit, unless `SOURCE_DATE_EPOCH` sets another one.
fn source_date_epoch(root: &Path) -> Result<u64> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => shell::read(root, &["git", "log", "-1", "--format=%ct"])?,
    };
    text.trim().parse().with_context(|| format!("`{}` is not a Unix time", text.trim()))
}

/// Writes the checksums of all files in the format of `sha256sum --check`.
fn write_sums(out: &Path) -> Result<()> {
    let mut lines = Vec::new();
    for entry in fs_err::read_dir(out)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && name != SUMS {
            lines.push((name, sha256(&fs_err::read(entry.path())?)));
        }
    }
    lines.sort();
    let text: String = lines.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
    fs_err::write(out.join(SUMS), text)?;
    Ok(())
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[path = "package_tests.rs"]
mod tests;
