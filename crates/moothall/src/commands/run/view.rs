//! Progress of a run: lines for people, or JSON for programs.

use std::time::Instant;

use moothall_core::model::ModelName;
use moothall_core::{PauseReason, RunEventBody, RunId};
use moothall_engine::sequenced;
use moothall_store::StoredEvent;

use crate::display;
use crate::process_resources;
use crate::received_text::ReceivedText;
use crate::terminal::{self, BOLD, DIM};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunOutputMode {
    /// A person: one line per event on standard error.
    Person,
    /// A program that reads one object at the end.
    Json,
    /// A program that reads every event from standard output.
    Stdio,
}

#[derive(Debug)]
pub(crate) struct RunProgressView {
    audience: RunOutputMode,
    /// Whether the last line can be redrawn.
    live: bool,
    model: String,
    waiting: Option<(String, Instant)>,
    received: ReceivedText,
}

impl RunProgressView {
    pub(crate) fn new(audience: RunOutputMode, model: &ModelName) -> Self {
        let live = audience == RunOutputMode::Person && terminal::stderr_is_terminal();
        let received = ReceivedText::default();
        Self { audience, live, model: model.to_string(), waiting: None, received }
    }

    /// Where to count the text of answers; `None` if nothing shows it.
    pub(crate) fn received(&self) -> Option<ReceivedText> {
        self.live.then(|| self.received.clone())
    }

    pub(crate) fn event(&mut self, run_id: &RunId, stored: &StoredEvent) {
        match self.audience {
            RunOutputMode::Json => {}
            RunOutputMode::Stdio => {
                if let Ok(line) = serde_json::to_string(&sequenced(run_id, stored)) {
                    // A closed pipe does not stop the run, which is stored.
                    let _ = terminal::print_or_closed(&(line + "\n"));
                }
            }
            // The command ends with a line about it.
            RunOutputMode::Person if is_asked_pause(&stored.event.body) => self.clear(),
            RunOutputMode::Person => {
                self.clear();
                let line = display::event(stored);
                terminal::note(&match stored.event.body {
                    RunEventBody::AttemptStarted { .. } => format!("{BOLD}{line}{BOLD:#}\n"),
                    _ if stored.event.body.effect_id().is_some() => {
                        format!("  {DIM}{line}{DIM:#}\n")
                    }
                    _ => format!("{DIM}{line}{DIM:#}\n"),
                });
                if let Some(what) = self.waits_for(&stored.event.body) {
                    self.wait_for(what);
                }
            }
        }
    }

    pub(crate) fn wait_for(&mut self, what: impl Into<String>) {
        self.clear();
        self.waiting = Some((what.into(), Instant::now()));
        self.tick();
    }

    /// Tells a person that the run is about to stop.
    pub(crate) fn notice(&mut self, text: &'static str) {
        match self.live {
            true => self.wait_for(text),
            false if self.audience == RunOutputMode::Person => terminal::note(&format!("{text}\n")),
            false => {}
        }
    }

    /// Redraws the elapsed waiting time.
    pub(crate) fn tick(&mut self) {
        if let (true, Some((what, since))) = (self.live, &self.waiting) {
            let status = process_resources::connections().status();
            let mut parts = vec![format!("… {what}")];
            parts.extend(self.received.label_with_prompt());
            parts.push(format!("{} s", since.elapsed().as_secs()));
            parts.extend(display::queued(status.queued));
            parts.extend(status.outage.as_ref().map(display::outage));
            // The ellipsis takes one column; some terminals wrap after the last one.
            let line = display::cut(&parts.join(", "), terminal::size().0.saturating_sub(2));
            terminal::clear_line();
            terminal::note(&format!("{DIM}{line}{DIM:#}"));
        }
    }

    /// Erases the waiting line.
    pub(crate) fn clear(&mut self) {
        if self.waiting.take().is_some() && self.live {
            terminal::clear_line();
        }
    }

    /// What a run waits for after an event.
    fn waits_for(&self, body: &RunEventBody) -> Option<String> {
        let what = match body {
            RunEventBody::AttemptStarted { .. } | RunEventBody::OutputRejected { .. } => {
                return Some(format!("waiting for {}", self.model));
            }
            // The files of an edit are chosen; a call for the change follows.
            RunEventBody::ModelReplied { effect_id, .. }
                if effect_id.as_str().ends_with("/choose") =>
            {
                return Some(format!("waiting for {}", self.model));
            }
            RunEventBody::CodeGenerated { .. } => "running the program",
            RunEventBody::Executed { .. } => "judging",
            RunEventBody::Judged { .. } => {
                return Some(format!("{} analyzes the failure", self.model));
            }
            _ => return None,
        };
        Some(what.to_owned())
    }
}

fn is_asked_pause(body: &RunEventBody) -> bool {
    matches!(body, RunEventBody::RunPaused { reason: PauseReason::Person, .. })
}
