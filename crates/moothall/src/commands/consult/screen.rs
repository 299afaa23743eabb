//! What a person sees while a consultation goes on: a board that is drawn again in place, or plain
//! lines where standard error is no terminal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use moothall_core::MicroUsd;
use moothall_core::text::shown_line;
use moothall_store::{StoredEvent, now_ms};

use super::board::Board;
use super::draw::{Frame, draw};
use super::plain::plain;
use crate::terminal::{self, DIM};

/// How often the board is drawn again while something happens.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// How often it is drawn while nothing happens: the clock goes on.
const IDLE: Duration = Duration::from_secs(1);

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Drawn again in place.
    Live,
    /// One line now and then.
    Lines,
    /// Not at all: a program reads one object at the end.
    Silent,
}

impl Style {
    /// What fits where standard error goes to. Whoever wants JSON gets it without lines around it.
    pub(super) fn choose(json: bool) -> Self {
        match (terminal::stderr_is_terminal(), json) {
            (true, _) => Self::Live,
            (false, false) => Self::Lines,
            (false, true) => Self::Silent,
        }
    }
}

/// The screen of one run.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) board: Board,
    style: Style,
    models: String,
    budget: Option<MicroUsd>,
    /// What is waited for before anything happened.
    waiting: Option<(String, Instant)>,
    notice: Option<String>,
    started: Instant,
    drawn_at: Option<Instant>,
    changed: bool,
}

/// The screen, shared with the driver.
pub(super) type SharedScreen = Arc<Mutex<Screen>>;

/// The screen, whoever else may have panicked while looking.
pub(super) fn shown(screen: &SharedScreen) -> MutexGuard<'_, Screen> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Screen {
    pub(super) fn new(style: Style, models: String) -> Self {
        Self {
            board: Board::default(),
            style,
            models,
            budget: None,
            waiting: None,
            notice: None,
            started: Instant::now(),
            drawn_at: None,
            changed: false,
        }
    }

    pub(super) fn set_budget(&mut self, budget: Option<MicroUsd>) {
        self.budget = budget;
    }

    /// Something is waited for, such as a sandbox.
    pub(super) fn wait_for(&mut self, what: &str) {
        self.waiting = Some((what.to_owned(), Instant::now()));
        self.changed = true;
        self.tick();
    }

    /// What happened before this process.
    pub(super) fn catch_up(&mut self, events: &[StoredEvent]) {
        events.iter().for_each(|stored| self.board.event(stored));
        self.board.go_on(now_ms());
        self.changed = true;
    }

    /// Something happened.
    pub(super) fn event(&mut self, stored: &StoredEvent) {
        let before = self.board.fallbacks.len();
        self.waiting = None;
        self.board.event(stored);
        self.changed = true;
        if self.style == Style::Lines
            && let Some(line) = plain(&self.board, before, stored)
        {
            terminal::note(&format!("{DIM}{line}{DIM:#}\n"));
        }
    }

    /// Says something that stays until the run ends.
    pub(super) fn notice(&mut self, words: &str) {
        match self.style {
            Style::Live => self.notice = Some(words.to_owned()),
            Style::Lines => terminal::note(&format!("{words}\n")),
            Style::Silent => {}
        }
        self.changed = true;
        self.drawn_at = None;
        self.tick();
    }

    /// Draws again, where there is something to draw and it is time.
    pub(super) fn tick(&mut self) {
        if self.style != Style::Live {
            return;
        }
        let pause = if self.changed { TICK } else { IDLE };
        if self.drawn_at.is_some_and(|at| at.elapsed() < pause) {
            return;
        }
        self.draw();
    }

    /// Draws for the last time and leaves what was drawn; a board without anything on it goes away.
    pub(super) fn close(&mut self) {
        if self.style != Style::Live {
            return;
        }
        if self.board == Board::default() {
            terminal::erase_frame();
            return;
        }
        self.waiting = None;
        self.notice = None;
        self.draw();
        terminal::keep_frame();
    }

    /// Takes the frame away, because something else is about to be said.
    pub(super) fn hide(&mut self) {
        if self.style == Style::Live {
            terminal::erase_frame();
        }
        self.waiting = None;
        self.drawn_at = None;
    }

    fn draw(&mut self) {
        (self.drawn_at, self.changed) = (Some(Instant::now()), false);
        if let Some((what, since)) = &self.waiting {
            let words = format!("… {}, {} s", shown_line(what), since.elapsed().as_secs());
            terminal::draw_frame(&[words]);
            return;
        }
        let (columns, rows) = terminal::size();
        let frame = Frame {
            columns,
            rows,
            elapsed: self.started.elapsed(),
            now_ms: now_ms(),
            budget: self.budget,
            models: &self.models,
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
