//! Embeds the guest agent that runs inside sandboxes, so that users install a single file, and the
//! digests of the images of a release.
//!
//! `cargo xtask guest` builds the agent. A build script cannot, because the agent needs different
//! compiler flags. This script embeds the existing binary and warns if it is missing or older than
//! its sources.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};

/// Output of `cargo xtask guest`, relative to the target directory.
const AGENT: &str = "guest/moothall-guest";

/// Cargo's own output. Its timestamp is updated by every build, even one that changed nothing.
const BUILT: &str = "guest/x86_64-unknown-linux-gnu/guest/moothall-guest";

/// Changes whenever a different agent is built, or its sources changed without effect. Created here
/// if missing, because cargo reruns a build script on every build while a `rerun-if-changed` file
/// does not exist.
const STAMP: &str = "guest/built";

/// Sources of the agent, relative to this crate.
const SOURCES: [&str; 10] = [
    "../moothall-guest/Cargo.toml",
    "../moothall-guest/src",
    "../moothall-core/Cargo.toml",
    "../moothall-core/src",
    "../moothall-evidence/Cargo.toml",
    "../moothall-evidence/src",
    "../moothall-gate/Cargo.toml",
    "../moothall-gate/src",
    "../moothall-types/Cargo.toml",
    "../moothall-types/src",
];

const HOW: &str = "run `cargo xtask guest`";

fn main() -> Result<()> {
    say("rerun-if-env-changed=MOOTHALL_GUEST");
    say("rerun-if-env-changed=MOOTHALL_REQUIRE_GUEST");
    say("rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").context("cargo sets OUT_DIR")?);
    let agent = match std::env::var_os("MOOTHALL_GUEST") {
        Some(named) => Some(PathBuf::from(named)),
        None => find(&out)?,
    };
    let bytes = match &agent {
        Some(agent) => {
            say(&format!("rerun-if-changed={}", agent.display()));
            fs_err::copy(agent, out.join("moothall-guest"))?;
            "Some(include_bytes!(concat!(env!(\"OUT_DIR\"), \"/moothall-guest\")))"
        }
        None if std::env::var_os("MOOTHALL_REQUIRE_GUEST").is_some() => {
            bail!("the guest agent is not built; {HOW}")
        }
        None => {
            say(&format!("warning=the guest agent is not embedded; {HOW}"));
            "None"
        }
    };
    let code = format!(
        "/// The guest agent, if it was built before this crate.\n\
         pub(crate) static GUEST: Option<&[u8]> = {bytes};\n"
    );
    fs_err::write(out.join("guest_bytes.rs"), code)?;
    write_image_digests(&out)
}

/// `MOOTHALL_IMAGE_DIGESTS` names a file with a line `SHA256  NAME` for each image of the release.
fn write_image_digests(out: &Path) -> Result<()> {
    say("rerun-if-env-changed=MOOTHALL_IMAGE_DIGESTS");
    let mut rows = String::new();
    if let Some(file) = std::env::var_os("MOOTHALL_IMAGE_DIGESTS") {
        let file = PathBuf::from(file);
        say(&format!("rerun-if-changed={}", file.display()));
        for line in fs_err::read_to_string(&file)?.lines() {
            let (digest, name) = line.split_once("  ").unwrap_or_default();
            let is_digest = digest.len() == 64
                && digest.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
            if !is_digest || name.is_empty() {
                bail!("`{line}` in {} is not a digest and a name", file.display());
            }
            rows.push_str(&format!("    ({name:?}, {digest:?}),\n"));
        }
    }
    let code = format!(
        "/// Name and digest of each image of this release.\n\
         static DIGESTS: &[(&str, &str)] = &[\n{rows}];\n"
    );
    fs_err::write(out.join("image_digests.rs"), code)?;
    Ok(())
}

/// Looks for the agent in the target directory, which is an ancestor of `OUT_DIR`.
fn find(out: &Path) -> Result<Option<PathBuf>> {
    let target = out
        .ancestors()
        // Cargo tags only directories that it created itself.
        .find(|folder| {
            ["CACHEDIR.TAG", ".rustc_info.json"].iter().any(|name| folder.join(name).exists())
        })
        .context("no target directory above OUT_DIR")?;
    // With `--target`, Cargo also tags the subdirectory of that target.
    let triple = std::env::var_os("TARGET").context("cargo sets TARGET")?;
    let target = match target.parent() {
        Some(parent) if target.file_name() == Some(&triple) => parent,
        _ => target,
    };
    let stamp = target.join(STAMP);
    if !stamp.exists() {
        fs_err::create_dir_all(target.join("guest"))?;
        fs_err::write(&stamp, "")?;
    }
    say(&format!("rerun-if-changed={}", stamp.display()));
    for source in SOURCES {
        say(&format!("rerun-if-changed={source}"));
    }
    let agent = target.join(AGENT);
    if !agent.exists() {
        return Ok(None);
    }
    let built = [changed(&agent), changed(&target.join(BUILT)), changed(&stamp)];
    let built = built.into_iter().flatten().max();
    let newest = SOURCES.into_iter().filter_map(|source| newest_below(Path::new(source))).max();
    if newest > built {
        if std::env::var_os("MOOTHALL_REQUIRE_GUEST").is_some() {
            bail!("the guest agent is older than its sources; {HOW}");
        }
        say(&format!("warning=the embedded guest agent is older than its sources; {HOW}"));
    }
    Ok(Some(agent))
}

/// Modification time of the newest file below a path. Tests and their snapshots are not part of the
/// agent.
fn newest_below(path: &Path) -> Option<SystemTime> {
    if !path.is_dir() {
        let name = path.to_string_lossy();
        let is_test = name.ends_with("_tests.rs") || name.contains(".snap");
        return changed(path).filter(|_| !is_test);
    }
    let entries = fs_err::read_dir(path).ok()?;
    entries.flatten().filter_map(|entry| newest_below(&entry.path())).max()
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs_err::metadata(path).ok()?.modified().ok()
}

/// Write errors are ignored: a closed pipe means that cargo has exited.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "cargo::{line}");
}
