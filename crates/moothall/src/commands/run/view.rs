//! What is shown while a run goes on: lines for people, or JSON for another program.

use std::time::Instant;

use moothall_core::{RunEventBody, RunId};
use moothall_engine::sequenced;
use moothall_store::StoredEvent;

use crate::display;
use crate::terminal::{self, BOLD, DIM};

/// Who looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Audience {
    /// A person: one line an event, on standard error.
    Person,
    /// A program that wants one object at the end.
    Json,
    /// A program that wants every event, on standard output.
    Stdio,
}

/// The view of one run.
#[derive(Debug)]
pub(in crate::commands) struct View {
    audience: Audience,
    /// Whether the last line may be drawn again.
    live: bool,
    waiting: Option<(&'static str, Instant)>,
}

impl View {
    pub(in crate::commands) fn new(audience: Audience) -> Self {
        let live = audience == Audience::Person && terminal::stderr_is_terminal();
        Self { audience, live, waiting: None }
    }

    /// Something happened.
    pub(in crate::commands) fn event(&mut self, run_id: &RunId, stored: &StoredEvent) {
        match self.audience {
            Audience::Json => {}
            Audience::Stdio => {
                if let Ok(line) = serde_json::to_string(&sequenced(run_id, stored)) {
                    // Whoever started us and went away is not told; the run is kept.
                    let _ = terminal::print_on(&(line + "\n"));
                }
            }
            Audience::Person => {
                self.clear();
                let line = display::event(stored);
                terminal::note(&match stored.event.body {
                    RunEventBody::AttemptStarted { .. } => format!("{BOLD}{line}{BOLD:#}\n"),
                    _ if stored.event.body.effect_id().is_some() => {
                        format!("  {DIM}{line}{DIM:#}\n")
                    }
                    _ => format!("{DIM}{line}{DIM:#}\n"),
                });
                if let Some(what) = waits_for(&stored.event.body) {
                    self.wait_for(what);
                }
            }
        }
    }

    /// The run waits for something from now on.
    pub(in crate::commands) fn wait_for(&mut self, what: &'static str) {
        self.clear();
        self.waiting = Some((what, Instant::now()));
        self.tick();
    }

    /// Draws again how long the run has been waiting.
    pub(in crate::commands) fn tick(&mut self) {
        if let (true, Some((what, since))) = (self.live, self.waiting) {
            let seconds = since.elapsed().as_secs();
            terminal::clear_line();
            terminal::note(&format!("{DIM}… {what}, {seconds} s{DIM:#}"));
        }
    }

    /// Takes the line that was drawn away again.
    pub(in crate::commands) fn clear(&mut self) {
        if self.waiting.take().is_some() && self.live {
            terminal::clear_line();
        }
    }
}

/// What a run waits for after an event.
fn waits_for(body: &RunEventBody) -> Option<&'static str> {
    match body {
        RunEventBody::AttemptStarted { .. } | RunEventBody::OutputRejected { .. } => {
            Some("waiting for the model")
        }
        RunEventBody::CodeGenerated { .. } => Some("running the program"),
        RunEventBody::Executed { .. } => Some("judging"),
        RunEventBody::Judged { .. } => Some("asking what went wrong"),
        _ => None,
    }
}
