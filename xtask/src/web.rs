//! `cargo xtask web`: builds the web interface into `web/dist`, where `moothall-ui` picks it up.
//!
//! Node is a package of the interface itself, so that everybody has the same one; the machine's own
//! npm only fetches packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::shell;

/// What to do with the web interface. Without a flag: build it.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Format, lint, types and unit tests instead of a build.
    #[arg(long)]
    check: bool,
    /// The browser tests against the real program, which must be built with the interface inside.
    #[arg(long)]
    e2e: bool,
    /// Writes the screenshots of the documentation anew, by the real program.
    #[arg(long)]
    gallery: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = shell::root()?;
    let web = root.join("web");
    install(&web)?;
    if args.check {
        node(&web, &["@biomejs/biome/bin/biome", "check", "--error-on-warnings", "."])?;
        node(&web, &["typescript/bin/tsc", "--noEmit"])?;
        return node(&web, &["vitest/vitest.mjs", "run"]);
    }
    if args.e2e || args.gallery {
        return browser(&root, &web, args);
    }
    node(&web, &["vite/bin/vite.js", "build", "--logLevel", "warn"])?;
    run_node(&web, &[web.join("tools/finish.ts")], &[])?;
    // The build script of `moothall-ui` watches this file, which exists even where nothing is built.
    let stamp = shell::target_dir(&root).join("ui");
    fs_err::create_dir_all(&stamp)?;
    fs_err::write(stamp.join("built"), "")?;
    shell::say(&web.join("dist").display().to_string());
    Ok(())
}

/// Brings the packages of the lock file, unless they are there.
fn install(web: &Path) -> Result<()> {
    let wanted = fs_err::read(web.join("package-lock.json"))?;
    // A copy of the lock file that was installed; npm's own differs from it in form.
    let installed = web.join("node_modules/installed-lock.json");
    if fs_err::read(&installed).ok().as_ref() == Some(&wanted) {
        return Ok(());
    }
    if !shell::works(web, &["npm", "--version"]) {
        bail!("cannot find `npm`\nhint: install Node with npm; any version from 20 on will do");
    }
    shell::run(
        web,
        &["npm", "ci", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"],
    )?;
    fs_err::write(installed, wanted)?;
    Ok(())
}

fn browser(root: &Path, web: &Path, args: &Args) -> Result<()> {
    let program = shell::target_dir(root).join("debug/moothall");
    let mut variables = Vec::new();
    // A program that somebody named is used; else the one that cargo built last.
    if std::env::var_os("MOOTHALL_BIN").is_none() {
        variables.push(("MOOTHALL_BIN", program));
    }
    let playwright = web.join("node_modules/@playwright/test/cli.js");
    let mut arguments = vec![playwright, PathBuf::from("test")];
    if args.gallery {
        variables.push(("MOOTHALL_GALLERY", root.join("docs/src/gallery")));
        arguments.push(PathBuf::from("gallery.spec.ts"));
    }
    run_node(web, &arguments, &variables)
}

/// Runs a program of a package, given by its path below `node_modules`.
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
