//! Reads the binary out of a package, without the code that wrote it.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use flate2::read::GzDecoder;

use super::PackageKind;

pub(crate) fn binary_of(kind: PackageKind, path: &Path) -> Result<Vec<u8>> {
    match kind {
        PackageKind::Wheel => from_zip(path, ".data/scripts/moothall"),
        PackageKind::Mcpb => from_zip(path, "server/moothall"),
        PackageKind::Npm | PackageKind::Tarball | PackageKind::Container => {
            from_tar(GzDecoder::new(fs_err::File::open(path)?))
        }
        PackageKind::Deb => {
            let list = Command::new("dpkg-deb").arg("--fsys-tarfile").arg(path).output()?;
            if !list.status.success() {
                bail!("`dpkg-deb` failed: {}", String::from_utf8_lossy(&list.stderr).trim());
            }
            from_tar(list.stdout.as_slice())
        }
        PackageKind::Rpm => from_rpm(path),
        PackageKind::ClaudePlugin | PackageKind::InstallScript | PackageKind::Homebrew => {
            bail!("it contains no binary")
        }
    }
}

fn from_zip(path: &Path, ending: &str) -> Result<Vec<u8>> {
    let mut archive = zip::ZipArchive::new(fs_err::File::open(path)?)?;
    let names: Vec<String> =
        archive.file_names().map(|name| Ok(name?.into_owned())).collect::<Result<_>>()?;
    let name = names.iter().find(|name| name.ends_with(ending));
    let mut entry = archive.by_name(name.context("no script `moothall`")?)?;
    if entry.unix_mode().is_none_or(|mode| mode & 0o111 == 0) {
        bail!("the script `moothall` is not executable");
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn from_tar(archive: impl std::io::Read) -> Result<Vec<u8>> {
    for entry in tar::Archive::new(archive).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        // At the top of a container's build context, in `bin` everywhere else.
        if path == Path::new("moothall") || path.ends_with("bin/moothall") {
            if entry.header().mode()? & 0o111 == 0 {
                bail!("the binary is not executable");
            }
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            return Ok(bytes);
        }
    }
    bail!("no file `bin/moothall`")
}

fn from_rpm(path: &Path) -> Result<Vec<u8>> {
    let start = |command: &mut Command, name: &str| {
        command.spawn().with_context(|| {
            format!("cannot start `{name}`\nhint: on Debian and Ubuntu, run `apt install cpio rpm`")
        })
    };
    let mut convert = start(Command::new("rpm2cpio").arg(path).stdout(Stdio::piped()), "rpm2cpio")?;
    let archive = convert.stdout.take().context("no output of rpm2cpio")?;
    let unpack = Command::new("cpio")
        .args(["--extract", "--quiet", "--to-stdout", "./usr/bin/moothall"])
        .stdin(archive)
        .output()
        .context("cannot start `cpio`\nhint: on Debian and Ubuntu, run `apt install cpio rpm`")?;
    if !convert.wait()?.success() || !unpack.status.success() {
        bail!("cannot unpack the file: {}", String::from_utf8_lossy(&unpack.stderr).trim());
    }
    Ok(unpack.stdout)
}
