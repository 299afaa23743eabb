//! Packages for system package managers, written by the tools of their distributions.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use flate2::{Compression, GzBuilder};
use std::io::Write as _;

use super::payload::{PackageFile, PackagePayload};
use super::{PackageKind, PackageOptions, SUMMARY, VERSION, WrittenPackage};
use crate::shell;

const MAINTAINER: &str = "Moothall contributors <maintainers@moothall.invalid>";

/// `dpkg-deb` clamps times to `SOURCE_DATE_EPOCH` and sorts files.
pub(crate) fn write_deb(
    options: &PackageOptions<'_>,
    payload: &PackagePayload,
) -> Result<WrittenPackage> {
    let arch = payload.platform.deb;
    let mut files = system_files(options, payload, "deb")?;
    let documents = "usr/share/doc/moothall";
    files.push(PackageFile::new(format!("{documents}/copyright"), copyright(options)?));
    let changelog = format!(
        "moothall ({VERSION}) unstable; urgency=medium\n\n  * Release {VERSION}. The repository has the list of changes.\n\n -- {MAINTAINER}  {}\n",
        rfc_2822(options)?
    );
    files.push(PackageFile::new(format!("{documents}/changelog.gz"), gzip(changelog.as_bytes())?));
    files.push(PackageFile::new(
        "usr/share/lintian/overrides/moothall",
        fs_err::read(options.root.join("deploy/package/lintian-overrides"))?,
    ));
    let kibibytes: usize = files.iter().map(|file| file.bytes.len().div_ceil(1024)).sum();
    let glibc = payload.platform.glibc.map(|glibc| format!("Depends: libc6 (>= {glibc})\n"));
    let control = format!(
        "Package: moothall\nVersion: {VERSION}\nArchitecture: {arch}\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {kibibytes}\n{}Recommends: ca-certificates\n\
         Suggests: mmdebstrap, qemu-system-x86, squashfs-tools\nSection: utils\nPriority: optional\n\
         Homepage: {}\nDescription: {SUMMARY}\n \
         Moothall compares numbers in a memo with SEC filings, debates strategies,\n \
         runs generated programs in sandboxes and reviews the file edits of agents.\n \
         Every result has a receipt that can be verified offline.\n",
        glibc.unwrap_or_default(),
        options.repository,
    );
    files.push(PackageFile::new("DEBIAN/control", control));
    files.push(PackageFile::program(
        "DEBIAN/postinst",
        fs_err::read(options.root.join("deploy/package/postinst"))?,
    ));
    let folder = stage(options, "deb", &files)?;
    let name = format!("moothall_{VERSION}_{arch}.deb");
    // One thread: the number of threads changes the bytes.
    let build = ["dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build"];
    let (from, to) = (folder.path(), options.out.join(&name));
    run_tool(options, &[&build[..], &[shell::text(from)?, shell::text(&to)?]].concat())?;
    Ok(WrittenPackage { name, kind: PackageKind::Deb, has_binary: true })
}

pub(crate) fn write_rpm(
    options: &PackageOptions<'_>,
    payload: &PackagePayload,
) -> Result<WrittenPackage> {
    let arch = payload.platform.rpm;
    let files = system_files(options, payload, "rpm")?;
    let mut listed: Vec<String> = files.iter().map(|file| format!("/{}", file.path)).collect();
    listed.sort();
    let spec = fs_err::read_to_string(options.root.join("deploy/package/moothall.spec"))?
        .replace("@VERSION@", VERSION)
        .replace("@SUMMARY@", SUMMARY)
        .replace("@URL@", options.repository)
        .replace("@FILES@", &listed.join("\n"));
    let folder = stage(options, "rpm", &files)?;
    let work = tempfile_in(options, "rpmbuild")?;
    let spec_file = work.path().join("moothall.spec");
    fs_err::write(&spec_file, spec)?;
    let name = format!("moothall-{VERSION}-1.{arch}.rpm");
    let top = format!("_topdir {}", work.path().display());
    let out = format!("_rpmdir {}", work.path().display());
    let staged = format!("staged {}", folder.path().display());
    let mut line = vec!["rpmbuild", "-bb", "--quiet", "--target", arch];
    for define in [top.as_str(), out.as_str(), staged.as_str()] {
        line.extend(["--define", define]);
    }
    for define in [
        "_buildhost localhost",
        "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
        "use_source_date_epoch_as_buildtime 1",
        "clamp_mtime_to_source_date_epoch 1",
    ] {
        line.extend(["--define", define]);
    }
    line.push(shell::text(&spec_file)?);
    run_tool(options, &line)?;
    fs_err::copy(work.path().join(&name), options.out.join(&name))?;
    Ok(WrittenPackage { name, kind: PackageKind::Rpm, has_binary: true })
}

