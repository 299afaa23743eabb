//! `cargo xtask codegen`: writes the committed files that a program can write better than a person.
//!
//! A generated file is a path and a page that `moothall docs` prints. tidy's `generated` rule asks
//! for the same pages and compares. What only a test can see (the types of the web UI, runs to
//! test it with) is written by that test: it writes where `MOOTHALL_CODEGEN` is set, else it compares.

use std::path::Path;

use anyhow::Result;

use crate::tree::SourceTree;
use crate::{messages, shell};

/// A committed file and the source of its text.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) path: &'static str,
    source: PageSource,
}

#[derive(Debug)]
enum PageSource {
    /// A page that `moothall docs` prints.
    Docs(&'static str),
    /// The string literals of the product.
    Messages,
}

/// To add a generated file, add a row.
pub(crate) const GENERATED: &[Generated] = &[
    Generated { path: "docs/src/reference/cli.md", source: PageSource::Docs("cli") },
    Generated { path: "docs/src/reference/config.md", source: PageSource::Docs("config") },
    Generated { path: "docs/src/reference/models.md", source: PageSource::Docs("models") },
    Generated { path: "docs/src/reference/messages.md", source: PageSource::Messages },
];

/// Tests that write files, in this order: some read what others wrote.
const WRITTEN_BY_TESTS: &[&str] = &[
    "package(=moothall) & binary(=it) & test(web_fixtures)",
    "package(=moothall-core) & test(web_fixtures)",
    "kind(lib) & test(generated_tests)",
];

impl Generated {
    /// The file's text as it should be.
    pub(crate) fn produce(&self, root: &Path, tree: &SourceTree) -> Result<String> {
        match self.source {
            PageSource::Docs(page) => {
                let program = shell::build(root, "dev", &["moothall"])?.join("moothall");
                shell::read(root, &[shell::text(&program)?, "docs", page])
            }
            PageSource::Messages => messages::page(tree),
        }
    }
}

pub(crate) fn run() -> Result<()> {
    let root = shell::root()?;
    let tree = SourceTree::load(&root)?;
    for generated in GENERATED {
        let fresh = generated.produce(&root, &tree)?;
        let path = root.join(generated.path);
        if fs_err::read_to_string(&path).ok().as_ref() == Some(&fresh) {
            shell::say(&format!("unchanged {}", generated.path));
            continue;
        }
        if let Some(folder) = path.parent() {
            fs_err::create_dir_all(folder)?;
        }
        fs_err::write(&path, fresh)?;
        shell::say(&format!("written   {}", generated.path));
    }
    for test in WRITTEN_BY_TESTS {
        let nextest = ["cargo", "nextest", "run", "--workspace", "--locked", "-E", test];
        shell::run_with(&root, &nextest, &[("MOOTHALL_CODEGEN", "1")])?;
    }
    Ok(())
}
