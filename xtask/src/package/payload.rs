//! The files of a package: the binary, manual pages, completions, licenses.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::VERSION;
use super::platform::PackagePlatform;
use crate::shell;

/// A file of a package, with its path below the package's root.
#[derive(Debug, Clone)]
pub(crate) struct PackageFile {
    pub(crate) path: String,
    pub(crate) mode: u32,
    pub(crate) bytes: Vec<u8>,
}

impl PackageFile {
    pub(crate) fn new(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), mode: 0o644, bytes: bytes.into() }
    }

    pub(crate) fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { mode: 0o755, ..Self::new(path, bytes) }
    }

    pub(crate) fn below(mut self, folder: &str) -> Self {
        self.path = format!("{folder}/{}", self.path);
        self
    }
}

/// What packages contain.
pub(crate) struct PackagePayload {
    pub(crate) platform: PackagePlatform,
    pub(crate) binary: Vec<u8>,
    pub(crate) pdf: Option<Vec<u8>>,
    pub(crate) readme: String,
    licenses: Vec<PackageFile>,
    /// Manual pages and completions, below `/usr` or another prefix.
    shared: Vec<PackageFile>,
}

impl PackagePayload {
    pub(crate) fn read(
        root: &Path,
        binary: &Path,
        pdf: Option<&Path>,
        any_glibc: bool,
    ) -> Result<Self> {
        let binary = fs_err::canonicalize(binary)?;
        let bytes = fs_err::read(&binary)?;
        let platform = PackagePlatform::of(&bytes, any_glibc)
            .with_context(|| format!("cannot package `{}`", binary.display()))?;
        let pdf = pdf.map(fs_err::read).transpose()?;
        if let Some(pdf) = &pdf {
            let other =
                PackagePlatform::of(pdf, any_glibc).context("cannot package the PDF binary")?;
            if other.target != platform.target {
                bail!(
                    "the binaries are for different platforms: {} and {}",
                    platform.target,
                    other.target
                );
            }
        }
        let program = shell::text(&binary)?;
        let version = shell::read(root, &[program, "--version"])
            .context("the binary does not run on this machine; package it where it runs")?;
        if version.trim() != format!("moothall {VERSION}") {
            bail!("expected moothall {VERSION}, but the binary is `{}`", version.trim());
        }
        let license = |name: &str| -> Result<PackageFile> {
            Ok(PackageFile::new(name, fs_err::read(root.join(name))?))
        };
        Ok(Self {
            platform,
            binary: bytes,
            pdf,
            readme: fs_err::read_to_string(root.join("README.md"))?,
            licenses: vec![license("LICENSE-APACHE")?, license("LICENSE-MIT")?],
            shared: shared_files(root, program)?,
        })
    }

    /// `bin` and `share` below a prefix.
    pub(crate) fn tree(&self, kind: &str) -> Vec<PackageFile> {
        let mut files = self.programs();
        files.extend(self.shared.iter().cloned());
        files.push(install_marker(kind));
        let documents = self.licenses().chain([PackageFile::new("README.md", self.readme.clone())]);
        files.extend(documents.map(|file| file.below("share/doc/moothall")));
        files
    }

    pub(crate) fn programs(&self) -> Vec<PackageFile> {
        let mut files = vec![PackageFile::program("bin/moothall", self.binary.clone())];
        files.extend(
            self.pdf.iter().map(|pdf| PackageFile::program("bin/moothall-pdf", pdf.clone())),
        );
        files
    }

    pub(crate) fn licenses(&self) -> impl Iterator<Item = PackageFile> {
        self.licenses.iter().cloned()
    }
}

/// Tells `moothall doctor` how the program was installed. Its place is relative to the binary.
pub(crate) fn install_marker(kind: &str) -> PackageFile {
    let marker = json!({ "kind": kind, "version": VERSION });
    PackageFile::new("share/moothall/install.json", format!("{marker}\n"))
}

/// Manual pages and completions, printed by the binary itself.
fn shared_files(root: &Path, program: &str) -> Result<Vec<PackageFile>> {
    let main_page = shell::read(root, &[program, "man"])?;
    let mut files = Vec::new();
    for name in subcommands(&main_page) {
        let page = shell::read(root, &[program, "man", &name])?;
        files.push(PackageFile::new(format!("share/man/man1/moothall-{name}.1"), page));
    }
    files.push(PackageFile::new("share/man/man1/moothall.1", main_page));
    for (shell_name, path) in [
        ("bash", "share/bash-completion/completions/moothall"),
        ("fish", "share/fish/vendor_completions.d/moothall.fish"),
        ("zsh", "share/zsh/site-functions/_moothall"),
    ] {
        let script = shell::read(root, &[program, "completions", shell_name])?;
        files.push(PackageFile::new(path, script));
    }
    Ok(files)
}

/// The commands that the main manual page refers to, in lines such as `moothall\-check(1)`.
fn subcommands(main_page: &str) -> impl Iterator<Item = String> {
    let name = |line: &str| {
        Some(line.strip_prefix(r"moothall\-")?.strip_suffix("(1)")?.replace(r"\-", "-"))
    };
    main_page.lines().filter_map(name)
}
