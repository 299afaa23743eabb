//! Locates images, the agent and the jail for tests with real sandboxes. A test fails with the
//! command to run if something is missing, because a skipped test would go unnoticed.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use moothall_sandbox::jail::JailCommand;

/// The images: `MOOTHALL_TEST_IMAGES`, or where `.ci/run` builds them.
pub(crate) fn images() -> PathBuf {
    let given = std::env::var_os("MOOTHALL_TEST_IMAGES").map(PathBuf::from);
    let images = given.unwrap_or_else(|| cache_home().join("images-data/images"));
    assert!(
        images.join("tags/python").exists(),
        "there is no image `python` in {}: run `moothall image build python` with that folder, or \
         set MOOTHALL_TEST_IMAGES",
        images.display()
    );
    images
}

/// The agent's static binary: `MOOTHALL_TEST_GUEST`, or where `cargo xtask guest` puts it.
pub(crate) fn guest() -> &'static [u8] {
    static GUEST: OnceLock<Vec<u8>> = OnceLock::new();
    GUEST.get_or_init(|| {
        let given = std::env::var_os("MOOTHALL_TEST_GUEST").map(PathBuf::from);
        let path = given.unwrap_or_else(|| target().join("guest/moothall-guest"));
        fs_err::read(&path).unwrap_or_else(|error| {
            panic!("{error}: run `cargo xtask guest`, or set MOOTHALL_TEST_GUEST")
        })
    })
}

/// Shared between tests: microVM templates.
pub(crate) fn cache() -> PathBuf {
    target().join("tmp/sandboxes")
}

pub(crate) fn jail() -> JailCommand {
    JailCommand { program: env!("CARGO_BIN_EXE_moothall-jail").into(), args: Vec::new() }
}

/// Cargo's target folder; the jail binary is in a profile folder inside it.
fn target() -> PathBuf {
    let jail = Path::new(env!("CARGO_BIN_EXE_moothall-jail"));
    jail.ancestors().nth(2).expect("a target folder").to_owned()
}

fn cache_home() -> PathBuf {
    let home = std::env::var_os("HOME").expect("a home");
    Path::new(&home).join(".cache/moothall")
}
