//! Progress of a consultation: a board that is redrawn in place, or plain lines if standard error
//! is not a terminal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use moothall_core::MicroUsd;
use moothall_core::sandbox::IsolationClass;
use moothall_core::text::sanitize_line;
use moothall_store::{StoredEvent, now_ms};

use super::draw::{FrameInput, draw};
use super::progress::ConsultProgress;
use super::progress_lines::{ShownNotices, plain};
use crate::process_resources;
use crate::received_text::ReceivedText;
use crate::terminal::{self, DIM};

/// Redraw interval while events arrive.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Redraw interval without events, to update the clock.
const IDLE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressStyle {
    /// Redrawn in place.
    Live,
    /// One line per important event.
    Lines,
    /// Nothing: a program reads one JSON object at the end.
    Silent,
}

impl ProgressStyle {
    /// With `--json`, plain lines are suppressed.
    pub(crate) fn choose(json: bool) -> Self {
        match (terminal::stderr_is_terminal(), json) {
            (true, _) => Self::Live,
            (false, false) => Self::Lines,
            (false, true) => Self::Silent,
        }
    }
}

#[derive(Debug)]
pub(crate) struct ConsultScreen {
    pub(crate) board: ConsultProgress,
    style: ProgressStyle,
    models: String,
    budget: Option<MicroUsd>,
    /// The weak isolation class that a note before the run explained.
    announced_class: Option<IsolationClass>,
    /// The text of answers that are under way.
    received: ReceivedText,
    /// Whether the run is driven by this process and not by a worker.
    has_calls_here: bool,
    /// What the program waits for before the first event, and since when.
    waiting: Option<(String, Instant)>,
    notice: Option<String>,
    started: Instant,
    last_event: Instant,
    drawn_at: Option<Instant>,
    changed: bool,
}

/// Shared with the driver.
pub(crate) type SharedScreen = Arc<Mutex<ConsultScreen>>;

/// Locks the screen, also after a panic in another holder.
pub(crate) fn lock_screen(screen: &SharedScreen) -> MutexGuard<'_, ConsultScreen> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ConsultScreen {
    pub(crate) fn new(style: ProgressStyle, models: String) -> Self {
        Self {
            board: ConsultProgress::default(),
            style,
            models,
            budget: None,
            announced_class: None,
            received: ReceivedText::default(),
            has_calls_here: false,
            waiting: None,
            notice: None,
            started: Instant::now(),
            last_event: Instant::now(),
            drawn_at: None,
            changed: false,
        }
    }

    pub(crate) fn set_budget(&mut self, budget: Option<MicroUsd>) {
        self.budget = budget;
    }

    /// Where the calls of this process are counted; `None` if nothing shows them.
    pub(crate) fn received(&mut self) -> Option<ReceivedText> {
        self.has_calls_here = true;
        (self.style == ProgressStyle::Live).then(|| self.received.clone())
    }

    /// Lines need not repeat that debates run in this class.
    pub(crate) fn announced_class(&mut self, class: IsolationClass) {
        self.announced_class = Some(class);
    }

    /// Shows that the program waits for something, such as a sandbox.
    pub(crate) fn wait_for(&mut self, what: &str) {
        self.waiting = Some((what.to_owned(), Instant::now()));
        self.changed = true;
        self.tick();
    }

    /// Shows what the program does now; also without a terminal, because it takes seconds.
    pub(crate) fn announce(&mut self, message: &str) {
        match self.style {
            ProgressStyle::Live => self.wait_for(message),
            ProgressStyle::Lines => terminal::note(&format!("{DIM}{message}{DIM:#}\n")),
            ProgressStyle::Silent => {}
        }
    }

    /// Replays the events of earlier processes.
    pub(crate) fn catch_up(&mut self, events: &[StoredEvent]) {
        events.iter().for_each(|stored| self.board.event(stored));
        self.board.mark_resumed(now_ms());
        self.last_event = Instant::now();
        self.changed = true;
    }

    pub(crate) fn event(&mut self, stored: &StoredEvent) {
        let before = ShownNotices::of(&self.board, self.announced_class);
        self.waiting = None;
        self.last_event = Instant::now();
        self.board.event(stored);
        self.changed = true;
        if self.style == ProgressStyle::Lines
            && let Some(line) = plain(&self.board, before, stored)
        {
            terminal::note(&format!("{DIM}{line}{DIM:#}\n"));
        }
    }

    /// Shows a message until the run ends.
    pub(crate) fn notice(&mut self, message: &str) {
        match self.style {
            ProgressStyle::Live => self.notice = Some(message.to_owned()),
            ProgressStyle::Lines => terminal::note(&format!("{message}\n")),
            ProgressStyle::Silent => {}
        }
        self.changed = true;
        self.drawn_at = None;
        self.tick();
    }

    /// Redraws if the interval has passed.
    pub(crate) fn tick(&mut self) {
        if self.style != ProgressStyle::Live {
            return;
        }
        let pause = if self.changed { TICK } else { IDLE };
        if self.drawn_at.is_some_and(|at| at.elapsed() < pause) {
            return;
        }
        self.draw();
    }

    /// Draws a last time and keeps the frame on the screen; erases an empty board.
    pub(crate) fn close(&mut self) {
        if self.style != ProgressStyle::Live {
            return;
        }
        if self.board == ConsultProgress::default() {
            terminal::erase_frame();
            return;
        }
        self.waiting = None;
        self.notice = None;
        self.draw();
        terminal::keep_frame();
    }

    /// Erases the frame before other output.
    pub(crate) fn hide(&mut self) {
        if self.style == ProgressStyle::Live {
            terminal::erase_frame();
        }
        self.waiting = None;
        self.drawn_at = None;
    }

    fn draw(&mut self) {
        (self.drawn_at, self.changed) = (Some(Instant::now()), false);
        if let Some((what, since)) = &self.waiting {
            let line = format!("… {}, {} s", sanitize_line(what), since.elapsed().as_secs());
            terminal::draw_frame(&[line]);
            return;
        }
        let (columns, rows) = terminal::size();
        let status = process_resources::connections().status();
        let received = self.received.label_with_prompt();
        // Not the time of downloads and of sandboxes that boot, which send no events.
        let quiet = match (self.has_calls_here, self.received.longest_wait()) {
            (false, _) => self.last_event.elapsed(),
            (true, None) => Duration::ZERO,
            (true, Some(wait)) => wait.min(self.last_event.elapsed()),
        };
        let frame = FrameInput {
            columns,
            rows,
            elapsed: self.started.elapsed(),
            quiet,
            now_ms: now_ms(),
            budget: self.budget,
            models: &self.models,
            received: received.as_deref(),
            status: &status,
            notice: self.notice.as_deref(),
        };
        let colour = terminal::stderr_has_colour();
        let lines: Vec<String> = draw(&self.board, frame)
            .iter()
            .map(|line| if colour { line.painted() } else { line.plain() })
            .collect();
        terminal::draw_frame(&lines);
    }
}
