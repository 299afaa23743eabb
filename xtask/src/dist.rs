//! `cargo xtask dist`: builds the release package: the `moothall` binary with the guest agent and
//! the web UI embedded, the PDF binary, the images as one file, a container file, licences, and a
//! checksum file. `--check` and `--container` test the package the way a user would use it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::Args as ClapArgs;

use crate::{guest, shell, web};

/// Files that are copied unchanged from the repository.
const EXTRA_FILES: [&str; 5] =
    ["deploy/Containerfile", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// `moothall`, and the binary it starts for PDFs.
const PROGRAMS: [&str; 2] = ["moothall", "moothall-pdf"];

#[derive(Debug, ClapArgs)]
pub(crate) struct DistArgs {
    /// Leave out the images: they take half a gigabyte, and users can build them
    #[arg(long)]
    no_images: bool,
    /// Build nothing; test the last package: checksums, images, a consultation, the server
    #[arg(long)]
    check: bool,
    /// Build no package; build and start the container of the last one (needs podman)
    #[arg(long)]
    container: bool,
}

pub(crate) fn run(args: &DistArgs) -> Result<()> {
    let root = shell::root()?;
    let folder = shell::target_dir(&root).join("package");
    if !args.check && !args.container {
        return make(&root, &folder, args);
    }
    let dist_dir = shell::text(&folder)?;
    for (enabled, script) in [(args.check, "run.sh"), (args.container, "container.sh")] {
        if enabled {
            shell::run(&root, &["bash", &format!("tools/dist-check/{script}"), dist_dir])?;
        }
    }
    Ok(())
}

fn make(root: &Path, folder: &Path, args: &DistArgs) -> Result<()> {
    guest::run()?;
    web::run(&web::WebArgs::default())?;
    let mut build = vec!["cargo", "build", "--locked", "--profile", "dist"];
    build.extend(PROGRAMS.iter().flat_map(|name| ["--package", name]));
    // A binary without its guest agent or web UI must not be published.
    let required = [("MOOTHALL_REQUIRE_GUEST", "1"), ("MOOTHALL_REQUIRE_UI", "1")];
    shell::run_with(root, &build, &required)?;
    if folder.exists() {
        fs_err::remove_dir_all(folder)?;
    }
    fs_err::create_dir_all(folder)?;
    let built = shell::target_dir(root).join("dist");
    for program in PROGRAMS {
        fs_err::copy(built.join(program), folder.join(program))?;
    }
    for path in EXTRA_FILES {
        let name = Path::new(path).file_name().context("path has no file name")?;
        fs_err::copy(root.join(path), folder.join(name))?;
    }
    let marker =
        concat!("{\"kind\":\"container\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}\n");
    fs_err::write(folder.join("install.json"), marker)?;
    if !args.no_images {
        let (program, bundle) = (folder.join("moothall"), folder.join("images.tar"));
        let (program, bundle) = (shell::text(&program)?, shell::text(&bundle)?);
        shell::run(root, &[program, "image", "build"])?;
        shell::run(root, &[program, "image", "export", "--output", bundle])?;
        // `image export` makes the file readable by its owner only, but other users install it, and
        // the container runs as a different user.
        fs_err::set_permissions(bundle, Permissions::from_mode(0o644))?;
    }
    write_sums(folder)?;
    shell::say(&folder.display().to_string());
    Ok(())
}

/// Writes the checksums in the format of `sha256sum --check`.
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
