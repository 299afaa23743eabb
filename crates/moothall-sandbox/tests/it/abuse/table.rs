//! Generates the documentation page of attempts and their results from the table of cases.

use std::fmt::Write as _;
use std::path::Path;

use super::GROUPS;
use super::case::{Case, ENGINES, End, Reach};

/// Set this variable to write the page instead of comparing it.
const WRITE: &str = "MOOTHALL_WRITE_DOCS";

#[test]
fn the_sandbox_tests_page_is_up_to_date() {
    let page =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/operations/sandbox-tests.md");
    let made = make();
    if std::env::var_os(WRITE).is_some() {
        fs_err::write(&page, &made).unwrap();
    }
    let there = fs_err::read_to_string(&page).unwrap_or_default();
    assert!(
        there == made,
        "docs/src/operations/sandbox-tests.md is not made from these cases: run `{WRITE}=1 cargo test -p \
         moothall-sandbox --test it abuse::table`"
    );
}

#[test]
fn every_case_has_a_name_of_its_own() {
    let mut names: Vec<&str> =
        GROUPS.iter().flat_map(|(_, cases)| *cases).map(|c| c.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

const HEAD: &str = "# Sandbox escape tests

<!-- Generated from the cases in crates/moothall-sandbox/tests/it/abuse; see table.rs there. -->

After this page you know which attacks the sandboxes are tested against, and the result on each engine.

An untrusted program may try anything. These programs run on every change, on every engine. Each case
also checks the host: no connection arrived, a secret file of the host is unchanged and not part of any
output, the number of processes stayed within bounds, nothing of the sandbox remains, and the next
execution works. Two concurrent sandboxes cannot find each other's files, ports and sockets.

How to read the columns:

- *exit 0*: the program tried everything, was refused, and ended normally. *exit N*, *signal N*, *time
  limit*, *out of memory* and *sandbox died* are how the end of the program is reported.
- *inside* with a number: an attempt was not refused, but reached only the sandbox itself: its own kernel
  or its own memory, which end with it.
- **not held** with a number: an attempt saw or reached something outside. The notes below each table say
  what.

Passing all cases does not prove that an engine withstands everything. `runc` shares the host's kernel: a
fault in that kernel is a way out, and no list of programs can rule such a fault out. `microvm` without KVM
runs on an emulator that its authors do not consider a security boundary.
";

fn make() -> String {
    let mut page = HEAD.to_owned();
    for (title, cases) in GROUPS {
        let mut notes = Vec::new();
        write!(page, "\n## {title}\n\n| program | what must happen |").unwrap();
        for engine in ENGINES {
            write!(page, " {engine} |").unwrap();
        }
        page.push_str("\n|---|---|---|---|---|\n");
        for case in cases {
            writeln!(page, "{}", row(case, &mut notes)).unwrap();
        }
        if !notes.is_empty() {
            page.push('\n');
        }
        for (number, note) in notes.iter().enumerate() {
            writeln!(page, "{}. {note}", number + 1).unwrap();
        }
    }
    page
}

fn row(case: &Case, notes: &mut Vec<String>) -> String {
    let mut row = format!("| {} | {} |", case.name, case.must);
    for engine in ENGINES {
        let mut cell = End::any(case.ends_for(engine));
        for note in case.notes.iter().filter(|note| note.on == engine) {
            let words = format!("`{engine}`: {} ({})", note.words, note.attempts.join(", "));
            let number = notes.iter().position(|other| *other == words).unwrap_or_else(|| {
                notes.push(words);
                notes.len() - 1
            }) + 1;
            match note.reach {
                Reach::Inside => write!(cell, "; inside ({number})"),
                Reach::Host => write!(cell, "; **not held** ({number})"),
            }
            .unwrap();
        }
        write!(row, " {cell} |").unwrap();
    }
    row
}
