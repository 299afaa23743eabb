//! `cargo xtask web`: builds the web UI into `web/dist`, where `moothall-ui` embeds it.
//!
//! Node is an npm package of the web UI, so every machine uses the same version; the installed npm
//! only fetches packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Parser;
use sha2::{Digest as _, Sha256};

use crate::shell;

/// Build, check or test the web UI (default: build)
#[derive(Debug, Default, Parser)]
pub(crate) struct WebArgs {
    /// Check format, lint, types and unit tests instead of building
    #[arg(long)]
    check: bool,
    /// Run the browser tests against the real program, which must be built with the web UI embedded
    #[arg(long)]
    e2e: bool,
    /// Slow the browser down by this factor, which finds pages and tests that count on speed
    #[arg(long, value_name = "FACTOR", requires = "e2e")]
    slowdown: Option<u32>,
    /// Update the screenshots in the documentation, using the real program
    #[arg(long)]
    gallery: bool,
}

pub(crate) fn run(args: &WebArgs) -> Result<()> {
    let root = shell::root()?;
    if args.check {
        return check(&root);
    }
    let web = root.join("web");
    install(&web)?;
    if args.e2e || args.gallery {
        return browser(&root, &web, args);
    }
    build(&root, &web)
}

/// Checks format, lint, types and unit tests.
pub(crate) fn check(root: &Path) -> Result<()> {
    let web = root.join("web");
    install(&web)?;
    node(&web, &["@biomejs/biome/bin/biome", "check", "--error-on-warnings", "."])?;
    node(&web, &["typescript/bin/tsc", "--noEmit"])?;
    node(&web, &["vitest/vitest.mjs", "run"])
}

/// Builds into the target directory and copies only changed files to `web/dist`: cargo recompiles
/// the server and its dependents if the modification time of a file there changes.
fn build(root: &Path, web: &Path) -> Result<()> {
    let folder = shell::target_dir(root).join("ui");
    fs_err::create_dir_all(&folder)?;
    let built = folder.join("dist");
    let vite = ["vite/bin/vite.js", "build", "--logLevel", "warn", "--emptyOutDir", "--outDir"];
    node(web, &[&vite[..], &[shell::text(&built)?]].concat())?;
    run_node(web, &[web.join("tools/finish.ts"), built.clone()], &[])?;
    let dist = web.join("dist");
    if mirror(&built, &dist)? {
        // The build script of `moothall-ui` watches this file, which exists even before the first
        // build.
        fs_err::write(folder.join("built"), "")?;
    }
    shell::say(&dist.display().to_string());
    Ok(())
}

/// Makes `to` a copy of `from` and returns whether anything changed. Identical files keep their
/// modification time.
fn mirror(from: &Path, to: &Path) -> Result<bool> {
    fs_err::create_dir_all(to)?;
    let mut changed = false;
    for entry in fs_err::read_dir(to)? {
        let entry = entry?;
        let source = from.join(entry.file_name());
        if !source.exists() {
            match entry.file_type()?.is_dir() {
                true => fs_err::remove_dir_all(entry.path())?,
                false => fs_err::remove_file(entry.path())?,
            }
            changed = true;
        }
    }
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        let (source, copy) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            changed |= mirror(&source, &copy)?;
        } else if fs_err::read(&copy).ok() != Some(fs_err::read(&source)?) {
            fs_err::copy(&source, &copy)?;
            changed = true;
        }
    }
    Ok(changed)
}

/// Installs the packages of the lock file if they are missing.
///
/// They are installed in the user's cache, in one directory per lock file, and linked into `web/`:
/// a clean clone, such as the gate's, can use them without an installation.
fn install(web: &Path) -> Result<()> {
    let lock = fs_err::read(web.join("package-lock.json"))?;
    let home = std::env::var_os("HOME").context("HOME is not set")?;
    let cache = Path::new(&home).join(".cache/moothall");
    let folder = cache.join("web").join(&hex(&lock)[..16]);
    let installed = folder.join("installed");
    if !installed.exists() {
        if !shell::works(web, &["npm", "--version"]) {
            bail!("cannot find `npm`\nhint: install Node.js 20 or later with npm");
        }
        fs_err::create_dir_all(&folder)?;
        for name in ["package.json", "package-lock.json"] {
            fs_err::copy(web.join(name), folder.join(name))?;
        }
        // Not `npm ci`, which requires the packages of every operating system in the lock file;
        // many mirrors have only some of them. Versions and hashes still come from the lock file.
        let status = Command::new("npm")
            .args(["install", "--no-save", "--no-audit", "--no-fund", "--prefer-offline"])
            .arg("--loglevel=error")
            .env("npm_config_cache", cache.join("npm"))
            .current_dir(&folder)
            .status()
            .context("cannot start `npm`")?;
        if !status.success() {
            bail!("`npm install` ended with {status}");
        }
        fs_err::write(&installed, "")?;
    }
    let link = web.join("node_modules");
    let node_modules = folder.join("node_modules");
    if fs_err::read_link(&link).ok().as_ref() != Some(&node_modules) {
        if link.is_symlink() {
            fs_err::remove_file(&link)?;
        } else if link.exists() {
            fs_err::remove_dir_all(&link)?;
        }
        fs_err::os::unix::fs::symlink(&node_modules, &link)?;
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn browser(root: &Path, web: &Path, args: &WebArgs) -> Result<()> {
    let program = shell::target_dir(root).join("debug/moothall");
    let mut variables = Vec::new();
    // `MOOTHALL_BIN` overrides the debug build.
    if std::env::var_os("MOOTHALL_BIN").is_none() {
        variables.push(("MOOTHALL_BIN", program));
    }
    if let Some(factor) = args.slowdown {
        variables.push(("MOOTHALL_SLOWDOWN", PathBuf::from(factor.to_string())));
    }
    let playwright = web.join("node_modules/@playwright/test/cli.js");
    let mut arguments = vec![playwright, PathBuf::from("test")];
    if args.gallery {
        variables.push(("MOOTHALL_GALLERY", root.join("docs/src/gallery")));
        arguments.push(PathBuf::from("gallery.spec.ts"));
    }
    run_node(web, &arguments, &variables)
}

/// Runs a script of a package, given by its path below `node_modules`.
fn node(web: &Path, command_line: &[&str]) -> Result<()> {
    let (program, arguments) = command_line.split_first().context("empty command line")?;
    let mut all = vec![web.join("node_modules").join(program)];
    all.extend(arguments.iter().map(PathBuf::from));
    run_node(web, &all, &[])
}

fn run_node(web: &Path, arguments: &[PathBuf], variables: &[(&str, PathBuf)]) -> Result<()> {
    let node = web.join("node_modules/node/bin/node");
    let status = Command::new(&node)
        .args(arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .current_dir(web)
        .status()
        .with_context(|| format!("cannot start `{}`", node.display()))?;
    if !status.success() {
        let shown: Vec<_> = arguments.iter().map(|part| part.to_string_lossy()).collect();
        bail!("`node {}` ended with {status}", shown.join(" "));
    }
    Ok(())
}

#[cfg(test)]
#[path = "web_tests.rs"]
mod tests;
