//! Progress of work that takes longer than two seconds: what happens, how far it is, how long it
//! still takes. On a terminal it is one line that changes; elsewhere it is a line now and then.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use moothall_core::text::sanitize_line;

use crate::display;
use crate::received_text::ReceivedText;
use crate::terminal::{self, DIM};

/// Shorter work shows nothing on a terminal.
const DRAW_AFTER: Duration = Duration::from_secs(2);

/// Shorter work prints nothing without a terminal, where lines stay in a log.
const PRINT_AFTER: Duration = Duration::from_secs(5);

/// How often the line on a terminal changes.
const TICK: Duration = Duration::from_millis(250);

/// How often a line is printed without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(15);

/// Less of the work gives no useful estimate of the remaining time, in percent.
const MIN_PERCENT_FOR_ESTIMATE: u64 = 5;

/// Shows progress until it is dropped.
#[derive(Debug)]
pub(crate) struct WorkProgress {
    state: SharedWork,
    ticker: Option<(Sender<()>, JoinHandle<()>)>,
}

type SharedWork = Arc<Mutex<WorkState>>;

#[derive(Debug)]
struct WorkState {
    what: String,
    since: Instant,
    size: WorkSize,
}

/// How much of a step is done.
#[derive(Debug, Clone)]
pub(crate) enum WorkSize {
    Unknown,
    /// The step usually takes this long.
    Usually(Duration),
    /// The answer of a model.
    Answer(ReceivedText),
    Steps {
        done: u64,
        total: u64,
    },
    /// `total` is 0 if it is unknown.
    Bytes {
        done: u64,
        total: u64,
    },
    /// The step writes this file.
    File {
        path: PathBuf,
        total: u64,
    },
}

impl WorkProgress {
    /// Starts with the first step. Shows nothing if the output is JSON.
    pub(crate) fn start(what: &str, is_json: bool) -> Self {
        let state =
            WorkState { what: what.to_owned(), since: Instant::now(), size: WorkSize::Unknown };
        let state = Arc::new(Mutex::new(state));
        let ticker = (!is_json).then(|| {
            let (stop, stopped) = channel::<()>();
            let shared = Arc::clone(&state);
            let is_live = terminal::stderr_is_terminal();
            let thread = std::thread::spawn(move || {
                let mut printed_at = None;
                while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    show(&lock(&shared), is_live, &mut printed_at);
                }
            });
            (stop, thread)
        });
        Self { state, ticker }
    }

    /// Continues with the next step.
    pub(crate) fn step(&self, what: &str, size: WorkSize) {
        let mut state = lock(&self.state);
        *state = WorkState { what: what.to_owned(), since: Instant::now(), size };
    }

    /// A step that copies this many bytes.
    pub(crate) fn step_bytes(&self, what: &str, total: u64) {
        self.step(what, WorkSize::Bytes { done: 0, total });
    }

    /// A step that writes a file.
    pub(crate) fn step_file(&self, what: &str, path: &Path, total: u64) {
        self.step(what, WorkSize::File { path: path.to_owned(), total });
    }

    /// Counts the bytes that are read from or written to `inner`.
    pub(crate) fn counted<T>(&self, inner: T) -> CountedStream<T> {
        CountedStream { inner, state: Arc::clone(&self.state) }
    }
}

impl Drop for WorkProgress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.ticker.take() {
            drop(stop);
            let _ = thread.join();
            terminal::erase_frame();
        }
    }
}

fn lock(state: &SharedWork) -> MutexGuard<'_, WorkState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draws or prints the current step if it is due. `printed_at` is the step and time of the last
/// printed line.
fn show(state: &WorkState, is_live: bool, printed_at: &mut Option<(Instant, Instant)>) {
    let elapsed = state.since.elapsed();
    if elapsed < if is_live { DRAW_AFTER } else { PRINT_AFTER } {
        return;
    }
    let line = line(&state.what, elapsed, &state.size);
    if is_live {
        let line = display::cut(&line, terminal::size().0.saturating_sub(1));
        terminal::draw_frame(&[line]);
        return;
    }
    let is_due =
        printed_at.is_none_or(|(step, at)| step != state.since || at.elapsed() >= LINE_INTERVAL);
    if is_due {
        terminal::note(&format!("{DIM}{line}{DIM:#}\n"));
        *printed_at = Some((state.since, Instant::now()));
    }
}

/// One line: what, how far, how long so far, how long still.
fn line(what: &str, elapsed: Duration, size: &WorkSize) -> String {
    let (far, left) = match size {
        WorkSize::Unknown => (None, None),
        WorkSize::Usually(usual) => {
            let left = usual.saturating_sub(elapsed);
            let left = (!left.is_zero()).then_some(left);
            (None, left)
        }
        WorkSize::Answer(received) => (received.label(), None),
        WorkSize::Steps { done, total } => {
            (Some(format!("{done} of {total}")), remaining(elapsed, *done, *total))
        }
        WorkSize::Bytes { done, total } => bytes(elapsed, *done, *total),
        WorkSize::File { path, total } => {
            let done = path.metadata().map_or(0, |file| file.len());
            bytes(elapsed, done.min(*total), *total)
        }
    };
    let mut parts = vec![format!("… {}", sanitize_line(what))];
    parts.extend(far);
    parts.push(seconds(elapsed));
    parts.extend(left.map(|left| format!("about {} left", seconds(left))));
    parts.join(", ")
}

fn bytes(elapsed: Duration, done: u64, total: u64) -> (Option<String>, Option<Duration>) {
    let far = match total {
        0 => display::bytes(done),
        _ => format!("{} of {}", display::bytes(done), display::bytes(total)),
    };
    (Some(far), remaining(elapsed, done, total))
}

fn remaining(elapsed: Duration, done: u64, total: u64) -> Option<Duration> {
    let is_early = done.saturating_mul(100) < total.saturating_mul(MIN_PERCENT_FOR_ESTIMATE);
    if done == 0 || done >= total || is_early {
        return None;
    }
    let millis = elapsed.as_millis().saturating_mul(u128::from(total - done)) / u128::from(done);
    Some(Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX)))
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// A reader or writer whose bytes are counted.
#[derive(Debug)]
pub(crate) struct CountedStream<T> {
    inner: T,
    state: SharedWork,
}

impl<T> CountedStream<T> {
    fn count(&self, bytes: usize) {
        if let WorkSize::Bytes { done, .. } = &mut lock(&self.state).size {
            *done = done.saturating_add(bytes as u64);
        }
    }
}

impl<T: Read> Read for CountedStream<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count(count);
        Ok(count)
    }
}

impl<T: Write> Write for CountedStream<T> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.count(count);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
#[path = "work_progress_tests.rs"]
mod tests;
