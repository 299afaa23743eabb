//! The plot of the book: how long this many concurrent runs take.

use super::Batch;

/// Size of the image and its margins.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 52.0;

/// Readable on light and dark pages.
const INK: &str = "#7d8590";
const LINE: &str = "#3b82f6";

/// Draws the measurements, with a dashed line that extrapolates the first one linearly.
pub(crate) fn svg(batches: &[Batch]) -> String {
    let most_runs = batches.iter().map(|batch| batch.runs).max().unwrap_or(1) as f64;
    let seconds = |batch: &Batch| batch.wall.as_secs_f64();
    let most_seconds = step(batches.iter().map(seconds).fold(1.0, f64::max));
    let x = |runs: f64| LEFT + (WIDTH - LEFT - RIGHT) * runs / most_runs;
    let y = |seconds: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * seconds / most_seconds;
    let mut parts = vec![
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"{INK}\">"
        ),
        "<title>Seconds until all of so many consultations at once are over</title>".to_owned(),
        format!("<text x=\"{LEFT}\" y=\"20\">seconds until all are over · calls a second</text>"),
    ];
    for part in 0..=4_u32 {
        let value = most_seconds * f64::from(part) / 4.0;
        let (at, right) = (y(value), WIDTH - RIGHT);
        parts.push(format!(
            "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"{INK}\" stroke-opacity=\"0.3\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value:.0}</text>",
            LEFT - 8.0,
            at + 4.0
        ));
    }
    if let Some(first) = batches.first() {
        let end = seconds(first) / first.runs as f64 * most_runs;
        let (from, to) = ((x(0.0), y(0.0)), (x(most_runs), y(end)));
        parts.push(format!(
            "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"{INK}\" stroke-dasharray=\"4 4\"/>",
            from.0, from.1, to.0, to.1
        ));
    }
    let points: Vec<String> = batches
        .iter()
        .map(|batch| format!("{:.1} {:.1}", x(batch.runs as f64), y(seconds(batch))))
        .collect();
    parts.push(format!(
        "<path d=\"M{}\" fill=\"none\" stroke=\"{LINE}\" stroke-width=\"2\"/>",
        points.join("L")
    ));
    for batch in batches {
        let (at, up) = (x(batch.runs as f64), y(seconds(batch)));
        parts.push(format!(
            "<circle cx=\"{at:.1}\" cy=\"{up:.1}\" r=\"4\" fill=\"{LINE}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{:.0} s · {:.0}/s</text>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            at - 8.0,
            up - 8.0,
            seconds(batch),
            batch.calls_per_second(),
            HEIGHT - BOTTOM + 20.0,
            batch.runs
        ));
    }
    parts.push(format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">consultations at once</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 10.0
    ));
    parts.push("</svg>\n".to_owned());
    parts.join("\n")
}

/// The next higher number that can be divided into four axis sections.
fn step(most: f64) -> f64 {
    (most / 20.0).ceil() * 20.0
}
