//! `cargo xtask check`: the first stage of the gate, as a developer runs it before a commit.

use anyhow::{Result, anyhow};

use crate::{shell, tidy};

/// Tests that call the real local model live in modules of this name; only `.ci/run` starts that
/// model.
const WITHOUT_LOCAL_MODEL: &str = "not test(/local_model::/)";

struct Step {
    name: &'static str,
    command: &'static [&'static str],
    hint: &'static str,
}

const STEPS: &[Step] = &[
    Step {
        name: "format",
        command: &["cargo", "fmt", "--all", "--check"],
        hint: "run `cargo fmt --all`",
    },
    Step {
        name: "clippy",
        command: &[
            "cargo",
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
        hint: "`cargo clippy --fix` cures the simple ones; an exception needs `#[expect(…, reason = \"…\")]`",
    },
    Step {
        name: "tests",
        command: &["cargo", "nextest", "run", "--workspace", "--locked", "-E", WITHOUT_LOCAL_MODEL],
        hint: "without cargo-nextest run `bash .ci/tools.sh`; a changed snapshot is accepted with `INSTA_UPDATE=always` after reading the diff",
    },
    Step {
        name: "doctests",
        command: &["cargo", "test", "--workspace", "--locked", "--doc", "--quiet"],
        hint: "the failing example is named by file and line above",
    },
];

pub(crate) fn run() -> Result<()> {
    let root = shell::root()?;
    for step in STEPS {
        shell::note(&format!("== {}", step.name));
        shell::run(&root, step.command).map_err(|error| {
            anyhow!(
                "{error:#}
hint: {}",
                step.hint
            )
        })?;
    }
    shell::note("== tidy");
    tidy::run(&tidy::Args::default())
}
