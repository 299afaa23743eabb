//! `cargo xtask book`: builds the book into the target folder, so that the tree stays clean.
//!
//! Links are the `links` rule of tidy: it sees the Markdown, where the line to mend is.

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
