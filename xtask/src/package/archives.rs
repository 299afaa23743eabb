//! Packages that are plain archives: the wheel, npm packages, the tarball and the build context of
//! the container.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::payload::{PackageFile, PackagePayload, install_marker};
use super::platform::npm_packages;
use super::{PackageKind, PackageOptions, SUMMARY, VERSION, WrittenPackage};

pub(crate) const LICENSE: &str = "MIT OR Apache-2.0";

/// The wheel of the program, and one of the PDF program if it was given. The second one is separate
/// because both together exceed the size limit; `moothall[pdf]` installs it.
pub(crate) fn write_wheels(
    options: &PackageOptions<'_>,
    payload: &PackagePayload,
) -> Result<Vec<WrittenPackage>> {
    let mut written = vec![write_wheel(
        options,
        payload,
        &WheelProject {
            name: "moothall",
            summary: SUMMARY,
            more: format!(
                "Provides-Extra: pdf\nRequires-Dist: moothall-pdf=={VERSION}; extra == 'pdf'\n"
            ),
            readme: &payload.readme,
            binary: &payload.binary,
            has_marker: true,
        },
    )?];
    if let Some(pdf) = &payload.pdf {
        written.push(write_wheel(
            options,
            payload,
            &WheelProject {
                name: "moothall-pdf",
                summary: "PDF reports for moothall",
                more: String::new(),
                readme: "Typesets PDF reports for `moothall`. Install it with `pip install 'moothall[pdf]'`.\n",
                binary: pdf,
                has_marker: false,
            },
        )?);
    }
    Ok(written)
}

struct WheelProject<'a> {
    name: &'a str,
    summary: &'a str,
    more: String,
    readme: &'a str,
    binary: &'a [u8],
    has_marker: bool,
}

fn write_wheel(
    options: &PackageOptions<'_>,
    payload: &PackagePayload,
    project: &WheelProject<'_>,
) -> Result<WrittenPackage> {
    let WheelProject { name, summary, more, readme, binary, has_marker } = project;
    let stem = format!("{}-{VERSION}", name.replace('-', "_"));
    let (data, info) = (format!("{stem}.data"), format!("{stem}.dist-info"));
    let tag = payload.platform.wheel_tag();
    let mut files = vec![PackageFile::program(format!("{data}/scripts/{name}"), *binary)];
    if *has_marker {
        files.push(install_marker("wheel").below(&format!("{data}/data")));
    }
    let metadata = format!(
        "Metadata-Version: 2.4\nName: {name}\nVersion: {VERSION}\nSummary: {summary}\n\
         Project-URL: Homepage, {}\nLicense-Expression: {LICENSE}\n\
         License-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\nRequires-Python: >=3.8\n{more}\
         Description-Content-Type: text/markdown\n\n{readme}",
        options.repository
    );
    files.push(PackageFile::new(format!("{info}/METADATA"), metadata));
    let tags: String = tag.split('.').map(|tag| format!("Tag: py3-none-{tag}\n")).collect();
    let wheel = format!("Wheel-Version: 1.0\nGenerator: moothall\nRoot-Is-Purelib: false\n{tags}");
    files.push(PackageFile::new(format!("{info}/WHEEL"), wheel));
    files.extend(payload.licenses().map(|file| file.below(&format!("{info}/licenses"))));
    let mut record = String::new();
    for file in &files {
        let hash = base64_url(&Sha256::digest(&file.bytes));
        record.push_str(&format!("{},sha256={hash},{}\n", file.path, file.bytes.len()));
    }
    record.push_str(&format!("{info}/RECORD,,\n"));
    files.push(PackageFile::new(format!("{info}/RECORD"), record));
    let file_name = format!("{stem}-py3-none-{tag}.whl");
    fs_err::write(options.out.join(&file_name), zip_archive(&files)?)?;
    Ok(WrittenPackage { name: file_name, kind: PackageKind::Wheel, has_binary: *has_marker })
}

/// Base64 for URLs, without padding, as `RECORD` requires.
fn base64_url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .enumerate()
            .fold(0, |word, (at, byte)| word | u32::from(*byte) << (16 - 8 * at));
        for at in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(word >> (18 - 6 * at) & 63) as usize]));
        }
    }
    text
}

