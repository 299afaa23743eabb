//! `cargo xtask dist`: what a user downloads: one program with the agent and the web interface inside,
//! the images as one file, a container file, licences, and the hashes of all of them.

use std::path::Path;

use anyhow::{Context as _, Result};
use clap::Args as ClapArgs;

use crate::shell;

/// What lies beside the program, as it is in the repository.
const BESIDE: [&str; 5] =
    ["deploy/Containerfile", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Leave the images out: they take half a gigabyte, and a user can build them
    #[arg(long)]
    no_images: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = shell::root()?;
    shell::run(&root, &["cargo", "xtask", "guest"])?;
    shell::run(&root, &["cargo", "xtask", "web"])?;
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
    shell::run(&root, &build)?;
    let target = shell::target_dir(&root);
    let folder = target.join("dist");
    if folder.exists() {
        fs_err::remove_dir_all(&folder)?;
    }
    fs_err::create_dir_all(&folder)?;
    let program = folder.join("moothall");
    fs_err::copy(target.join("release/moothall"), &program)?;
    for path in BESIDE {
        let name = Path::new(path).file_name().context("a path without a name")?;
        fs_err::copy(root.join(path), folder.join(name))?;
    }
    if !args.no_images {
        let program = program.to_str().context("the target folder's name is not text")?;
        let bundle = folder.join("images.tar");
        let bundle = bundle.to_str().context("the target folder's name is not text")?;
        shell::run(&root, &[program, "image", "build"])?;
        shell::run(&root, &[program, "image", "export", "--out", bundle])?;
    }
    write_sums(&folder)?;
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