/// The files below `/` that both formats share. Manual pages are compressed, as both require.
fn system_files(
    options: &PackageOptions<'_>,
    payload: &PackagePayload,
    kind: &str,
) -> Result<Vec<PackageFile>> {
    let deploy = options.root.join("deploy/package");
    let mut files = Vec::new();
    for mut file in payload.tree(kind) {
        if file.path.starts_with("share/man/") {
            file = PackageFile::new(format!("{}.gz", file.path), gzip(&file.bytes)?);
        }
        if file.path.starts_with("share/zsh/site-functions/") && kind == "deb" {
            file.path = file.path.replace("site-functions", "vendor-completions");
        }
        let is_license = file.path.starts_with("share/doc/moothall/LICENSE-");
        // Debian has these texts in its `copyright` file and in common-licenses.
        if !(kind == "deb" && is_license) {
            files.push(file.below("usr"));
        }
    }
    for (from, to) in [
        ("moothall.service", "usr/lib/systemd/system/moothall.service"),
        ("sysusers.conf", "usr/lib/sysusers.d/moothall.conf"),
    ] {
        files.push(PackageFile::new(to, fs_err::read(deploy.join(from))?));
    }
    Ok(files)
}

fn copyright(options: &PackageOptions<'_>) -> Result<String> {
    let mit = fs_err::read_to_string(options.root.join("LICENSE-MIT"))?;
    let mit: String = mit
        .lines()
        .map(|line| match line.trim_end() {
            "" => " .\n".to_owned(),
            line => format!(" {line}\n"),
        })
        .collect();
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: moothall\nSource: {}\n\n\
         Files: *\nCopyright: Moothall contributors\nLicense: MIT or Apache-2.0\n\n\
         License: MIT\n{mit}\n\
         License: Apache-2.0\n On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.\n",
        options.repository
    ))
}

fn rfc_2822(options: &PackageOptions<'_>) -> Result<String> {
    let time = format!("--date=@{}", options.epoch);
    let text = shell::read(options.root, &["date", "--utc", "--rfc-email", &time])?;
    Ok(text.trim().to_owned())
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut compressor = GzBuilder::new().write(Vec::new(), Compression::best());
    compressor.write_all(bytes)?;
    Ok(compressor.finish()?)
}

/// Writes the files to a temporary directory next to the packages.
fn stage(
    options: &PackageOptions<'_>,
    name: &str,
    files: &[PackageFile],
) -> Result<tempfile::TempDir> {
    let folder = tempfile_in(options, name)?;
    set_mode(folder.path(), 0o755)?;
    for file in files {
        let path = folder.path().join(&file.path);
        let parents = path.parent().context("file without a directory")?;
        fs_err::create_dir_all(parents)?;
        fs_err::write(&path, &file.bytes)?;
        set_mode(&path, file.mode)?;
        for parent in parents.ancestors().take_while(|parent| *parent != folder.path()) {
            set_mode(parent, 0o755)?;
        }
    }
    Ok(folder)
}

fn tempfile_in(options: &PackageOptions<'_>, name: &str) -> Result<tempfile::TempDir> {
    let prefix = format!(".{name}-");
    Ok(tempfile::Builder::new().prefix(&prefix).tempdir_in(options.out)?)
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    Ok(())
}

fn run_tool(options: &PackageOptions<'_>, line: &[&str]) -> Result<()> {
    let (program, arguments) = line.split_first().context("empty command line")?;
    let output = Command::new(program)
        .args(arguments)
        .env("SOURCE_DATE_EPOCH", options.epoch.to_string())
        .current_dir(options.root)
        .output()
        .with_context(|| {
            let package = if *program == "rpmbuild" { "rpm" } else { "dpkg" };
            format!(
                "cannot start `{program}`\nhint: on Debian and Ubuntu, run `apt install {package}`"
            )
        })?;
    if !output.status.success() {
        bail!("`{program}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