/// Entries keep their order: the metadata of a wheel belongs at its end.
pub(crate) fn zip_archive(files: &[PackageFile]) -> Result<Vec<u8>> {
    let mut archive = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for file in files {
        // The default time is the first day of 1980, the same in every build.
        let settings = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(9))
            .unix_permissions(file.mode);
        archive.start_file(&file.path, settings)?;
        archive.write_all(&file.bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}

/// The launcher `moothall`, and the package with the binary. npm installs the second one as an
/// optional dependency for the right platform, so no script runs at installation.
pub(crate) fn write_npm(
    options: &PackageOptions<'_>,
    payload: &PackagePayload,
) -> Result<Vec<WrittenPackage>> {
    let platform = &payload.platform;
    let repository = json!({ "type": "git", "url": format!("git+{}.git", options.repository) });
    let binaries: serde_json::Map<String, Value> =
        npm_packages().map(|name| (name, VERSION.into())).collect();
    let launcher = json!({
        "name": "moothall",
        "version": VERSION,
        "description": SUMMARY,
        "license": LICENSE,
        "repository": repository,
        "bin": { "moothall": "bin/moothall.js" },
        "files": ["bin"],
        "engines": { "node": ">=18" },
        "optionalDependencies": binaries,
    });
    let script = fs_err::read(options.root.join("deploy/package/launcher.js"))?;
    let mut launcher_files = vec![
        json_file("package.json", &launcher)?,
        PackageFile::new("README.md", payload.readme.clone()),
        PackageFile::program("bin/moothall.js", script),
    ];
    launcher_files.extend(payload.licenses());
    let launcher_name = format!("moothall-{VERSION}.tgz");
    write_tar(options, &launcher_name, below("package", launcher_files))?;

    let name = platform.npm_package();
    let mut binary = json!({
        "name": name,
        "version": VERSION,
        "description": format!("The moothall binary for {} {}", platform.npm_os, platform.npm_cpu),
        "license": LICENSE,
        "repository": repository,
        "files": ["bin", "share"],
        "os": [platform.npm_os],
        "cpu": [platform.npm_cpu],
        "preferUnplugged": true,
    });
    if platform.is_linux() {
        binary["libc"] = json!(["glibc"]);
    }
    let mut binary_files = vec![
        json_file("package.json", &binary)?,
        PackageFile::new(
            "README.md",
            format!("Part of `moothall` {VERSION}. Install `moothall` instead.\n"),
        ),
        PackageFile::program("bin/moothall", payload.binary.clone()),
        install_marker("npm"),
    ];
    binary_files.extend(payload.licenses());
    let binary_name = format!("{}-{VERSION}.tgz", name.trim_start_matches('@').replace('/', "-"));
    write_tar(options, &binary_name, below("package", binary_files))?;
    Ok(vec![
        WrittenPackage { name: launcher_name, kind: PackageKind::Npm, has_binary: false },
        WrittenPackage { name: binary_name, kind: PackageKind::Npm, has_binary: true },
    ])
}

pub(crate) fn write_tarball(
    options: &PackageOptions<'_>,
    payload: &PackagePayload,
) -> Result<WrittenPackage> {
    let name = tarball_name(payload.platform.target);
    let folder = name.trim_end_matches(".tar.gz").to_owned();
    write_tar(options, &name, below(&folder, payload.tree("tarball")))?;
    Ok(WrittenPackage { name, kind: PackageKind::Tarball, has_binary: true })
}

pub(crate) fn tarball_name(target: &str) -> String {
    format!("moothall-{VERSION}-{target}.tar.gz")
}

/// The build context: `podman build` reads it from standard input.
pub(crate) fn write_container(
    options: &PackageOptions<'_>,
    payload: &PackagePayload,
) -> Result<WrittenPackage> {
    let mut files = vec![
        PackageFile::new("Containerfile", fs_err::read(options.root.join("deploy/Containerfile"))?),
        PackageFile { path: "install.json".to_owned(), ..install_marker("container") },
    ];
    for mut file in payload.programs() {
        file.path = file.path.trim_start_matches("bin/").to_owned();
        files.push(file);
    }
    let name = format!("moothall-{VERSION}-container-{}.tar.gz", payload.platform.deb);
    write_tar(options, &name, files)?;
    Ok(WrittenPackage { name, kind: PackageKind::Container, has_binary: true })
}

pub(crate) fn below(folder: &str, files: Vec<PackageFile>) -> Vec<PackageFile> {
    files.into_iter().map(|file| file.below(folder)).collect()
}

pub(crate) fn json_file(path: &str, value: &Value) -> Result<PackageFile> {
    Ok(PackageFile::new(path, serde_json::to_string_pretty(value)? + "\n"))
}

/// Writes a compressed tar archive with sorted entries, one time and one owner.
pub(crate) fn write_tar(
    options: &PackageOptions<'_>,
    name: &str,
    mut files: Vec<PackageFile>,
) -> Result<()> {
    files.sort_by(|one, other| one.path.cmp(&other.path));
    // The header of gzip has neither a time nor a file name.
    let gzip = GzBuilder::new().write(Vec::new(), Compression::best());
    let mut archive = tar::Builder::new(gzip);
    for file in &files {
        let mut header = tar::Header::new_ustar();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(file.mode);
        header.set_mtime(options.epoch);
        header.set_uid(0);
        header.set_gid(0);
        archive
            .append_data(&mut header, &file.path, file.bytes.as_slice())
            .with_context(|| format!("cannot add {}", file.path))?;
    }
    let bytes = archive.into_inner()?.finish()?;
    fs_err::write(options.out.join(name), bytes)?;
    Ok(())
}
