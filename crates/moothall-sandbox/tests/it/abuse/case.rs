//! What a case is, and what is asked of its end.

use std::collections::BTreeMap;
use std::fmt;

use moothall_core::sandbox::{Execution, Exit, GuestPath, Limits};
use moothall_sandbox::EngineName;

/// The engines that the suite runs on, in the order of the columns.
pub(super) const ENGINES: [EngineName; 3] =
    [EngineName::Microvm, EngineName::Runsc, EngineName::Runc];

/// One program, and what must come of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    /// What must happen, for people.
    pub(super) must: &'static str,
    pub(super) program: &'static str,
    /// Beside the first, which says where the test listens.
    pub(super) args: &'static [&'static str],
    pub(super) stdin_bytes: usize,
    pub(super) limits: fn(&mut Limits),
    /// The ends that are right, by engine.
    ends: [&'static [End]; 3],
    /// What an engine does not refuse, with the reason why that is known.
    pub(super) notes: &'static [Note],
    pub(super) check: fn(&Seen<'_>) -> Result<(), String>,
}

/// How a program may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Code(i32),
    Signal(i32),
    TimedOut,
    OutOfMemory,
    SandboxDied,
}

/// Something that is not refused.
#[derive(Debug, Clone, Copy)]
pub(super) struct Note {
    pub(super) on: EngineName,
    /// The names of attempts; each must be reported as a hole, else this note is out of date.
    pub(super) attempts: &'static [&'static str],
    pub(super) reach: Reach,
    /// Why, for people.
    pub(super) words: &'static str,
}

/// How far something that is not refused reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Only what goes with the sandbox: its own kernel, its own memory.
    Inside,
    /// The host. A limit that is not held as asked, or something of the host that shows.
    Host,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) engine: EngineName,
    pub(super) execution: &'a Execution,
    pub(super) files: &'a BTreeMap<GuestPath, Vec<u8>>,
}

/// A program that is expected to try everything, to be refused, and to end with 0.
pub(super) const fn case(name: &'static str, program: &'static str, must: &'static str) -> Case {
    Case {
        name,
        must,
        program,
        args: &[],
        stdin_bytes: 0,
        limits: |_| {},
        ends: [&[End::Code(0)]; 3],
        notes: &[],
        check: |_| Ok(()),
    }
}

impl Case {
    pub(super) const fn ends(mut self, ends: &'static [End]) -> Self {
        self.ends = [ends; 3];
        self
    }

    pub(super) const fn ends_on(mut self, engine: EngineName, ends: &'static [End]) -> Self {
        match engine {
            EngineName::Microvm => self.ends[0] = ends,
            EngineName::Runsc => self.ends[1] = ends,
            EngineName::Runc | EngineName::Crun => self.ends[2] = ends,
        }
        self
    }

    pub(super) const fn args(mut self, args: &'static [&'static str]) -> Self {
        self.args = args;
        self
    }

    pub(super) const fn stdin(mut self, bytes: usize) -> Self {
        self.stdin_bytes = bytes;
        self
    }

    pub(super) const fn limits(mut self, limits: fn(&mut Limits)) -> Self {
        self.limits = limits;
        self
    }

    pub(super) const fn notes(mut self, notes: &'static [Note]) -> Self {
        self.notes = notes;
        self
    }

    pub(super) const fn check(mut self, check: fn(&Seen<'_>) -> Result<(), String>) -> Self {
        self.check = check;
        self
    }

    /// The ends that are right on an engine.
    pub(super) fn ends_for(&self, engine: EngineName) -> &'static [End] {
        let at = ENGINES.iter().position(|&other| other == engine).expect("an engine of the suite");
        self.ends[at]
    }

    /// Everything that is wrong with what came of it.
    pub(super) fn problems(&self, seen: &Seen<'_>) -> Vec<String> {
        let mut problems = Vec::new();
        let exit = &seen.execution.exit;
        let right = self.ends_for(seen.engine);
        if !right.iter().any(|end| end.is(exit)) {
            problems.push(format!("{exit}; expected {}", End::any(right)));
        }
        problems.extend(self.holes(seen));
        if let Err(problem) = (self.check)(seen) {
            problems.push(problem);
        }
        problems
    }

    /// Holes that nobody noted, and notes about holes that are not there.
    fn holes(&self, seen: &Seen<'_>) -> Vec<String> {
        let noted: Vec<&str> = self
            .notes
            .iter()
            .filter(|note| note.on == seen.engine)
            .flat_map(|note| note.attempts)
            .copied()
            .collect();
        let mut problems = Vec::new();
        let mut found = Vec::new();
        for (word, name, value) in seen.lines() {
            match word {
                "hole" if noted.contains(&name) => found.push(name),
                "hole" => problems.push(format!("not refused: {name}: {value}")),
                "saw" if value == "False" => problems.push(format!("not so: {name}")),
                _ => {}
            }
        }
        for name in noted.iter().filter(|name| !found.contains(name)) {
            problems.push(format!("noted as a hole and refused: {name}"));
        }
        problems
    }
}

