//! Renders a [`ConsultProgress`] as lines of a given width. Pure, so that every frame can be tested.

use std::fmt::Write as _;
use std::time::Duration;

use anstyle::Style;
use moothall_core::MicroUsd;
use moothall_core::consult::EvidenceSource;
use moothall_core::debate::DebateStance;
use moothall_core::text::sanitize_line;
use moothall_models::ConnectionStatus;

use super::progress::{ConsultProgress, DebateProgress, DebateSide, StageState};
use crate::display::{self, LAYERS, cents, short_number};
use crate::terminal::{BOLD, DIM, GREEN, YELLOW};

/// Narrower terminals get a single line.
const MIN_COLUMNS: usize = 60;

/// Wider terminals show marks as words.
const WIDE_COLUMNS: usize = 100;

/// A shorter wait for an answer is not shown.
const SLOW_ANSWER: Duration = Duration::from_secs(10);

const PLAIN: Style = Style::new();

/// The input of a frame other than the board.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameInput<'a> {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    /// Since the run started or was resumed.
    pub(crate) elapsed: Duration,
    /// Since the last event.
    pub(crate) quiet: Duration,
    pub(crate) now_ms: u64,
    pub(crate) budget: Option<MicroUsd>,
    /// Short description of the models.
    pub(crate) models: &'a str,
    /// How much has arrived of the answers that are under way, or how long their prompts are.
    pub(crate) received: Option<&'a str>,
    /// What calls wait for.
    pub(crate) status: &'a ConnectionStatus,
    /// A message for the user, such as that the run is about to pause.
    pub(crate) notice: Option<&'a str>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StyledLine(Vec<(Style, String)>);

impl StyledLine {
    fn push(&mut self, style: Style, text: impl Into<String>) {
        self.0.push((style, text.into()));
    }

    fn columns(&self) -> usize {
        self.0.iter().map(|(_, text)| columns(text)).sum()
    }

    pub(crate) fn plain(&self) -> String {
        let joined: String = self.0.iter().map(|(_, text)| text.as_str()).collect();
        joined.trim_end().to_owned()
    }

    pub(crate) fn painted(&self) -> String {
        let mut painted = String::new();
        for (style, text) in &self.0 {
            // Writing to a String cannot fail.
            let _ = write!(painted, "{style}{text}{style:#}");
        }
        painted
    }

    /// Truncates to a number of columns.
    fn fit(self, max_columns: usize) -> Self {
        let mut left = max_columns;
        let mut fitted = Vec::new();
        for (style, text) in self.0 {
            let width = columns(&text);
            if width > left {
                fitted.push((style, cut(&text, left)));
                break;
            }
            left -= width;
            fitted.push((style, text));
        }
        Self(fitted)
    }
}

/// Draws the board: all lines if they fit, otherwise a single line.
pub(crate) fn draw(board: &ConsultProgress, frame: FrameInput<'_>) -> Vec<StyledLine> {
    // The last column stays empty, because some terminals wrap after it.
    let max_columns = frame.columns.saturating_sub(1);
    let all_lines = full_frame(board, frame);
    let fits = frame.columns >= MIN_COLUMNS && all_lines.len() < frame.rows;
    let lines = if fits { all_lines } else { vec![one_line(board, frame)] };
    lines.into_iter().map(|line| line.fit(max_columns)).collect()
}

fn full_frame(board: &ConsultProgress, frame: FrameInput<'_>) -> Vec<StyledLine> {
    let mut lines = vec![head(board, frame), layers(board, frame.columns)];
    let debates = board.lanes.values().any(|lane| lane.halves.is_some());
    if debates {
        lines.extend(lanes(board, frame.columns));
    } else {
        lines.extend(agents(board));
    }
    lines.extend(figures(board, frame));
    lines.extend(board.model_fallbacks.iter().take(MAX_FALLBACK_LINES).map(|one| {
        let mut line = StyledLine::default();
        line.push(YELLOW, format!(" {}", sanitize_line(&one.notice())));
        line
    }));
    lines.extend(rejections(board));
    lines.push(last_line(board, frame));
    lines
}

