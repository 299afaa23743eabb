//! `cargo xtask book`: builds the book into the target directory to keep the working tree clean.
//!
//! Links are checked by tidy's `links` rule, which reads the Markdown and can report the line to
//! fix.

use anyhow::{Result, bail};

use crate::shell;

pub(crate) fn run() -> Result<()> {
    let root = shell::root()?;
    if !shell::works(&root, &["mdbook", "--version"]) {
        bail!("cannot find `mdbook`\nhint: run `bash .ci/tools.sh`");
    }
    let target = shell::target_dir(&root).join("book");
    let target = target.to_string_lossy();
    shell::run(&root, &["mdbook", "build", "docs", "--dest-dir", &target])?;
    shell::say(&format!("{target}/index.html"));
    Ok(())
}
