//! The page of the book that says what is tried and what comes of it, made from the table of cases.

use std::fmt::Write as _;
use std::path::Path;

use super::GROUPS;
use super::case::{Case, ENGINES, End, Reach};

/// Set to write the page instead of comparing it.
const WRITE: &str = "MOOTHALL_WRITE_DOCS";

#[test]
fn the_page_about_abuse_says_what_is_tested() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/abuse.md");
    let made = make();
    if std::env::var_os(WRITE).is_some() {
        fs_err::write(&page, &made).unwrap();
    }
    let there = fs_err::read_to_string(&page).unwrap_or_default();
    assert!(
        there == made,
        "docs/src/abuse.md is not made from these cases: run `{WRITE}=1 cargo test -p \
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

const HEAD: &str = "# What the sandboxes hold

<!-- Made from the cases in crates/moothall-sandbox/tests/it/abuse; see table.rs there. -->

A program that nobody trusts may try anything. These are the programs that are tried on every change,
on every engine. After each of them the host is looked at too: nothing arrived where the host listens,
a secret file of the host is unchanged and nowhere in what came back, the number of processes stayed
within bounds, nothing of the sandbox is left, and the next execution works. Two sandboxes that run
at once do not find each other's files, ports and sockets.

How to read the columns:

- *exit 0* means that the program tried everything, was refused, and ended by itself. *exit N*,
  *signal N*, *time limit*, *out of memory* and *sandbox died* are what is reported about its end.
- *inside* with a number means that something was not refused, but reaches no further than the
  sandbox: its own kernel or its own memory, which end with it.
- **not held** with a number means that something shows or reaches beyond it. The notes below each
  table say what.

An engine that holds all this is not proven to hold everything. `runc` shares the host's kernel: a
fault in that kernel is a way out, and no list of programs shows that there is none. `microvm` without
KVM runs on an emulator whose makers do not call it a boundary.
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