/// Answers that could not be used, such as one without a score.
fn rejections(board: &ConsultProgress) -> Option<StyledLine> {
    let last = board.last_rejection.as_ref()?;
    let mut line = StyledLine::default();
    let answers = if board.rejected_answers == 1 { "answer" } else { "answers" };
    line.push(YELLOW, format!(" {} {answers} rejected, last ", board.rejected_answers));
    line.push(DIM, sanitize_line(last));
    Some(line)
}

fn head(board: &ConsultProgress, frame: FrameInput<'_>) -> StyledLine {
    let mut line = StyledLine::default();
    let ticker = if board.ticker.is_empty() { "…" } else { &board.ticker };
    line.push(BOLD, sanitize_line(ticker));
    if board.source == EvidenceSource::Synthetic {
        line.push(YELLOW, "  AI-generated evidence (not real filings)");
    }
    let moves = if board.moves == 1 { "" } else { "s" };
    let rounds = if board.rounds == 1 { "" } else { "s" };
    line.push(
        DIM,
        format!(
            "  {} move{moves}, {} round{rounds} each · {}",
            board.moves,
            board.rounds,
            sanitize_line(frame.models)
        ),
    );
    let clock = clock(frame.elapsed);
    let room = frame.columns.saturating_sub(1 + clock.len() + 2);
    let mut line = line.fit(room);
    let gap = (room + 2).saturating_sub(line.columns());
    line.push(PLAIN, " ".repeat(gap));
    line.push(DIM, clock);
    line
}

fn layers(board: &ConsultProgress, width: usize) -> StyledLine {
    let mut line = StyledLine::default();
    for (number, (name, progress)) in LAYERS.iter().zip(board.layers).enumerate() {
        if number > 0 {
            line.push(PLAIN, "   ");
        }
        match progress {
            StageState::Waiting => line.push(DIM, format!("· {name}")),
            StageState::Running => line.push(BOLD, format!("▸ {name}")),
            StageState::Done => line.push(GREEN, format!("✓ {name}")),
        }
        if *name == "debate" && progress != StageState::Waiting {
            line.push(DIM, format!(" {}/{}", board.scored(), board.lanes.len()));
        }
    }
    let gap = width.saturating_sub(1 + line.columns() + columns(LEGEND));
    if gap >= 4 && !board.lanes.is_empty() {
        line.push(PLAIN, " ".repeat(gap));
        line.push(DIM, LEGEND);
    }
    line
}

/// Maximum number of lines about fallback models: one per role.
const MAX_FALLBACK_LINES: usize = 4;

/// Explains the symbols for stances.
const LEGEND: &str = "● holds  ◐ partly concedes  ○ concedes";

fn agents(board: &ConsultProgress) -> Vec<StyledLine> {
    let id = board.agents.iter().map(|agent| columns(&agent.id)).max().unwrap_or(0);
    let name = board.agents.iter().map(|agent| columns(&agent.persona)).max().unwrap_or(0);
    let line = |agent: &super::progress::AgentProgress| {
        let mut line = StyledLine::default();
        let done = agent.outputs.is_some();
        line.push(if done { GREEN } else { BOLD }, if done { "  ✓ " } else { "  ▸ " });
        line.push(PLAIN, padded(&sanitize_line(&agent.id), id + 2));
        line.push(DIM, padded(&sanitize_line(&agent.persona), name + 2));
        if let Some(outputs) = &agent.outputs {
            let said = match outputs.is_empty() {
                true => "no usable output".to_owned(),
                false => sanitize_line(&outputs.join(" ")),
            };
            line.push(PLAIN, said);
        }
        line
    };
    board.agents.iter().map(line).collect()
}

