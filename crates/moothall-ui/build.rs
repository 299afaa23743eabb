//! Embeds the built web UI in the binary.
//!
//! `cargo xtask web` builds it with Node; this script only picks up the result, so building the
//! product does not require Node. If the web UI has not been built, a page that says so is embedded
//! instead.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

/// Output folder of `cargo xtask web`, relative to this crate.
const BUILT: &str = "../../web/dist";

/// Stamp file in the target folder, updated by `cargo xtask web`. This script creates it if it is
/// missing, because cargo reruns a script on every build if a watched file does not exist.
const STAMP: &str = "ui/built";

const HOW: &str = "run `cargo xtask web`";

fn main() -> Result<()> {
    say("rerun-if-env-changed=MOOTHALL_REQUIRE_UI");
    say("rerun-if-changed=build.rs");
    say("rerun-if-changed=src/missing.html");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").context("OUT_DIR is not set")?);
    watch_stamp(&out)?;
    let built = Path::new(BUILT);
    let mut table = String::from("static FILES: &[EmbeddedFile] = &[\n");
    if built.join("index.html").exists() {
        say(&format!("rerun-if-changed={BUILT}/index.html"));
        for file in files_below(built)? {
            write_row(&mut table, &out, built, &file)?;
        }
    } else if std::env::var_os("MOOTHALL_REQUIRE_UI").is_some() {
        bail!("the web UI is not built; {HOW}");
    } else {
        say(&format!("warning=the web UI is not embedded; {HOW}"));
        let page = Path::new("src/missing.html");
        write_row(&mut table, &out, Path::new("src"), page)?;
        table = table.replace("\"/missing.html\"", "\"/index.html\"");
    }
    table.push_str("];\n");
    fs_err::write(out.join("files.rs"), table)?;
    Ok(())
}

fn watch_stamp(out: &Path) -> Result<()> {
    let target = out
        .ancestors()
        // Cargo writes `CACHEDIR.TAG` only to folders that it created itself.
        .find(|folder| {
            ["CACHEDIR.TAG", ".rustc_info.json"].iter().any(|name| folder.join(name).exists())
        })
        .context("no target folder above OUT_DIR")?;
    let stamp = target.join(STAMP);
    if !stamp.exists() {
        fs_err::create_dir_all(target.join("ui"))?;
        fs_err::write(&stamp, "")?;
    }
    say(&format!("rerun-if-changed={}", stamp.display()));
    Ok(())
}

/// Lists all files of a folder in a fixed order, without precompressed copies.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let path = entry?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            found.extend(files_below(&path)?);
        } else if !matches!(extension, Some("br" | "gz")) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn write_row(table: &mut String, out: &Path, folder: &Path, file: &Path) -> Result<()> {
    let path = file.strip_prefix(folder)?.to_string_lossy().replace('\\', "/");
    let bytes = fs_err::read(file)?;
    let mut tag = String::new();
    for byte in Sha256::digest(&bytes).iter().take(12) {
        write!(tag, "{byte:02x}")?;
    }
    let packed = |extension: &str| -> Result<String> {
        let mut name = file.as_os_str().to_owned();
        name.push(extension);
        let name = PathBuf::from(name);
        Ok(match name.exists() {
            true => format!("Some({})", include(out, folder, &name)?),
            false => "None".to_owned(),
        })
    };
    writeln!(
        table,
        "    EmbeddedFile {{ path: \"/{path}\", tag: \"{tag}\", plain: {}, br: {}, gzip: {} }},",
        include(out, folder, file)?,
        packed(".br")?,
        packed(".gz")?,
    )?;
    Ok(())
}

/// Copies a file to the output folder and returns the code that includes it. `cargo xtask web`
/// empties its output folder, possibly before the compiler has read the file.
fn include(out: &Path, folder: &Path, file: &Path) -> Result<String> {
    let copy = out.join("files").join(file.strip_prefix(folder)?);
    fs_err::create_dir_all(copy.parent().context("the file has no parent folder")?)?;
    fs_err::copy(file, &copy)?;
    Ok(format!("include_bytes!({copy:?})"))
}

/// Prints a cargo instruction. Errors are ignored: the pipe is closed only when cargo has ended.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "cargo::{line}");
}
