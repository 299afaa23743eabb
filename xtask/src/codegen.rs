//! `cargo xtask codegen`: writes the committed files that a program can write better than a person.
//!
//! A generated file is a path and a command line whose stdout is the file. tidy's `generated` rule
//! runs the same commands and compares. What only a test can see (the types of the web UI, runs to
//! test it with) is written by that test: it writes where `MOOTHALL_CODEGEN` is set, else it compares.

use std::path::Path;

use anyhow::Result;

use crate::shell;

/// A committed file and the command that prints it.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) path: &'static str,
    command: &'static [&'static str],
}

/// To add a generated file, add a row.
pub(crate) const GENERATED: &[Generated] = &[
    Generated {
        path: "docs/src/reference/cli.md",
        command: &["cargo", "run", "--quiet", "--locked", "-p", "moothall", "--", "docs", "cli"],
    },
    Generated {
        path: "docs/src/reference/config.md",
        command: &["cargo", "run", "--quiet", "--locked", "-p", "moothall", "--", "docs", "config"],
    },
    Generated {
        path: "docs/src/reference/models.md",
        command: &["cargo", "run", "--quiet", "--locked", "-p", "moothall", "--", "docs", "models"],
    },
];

/// Tests that write files, in this order: some read what others wrote.
const WRITTEN_BY_TESTS: &[&[&str]] = &[
    &["cargo", "test", "--quiet", "--locked", "-p", "moothall", "--test", "it", "web_fixtures"],
    &["cargo", "test", "--quiet", "--locked", "-p", "moothall-core", "web_fixtures"],
    &["cargo", "test", "--quiet", "--locked", "-p", "moothall-core", "--lib", "generated_tests"],
    &["cargo", "test", "--quiet", "--locked", "-p", "moothall-server", "--lib", "generated_tests"],
];

impl Generated {
    /// The file's text as it should be.
    pub(crate) fn produce(&self, root: &Path) -> Result<String> {
        shell::read(root, self.command)
    }
}

pub(crate) fn run() -> Result<()> {
    let root = shell::root()?;
    for generated in GENERATED {
        let fresh = generated.produce(&root)?;
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
        shell::run_with(&root, test, &[("MOOTHALL_CODEGEN", "1")])?;
    }
    Ok(())
}
