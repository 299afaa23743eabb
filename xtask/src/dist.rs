//! `cargo xtask dist`: what a user downloads: one program with the agent and the web interface inside,
//! the images as one file, a container file, licences, and the hashes of all of them.
//! `--check` and `--container` try what it made, as its new owner would.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::Args as ClapArgs;

use crate::shell;

/// What lies beside the program, as it is in the repository.
const BESIDE: [&str; 5] =
    ["deploy/Containerfile", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

const NOT_TEXT: &str = "the target folder's name is not text";

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Leave the images out: they take half a gigabyte, and a user can build them
    #[arg(long)]
    no_images: bool,
    /// Make nothing, and try what was made last: checksums, images, a consultation, the server
    #[arg(long)]
    check: bool,
    /// Make nothing, and build and start the container of what was made last; needs podman
    #[arg(long)]
    container: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = shell::root()?;
    let folder = shell::target_dir(&root).join("dist");
    if !args.check && !args.container {
        return make(&root, &folder, args);
    }
    let made = folder.to_str().context(NOT_TEXT)?;
    for (wanted, script) in [(args.check, "run.sh"), (args.container, "container.sh")] {
        if wanted {
            shell::run(&root, &["bash", &format!("tools/dist-check/{script}"), made])?;
        }
    }
    Ok(())
}

fn make(root: &Path, folder: &Path, args: &Args) -> Result<()> {
    shell::run(root, &["cargo", "xtask", "guest"])?;
    shell::run(root, &["cargo", "xtask", "web"])?;
    // A program without either of them is not what a user should get.
    let build = [
        "env",
        "MOOTHALL_REQUIRE_GUEST=1",
        "MOOTHALL_REQUIRE_UI=1",
        "cargo",
        "build",
        "--release",
        "--locked",
        "--package",
        "moothall",
    ];
    shell::run(root, &build)?;
    if folder.exists() {
        fs_err::remove_dir_all(folder)?;
    }
    fs_err::create_dir_all(folder)?;
    let built = shell::target_dir(root).join("release/moothall");
    let program = folder.join("moothall");
    let [built, program] = [&built, &program].map(|path| path.to_str().context(NOT_TEXT));
    let (built, program) = (built?, program?);
    // A third of its size without the lines of the source; a backtrace still names functions.
    shell::run(root, &["strip", "--strip-debug", "-o", program, built])?;
    for path in BESIDE {
        let name = Path::new(path).file_name().context("a path without a name")?;
        fs_err::copy(root.join(path), folder.join(name))?;
    }
    if !args.no_images {
        let bundle = folder.join("images.tar");
        let bundle = bundle.to_str().context(NOT_TEXT)?;
        shell::run(root, &[program, "image", "build"])?;
        shell::run(root, &[program, "image", "export", "--out", bundle])?;
        // It was made for its owner's eyes, and whoever installs it or is in the container is another.
        fs_err::set_permissions(bundle, Permissions::from_mode(0o644))?;
    }
    write_sums(folder)?;
    shell::say(&folder.display().to_string());
    Ok(())
}

/// In the form that `sha256sum --check` reads.
fn write_sums(folder: &Path) -> Result<()> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    let mut command_line = vec!["sha256sum"];
    command_line.extend(names.iter().map(String::as_str));
    let sums = shell::read(folder, &command_line)?;
    fs_err::write(folder.join("SHA256SUMS"), sums)?;
    Ok(())
}
