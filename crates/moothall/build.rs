//! Embeds the agent that runs inside sandboxes, so that a user has one file.
//!
//! `cargo xtask guest` builds it; cargo cannot do so from here, because it needs other flags. So this
//! script only picks it up, and says so where it is missing or older than its sources.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};

/// The agent as `cargo xtask guest` leaves it in the target folder.
const AGENT: &str = "guest/moothall-guest";

/// The same as cargo left it. It is as new as the newest build, even where that changed nothing.
const BUILT: &str = "guest/x86_64-unknown-linux-gnu/guest/moothall-guest";

/// Changes whenever there is another agent. This script makes it where it is missing: cargo runs a
/// script on every build that waits for a file that does not exist.
const STAMP: &str = "guest/built";

/// What the agent is built from, seen from this crate.
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
            bail!("the agent for sandboxes is not built; {HOW}")
        }
        None => {
            say(&format!("warning=the agent for sandboxes is not embedded; {HOW}"));
            "None"
        }
    };
    let code = format!(
        "/// The agent that runs inside sandboxes, where it was built before the product.\n\
         pub(crate) static GUEST: Option<&[u8]> = {bytes};\n"
    );
    fs_err::write(out.join("guest_bytes.rs"), code)?;
    Ok(())
}

/// Looks for the agent in the target folder, which is above the folder of this script's output.
fn find(out: &Path) -> Result<Option<PathBuf>> {
    let target = out
        .ancestors()
        // Cargo tags only directories that it made itself.
        .find(|folder| {
            ["CACHEDIR.TAG", ".rustc_info.json"].iter().any(|name| folder.join(name).exists())
        })
        .context("no target folder above OUT_DIR")?;
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
    let built = [agent.as_path(), &target.join(BUILT)].into_iter().filter_map(changed).max();
    let newest = SOURCES.into_iter().filter_map(|source| newest_below(Path::new(source))).max();
    if newest > built {
        if std::env::var_os("MOOTHALL_REQUIRE_GUEST").is_some() {
            bail!("the agent for sandboxes is older than its sources; {HOW}");
        }
        say(&format!("warning=the embedded agent for sandboxes is older than its sources; {HOW}"));
    }
    Ok(Some(agent))
}

/// When the newest file below a path was changed. Tests and their snapshots are not part of the agent.
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

/// Tells cargo something. A closed pipe is cargo's own end.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "cargo::{line}");
}