fn lanes(board: &ConsultProgress, width: usize) -> Vec<StyledLine> {
    let max_columns = width.saturating_sub(1);
    let id = board.lanes.keys().map(|(_, id)| columns(id)).max().unwrap_or(0);
    let members = members(board);
    let bar = board.rounds.clamp(1, 20) as usize;
    let marks = if width >= WIDE_COLUMNS { 15 } else { 3 };
    // Space, id, gap, title, gap, bar, gap, stances, gap, score, gap, marks.
    let beside = 1 + id + 2 + 2 + bar + 2 + members.len().max(1) + 2 + 7 + 2 + marks;
    let title = max_columns.saturating_sub(beside);
    let lane = |((_, move_id), lane): (&(u32, String), &DebateProgress)| {
        let mut line = StyledLine::default();
        let over = lane.is_over;
        let waits = lane.halves.is_none();
        line.push(if waits { DIM } else { BOLD }, format!(" {}", padded(move_id, id + 2)));
        let lane_title = lane.title.as_deref().map(sanitize_line).unwrap_or_default();
        line.push(
            if waits || over { DIM } else { PLAIN },
            padded(&cut(&lane_title, title), title + 2),
        );
        line.push(if over { GREEN } else { PLAIN }, cells(lane, board.rounds.clamp(1, 20)));
        line.push(PLAIN, "  ");
        let stances: String =
            members.iter().map(|member| stance(lane.stances.get(*member))).collect();
        line.push(PLAIN, stances);
        let score = lane.score.map(|(score, out_of)| format!("{score}/{out_of}"));
        line.push(BOLD, format!("  {:>7}", score.unwrap_or_default()));
        let said: Vec<&str> = match width >= WIDE_COLUMNS {
            true => [(lane.held, "held"), (lane.degraded, "degraded")],
            false => [(lane.held, "!"), (lane.degraded, "~")],
        }
        .into_iter()
        .filter_map(|(is, word)| is.then_some(word))
        .collect();
        match (lane.writing, said.is_empty() && width >= WIDE_COLUMNS) {
            (Some(DebateSide::Critic), true) => line.push(DIM, "  critic writing"),
            (Some(DebateSide::DecisionMakers), true) => line.push(DIM, "  members writing"),
            _ => line.push(YELLOW, format!("  {}", said.join(" "))),
        }
        line
    };
    board.lanes.iter().map(lane).collect()
}

/// Everyone who has a stance in any debate, sorted.
fn members(board: &ConsultProgress) -> Vec<&str> {
    let mut members: Vec<&str> =
        board.lanes.values().flat_map(|lane| lane.stances.keys().map(String::as_str)).collect();
    members.sort_unstable();
    members.dedup();
    members
}

/// One cell per round; half a cell if only the critic has responded.
fn cells(lane: &DebateProgress, rounds: u32) -> String {
    let cell = |round: u32| match lane.halves {
        None => '·',
        Some(halves) if halves >= 2 * round + 2 => '█',
        Some(halves) if halves == 2 * round + 1 => '▌',
        Some(halves) if halves == 2 * round && !lane.is_over => '▏',
        Some(_) => '·',
    };
    (0..rounds).map(cell).collect()
}

fn stance(stance: Option<&DebateStance>) -> char {
    match stance {
        None => '·',
        Some(DebateStance::Hold) => '●',
        Some(DebateStance::Partial) => '◐',
        Some(DebateStance::Concede) => '○',
    }
}

/// The figures in at most two lines, most important first. Figures that do not fit are dropped.
fn figures(board: &ConsultProgress, frame: FrameInput<'_>) -> Vec<StyledLine> {
    let mut parts = vec![calls(board), money(board, frame.budget)];
    parts.extend(waiting(board, frame));
    parts.extend(time_left(board, frame.now_ms));
    parts.extend(board.weakest.map(|class| format!("class {class}")));
    parts.push(tokens(board));
    let max_columns = frame.columns.saturating_sub(1);
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if columns(line) + 3 + columns(&part) <= max_columns => {
                line.push_str(" · ");
                line.push_str(&part);
            }
            _ => lines.push(part),
        }
    }
    let line = |text: String| {
        let mut line = StyledLine::default();
        line.push(DIM, text);
        line
    };
    lines.into_iter().take(2).map(line).collect()
}

/// The most important message: a notice, the last debate turn, or the legend.
fn last_line(board: &ConsultProgress, frame: FrameInput<'_>) -> StyledLine {
    let mut line = StyledLine::default();
    if let Some(notice) = frame.notice {
        line.push(YELLOW, notice);
    } else if let (Some(outage), None) = (&frame.status.outage, &board.end) {
        line.push(YELLOW, display::outage(outage));
    } else if let (Some(turn), None) = (&board.last_turn, &board.end) {
        let who = format!("{} {}, round {}: ", turn.move_id, turn.role, turn.round);
        line.push(DIM, sanitize_line(&who));
        let joined = turn.preview.split_whitespace().collect::<Vec<_>>().join(" ");
        line.push(PLAIN, sanitize_line(&joined));
    } else if !board.lanes.is_empty() {
        line.push(DIM, format!("{LEGEND}  ! held back  ~ degraded"));
    }
    line
}

