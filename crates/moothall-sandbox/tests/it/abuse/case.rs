//! A test case and its expected result.

use std::collections::BTreeMap;
use std::fmt;

use moothall_core::sandbox::{ExecutionExit, GuestPath, SandboxExecution, SandboxLimits};
use moothall_sandbox::EngineName;

/// The engines of the suite, in column order.
pub(crate) const ENGINES: [EngineName; 3] =
    [EngineName::Microvm, EngineName::Runsc, EngineName::Runc];

/// One program and its expected result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Description of the expected result.
    pub(crate) must: &'static str,
    pub(crate) program: &'static str,
    /// Arguments after the first, which is the address of the test's listener.
    pub(crate) args: &'static [&'static str],
    pub(crate) stdin_bytes: usize,
    pub(crate) limits: fn(&mut SandboxLimits),
    /// Accepted ends for each engine.
    ends: [&'static [End]; 3],
    /// Attempts that an engine does not block, with the reason.
    pub(crate) notes: &'static [Note],
    pub(crate) check: fn(&Seen<'_>) -> Result<(), String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
    TimedOut,
    OutOfMemory,
    SandboxDied,
}

/// An attempt that is not blocked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Note {
    pub(crate) on: EngineName,
    /// Names of attempts. Each must be reported as a hole, otherwise the note is outdated.
    pub(crate) attempts: &'static [&'static str],
    pub(crate) reach: Reach,
    /// Explanation for readers.
    pub(crate) words: &'static str,
}

/// How far the effect of a hole reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Only the sandbox itself: its own kernel and memory.
    Inside,
    /// The host: a limit that is not fully enforced, or information about the host that is visible.
    Host,
}

/// The observed result.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) engine: EngineName,
    pub(crate) execution: &'a SandboxExecution,
    pub(crate) files: &'a BTreeMap<GuestPath, Vec<u8>>,
}

/// A program that must try everything, be denied, and exit with 0.
pub(crate) const fn case(name: &'static str, program: &'static str, must: &'static str) -> Case {
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
    pub(crate) const fn ends(mut self, ends: &'static [End]) -> Self {
        self.ends = [ends; 3];
        self
    }

    pub(crate) const fn ends_on(mut self, engine: EngineName, ends: &'static [End]) -> Self {
        match engine {
            EngineName::Microvm => self.ends[0] = ends,
            EngineName::Runsc => self.ends[1] = ends,
            EngineName::Runc | EngineName::Crun => self.ends[2] = ends,
        }
        self
    }

    pub(crate) const fn args(mut self, args: &'static [&'static str]) -> Self {
        self.args = args;
        self
    }

    pub(crate) const fn stdin(mut self, bytes: usize) -> Self {
        self.stdin_bytes = bytes;
        self
    }

    pub(crate) const fn limits(mut self, limits: fn(&mut SandboxLimits)) -> Self {
        self.limits = limits;
        self
    }

    pub(crate) const fn notes(mut self, notes: &'static [Note]) -> Self {
        self.notes = notes;
        self
    }

    pub(crate) const fn check(mut self, check: fn(&Seen<'_>) -> Result<(), String>) -> Self {
        self.check = check;
        self
    }

    /// Accepted ends on an engine.
    pub(crate) fn ends_for(&self, engine: EngineName) -> &'static [End] {
        let at = ENGINES.iter().position(|&other| other == engine).expect("an engine of the suite");
        self.ends[at]
    }

    /// All differences between the observed and the expected result.
    pub(crate) fn problems(&self, seen: &Seen<'_>) -> Vec<String> {
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

    /// Holes without a note, and notes without a hole.
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
    fn is(self, exit: &ExecutionExit) -> bool {
        match exit {
            ExecutionExit::Exited { code } => self == Self::Code(*code),
            ExecutionExit::Signalled { signal } => self == Self::Signal(*signal),
            ExecutionExit::TimedOut => self == Self::TimedOut,
            ExecutionExit::OutOfMemory => self == Self::OutOfMemory,
            ExecutionExit::SandboxDied { .. } => self == Self::SandboxDied,
        }
    }

    /// Formats a choice of ends as text.
    pub(crate) fn any(ends: &[Self]) -> String {
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
    /// The program's output lines in the form `WORD NAME: VALUE`.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.execution.stdout.text.lines().filter_map(|line| {
            let (word, rest) = line.split_once(' ')?;
            let (name, value) = rest.split_once(": ")?;
            matches!(word, "held" | "hole" | "saw").then_some((word, name, value))
        })
    }

    /// A value that the program reported.
    pub(crate) fn saw(&self, what: &str) -> Result<&str, String> {
        self.lines()
            .find_map(|(word, name, value)| (word == "saw" && name == what).then_some(value))
            .ok_or_else(|| format!("it did not say `{what}`; {}", self.output_tail()))
    }

    /// Checks that at least this many attempts were made, which shows that the program ran to its
    /// end.
    pub(crate) fn tried(&self, least: usize) -> Result<(), String> {
        let made = self.lines().filter(|(word, ..)| matches!(*word, "held" | "hole")).count();
        match made >= least {
            true => Ok(()),
            false => Err(format!("only {made} of {least} attempts were made")),
        }
    }

    /// Checks the collected files and the notes about other entries.
    pub(crate) fn brought(
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
            return Err(format!("not collected: {:#?}", self.execution.left_behind));
        }
        Ok(())
    }

    /// The end of the program's output, for messages.
    pub(crate) fn output_tail(&self) -> String {
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