impl End {
    fn is(self, exit: &Exit) -> bool {
        match exit {
            Exit::Exited { code } => self == Self::Code(*code),
            Exit::Signalled { signal } => self == Self::Signal(*signal),
            Exit::TimedOut => self == Self::TimedOut,
            Exit::OutOfMemory => self == Self::OutOfMemory,
            Exit::SandboxDied { .. } => self == Self::SandboxDied,
        }
    }

    /// A choice in words.
    pub(super) fn any(ends: &[Self]) -> String {
        ends.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::TimedOut => f.write_str("time limit"),
            Self::OutOfMemory => f.write_str("out of memory"),
            Self::SandboxDied => f.write_str("sandbox died"),
        }
    }
}

impl Seen<'_> {
    /// The program's words, line by line: `WORD NAME: VALUE`.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.execution.stdout.text.lines().filter_map(|line| {
            let (word, rest) = line.split_once(' ')?;
            let (name, value) = rest.split_once(": ")?;
            matches!(word, "held" | "hole" | "saw").then_some((word, name, value))
        })
    }

    /// The value of something that the program saw.
    pub(super) fn saw(&self, what: &str) -> Result<&str, String> {
        self.lines()
            .find_map(|(word, name, value)| (word == "saw" && name == what).then_some(value))
            .ok_or_else(|| format!("it did not say `{what}`; {}", self.last_words()))
    }

    /// At least so many attempts were made: the program got through.
    pub(super) fn tried(&self, least: usize) -> Result<(), String> {
        let made = self.lines().filter(|(word, ..)| matches!(*word, "held" | "hole")).count();
        match made >= least {
            true => Ok(()),
            false => Err(format!("only {made} of {least} attempts were made")),
        }
    }

    /// Exactly these files came back, and exactly this is said about others.
    pub(super) fn brought(
        &self,
        files: &[(&str, &[u8])],
        left_behind: &[&str],
    ) -> Result<(), String> {
        let files: BTreeMap<&str, &[u8]> = files.iter().copied().collect();
        let brought: BTreeMap<&str, &[u8]> =
            self.files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
        if brought != files {
            let names: Vec<_> = brought.iter().map(|(name, b)| (name, b.len())).collect();
            return Err(format!("other files came back: {names:?}"));
        }
        if self.execution.left_behind != left_behind {
            return Err(format!("left behind: {:#?}", self.execution.left_behind));
        }
        Ok(())
    }

    /// The end of what it printed, for messages.
    pub(super) fn last_words(&self) -> String {
        let end = |text: &str| {
            let from = text.floor_char_boundary(text.len().saturating_sub(300));
            text[from..].to_owned()
        };
        let (out, err) = (&self.execution.stdout.text, &self.execution.stderr.text);
        format!("it printed {:?} and {:?}", end(out), end(err))
    }
}

#[cfg(test)]
#[path = "case_tests.rs"]
mod tests;