fn one_line(board: &ConsultProgress, frame: FrameInput<'_>) -> StyledLine {
    let mut line = StyledLine::default();
    if let Some(notice) = frame.notice {
        line.push(YELLOW, notice);
        return line;
    }
    if let (Some(outage), None) = (&frame.status.outage, &board.end) {
        line.push(YELLOW, display::outage(outage));
        return line;
    }
    let running = LAYERS.iter().zip(board.layers).rev().find(|(_, at)| *at != StageState::Waiting);
    let name = running.map_or("start", |(name, _)| name);
    line.push(BOLD, format!("▸ {name}"));
    let mut parts = Vec::new();
    if !board.lanes.is_empty() {
        parts.push(format!("{}/{} scored", board.scored(), board.lanes.len()));
    }
    parts.push(calls(board));
    parts.push(money(board, None));
    parts.extend(waiting(board, frame));
    parts.extend(time_left(board, frame.now_ms));
    line.push(DIM, format!(" · {}", parts.join(" · ")));
    line
}

pub(crate) fn calls(board: &ConsultProgress) -> String {
    let mut text = match board.expected_calls {
        0 => format!("{} calls", board.calls),
        expected => format!("{}/{expected} calls", board.calls),
    };
    if board.extra_calls > 0 {
        let _ = write!(text, " + {} retried", board.extra_calls);
    }
    if board.failed_calls > 0 {
        let _ = write!(text, ", {} failed", board.failed_calls);
    }
    text
}

pub(crate) fn tokens(board: &ConsultProgress) -> String {
    let mut text = format!("{} tokens", short_number(board.usage.total()));
    let prompt = board.usage.prompt();
    if board.usage.cache_read > 0 && prompt > 0 {
        let share = u128::from(board.usage.cache_read) * 100 / u128::from(prompt);
        let _ = write!(text, ", {share}% of prompts cached");
    }
    text
}

pub(crate) fn money(board: &ConsultProgress, budget: Option<MicroUsd>) -> String {
    if board.unpriced_calls > 0 && board.cost == MicroUsd::ZERO {
        return "price unknown".to_owned();
    }
    let mut text = cents(board.cost);
    if let Some(budget) = budget.filter(|budget| *budget > MicroUsd::ZERO) {
        let _ = write!(text, " of {} budget", cents(budget));
    }
    if board.unpriced_calls > 0 {
        let _ = write!(text, ", {} calls with unknown price", board.unpriced_calls);
    }
    text
}

/// How long no model has answered, if that is long, and how many calls are queued.
fn waiting(board: &ConsultProgress, frame: FrameInput<'_>) -> Vec<String> {
    let mut parts = Vec::new();
    if board.end.is_none() && board.layers.contains(&StageState::Running) {
        if frame.quiet >= SLOW_ANSWER {
            let waiting = format!("waiting {} s for an answer", frame.quiet.as_secs());
            parts.push(match frame.received {
                Some(received) => format!("{waiting}, {received}"),
                None => waiting,
            });
        }
        parts.extend(display::queued(frame.status.queued));
    }
    parts
}

fn time_left(board: &ConsultProgress, now_ms: u64) -> Option<String> {
    let ms = board.remaining_ms(now_ms)?;
    Some(match ms {
        0..10_000 => "nearly done".to_owned(),
        10_000..90_000 => format!("about {} s left", ms.div_ceil(10_000) * 10),
        90_000..5_400_000 => format!("about {} min left", ms.div_ceil(60_000)),
        _ => format!("about {} h left", ms.div_ceil(3_600_000)),
    })
}

fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes:02}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

/// Truncates to a number of columns, with an ellipsis.
fn cut(text: &str, max_columns: usize) -> String {
    if columns(text) <= max_columns {
        return text.to_owned();
    }
    let mut left = max_columns.saturating_sub(1);
    let mut kept = String::new();
    for c in text.chars() {
        let width = char_width(c);
        if width > left {
            break;
        }
        left -= width;
        kept.push(c);
    }
    if max_columns > 0 {
        kept.push('…');
    }
    kept
}

fn columns(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Approximate display width of a character: 0 for combining marks, 2 for East Asian characters and
/// emoji. A wrong guess misplaces one column only, because lines are drawn without wrapping.
fn char_width(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036f | 0x200b..=0x200d | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
