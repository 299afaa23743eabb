//! Downloads and unpacks packages, leaving out selected dependencies.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::super::manifest::DebianPackage;
use super::super::recipe::ImageRecipe;
use super::super::{apt_sources, tree};
use super::ImageBuilder;
use crate::SandboxError;

/// Makes `/bin`, `/lib` and so on links into `/usr` before anything is unpacked, and adds the apt
/// source of the empty packages.
const SETUP: &str = "cd \"$1\" && cp \"$MOOTHALL_WITHOUT\" etc/apt/sources.list.d/ && \
    for part in bin sbin lib lib64; do mkdir -p \"usr/$part\" && ln -s \"usr/$part\" \"$part\"; done";

/// Version of the empty packages, higher than any real version.
const EMPTY_VERSION: &str = "9999";

#[derive(Debug, Clone, Copy)]
pub(crate) struct PackageSelection<'a> {
    pub(crate) packages: &'a BTreeSet<String>,
    pub(crate) without: &'a BTreeSet<String>,
}

impl ImageBuilder<'_> {
    /// Unpacks packages into `target` and returns them.
    pub(crate) async fn unpack(
        &self,
        recipe: &ImageRecipe,
        area: &Path,
        target: &Path,
        wanted: PackageSelection<'_>,
    ) -> Result<Vec<DebianPackage>, SandboxError> {
        let temporary = area.join("temporary");
        fs_err::create_dir_all(&temporary)
            .map_err(SandboxError::host("cannot create the folder for packages"))?;
        let include: Vec<_> = wanted.packages.iter().map(String::as_str).collect();
        let mut command = self.tools.command(self.tools.find("mmdebstrap")?);
        command
            .env("TMPDIR", &temporary)
            .env("MOOTHALL_WITHOUT", self.empty_packages(area, wanted.without).await?)
            .args(["--variant=extract", "--format=directory", "--architectures=amd64"])
            // The only mode without namespaces, mounts and chroot. mmdebstrap warns about it
            // because of package scripts, but this variant runs none.
            .args(["--mode=chrootless", "--skip=check/chrootless"])
            // Package versions are read from the names of the cached files.
            .arg("--skip=cleanup/apt/cache")
            .arg("--aptopt=Acquire::Languages \"none\"")
            .arg(format!("--setup-hook={SETUP}"))
            .arg(format!("--include={}", include.join(",")))
            .arg(&recipe.suite)
            .arg(target);
        if !self.options.mirrors.is_empty() {
            command.args(&self.options.mirrors);
        } else if let Some(sources) = apt_sources::of_host(Path::new("/etc"), &recipe.suite) {
            let file = area.join("host.sources");
            fs_err::write(&file, sources)
                .map_err(SandboxError::host("cannot write apt's sources"))?;
            command.arg(file);
        }
        let what = format!("packages of image `{}` cannot be fetched", recipe.name);
        self.tools.run_checked(&what, &mut command).await?;
        packages_in(&target.join("var/cache/apt/archives"), wanted.without)
            .map_err(SandboxError::host("cannot list the packages"))
    }

    /// Builds an empty package for each one left out, so that apt considers the dependency
    /// satisfied, and writes an apt source file for them.
    async fn empty_packages(
        &self,
        area: &Path,
        without: &BTreeSet<String>,
    ) -> Result<PathBuf, SandboxError> {
        let broken = || SandboxError::host("cannot build an empty package");
        let repository = area.join("empty-packages");
        fs_err::create_dir_all(&repository).map_err(broken())?;
        let mut index = String::new();
        for name in without {
            let control = format!(
                "Package: {name}\nVersion: {EMPTY_VERSION}\nArchitecture: all\nMaintainer: nobody\nDescription: empty\n"
            );
            let folder = area.join("empty").join(name);
            make_control(&folder.join("DEBIAN"), &control).map_err(broken())?;
            let file = format!("{name}_{EMPTY_VERSION}_all.deb");
            let out = repository.join(&file);
            let mut command = self.tools.command(self.tools.find("dpkg-deb")?);
            command.args(["--root-owner-group", "--build"]).arg(&folder).arg(&out);
            self.tools.run_checked("cannot build an empty package", &mut command).await?;
            let (size, sha256) = size_and_hash(&out).map_err(broken())?;
            // Writing to a String cannot fail.
            let _ =
                writeln!(index, "{control}Filename: ./{file}\nSize: {size}\nSHA256: {sha256}\n");
        }
        fs_err::write(repository.join("Packages"), index).map_err(broken())?;
        let sources = area.join("empty-packages.sources");
        // `Trusted: yes` is safe because this process has just created the repository and is its
        // only writer.
        let address = address_of(&repository);
        let text = format!("Types: deb\nURIs: copy:{address}\nSuites: ./\nTrusted: yes\n");
        fs_err::write(&sources, text).map_err(broken())?;
        Ok(sources)
    }
}

fn make_control(folder: &Path, control: &str) -> io::Result<()> {
    fs_err::create_dir_all(folder)?;
    // dpkg-deb rejects the permissions that a strict umask produces.
    fs_err::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?;
    fs_err::write(folder.join("control"), control)
}

fn size_and_hash(path: &Path) -> io::Result<(u64, moothall_core::Sha256Hex)> {
    Ok((fs_err::metadata(path)?.len(), tree::hash_file(path)?))
}

/// Percent-encodes a path for use in a URI.
fn address_of(path: &Path) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes.fold(String::new(), |mut address, &byte| {
        // Writing to a String cannot fail.
        let _ = if is_plain(byte) {
            write!(address, "{}", char::from(byte))
        } else {
            write!(address, "%{byte:02X}")
        };
        address
    })
}

fn packages_in(cache: &Path, without: &BTreeSet<String>) -> io::Result<Vec<DebianPackage>> {
    let mut packages = Vec::new();
    for entry in fs_err::read_dir(cache)? {
        let name = entry?.file_name();
        let package = name.to_str().and_then(DebianPackage::of_file_name);
        packages.extend(package.filter(|package| !without.contains(&package.name)));
    }
    packages.sort();
    Ok(packages)
}

#[cfg(test)]
#[path = "packages_tests.rs"]
mod tests;
