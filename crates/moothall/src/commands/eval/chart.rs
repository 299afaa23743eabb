//! A chart of stated chances and how often they came true.

use std::fmt::Write as _;

use moothall_core::benchmark::BenchmarkReport;

/// The chart as SVG. A point for each bin; its size shows the number of statements.
pub(crate) fn calibration_chart(report: &BenchmarkReport) -> String {
    let (left, top, size) = (60.0, 20.0, 320.0);
    let x = |chance: f64| left + size * chance;
    let y = |chance: f64| top + size * (1.0 - chance);
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 400 400\" width=\"400\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#6b7280\" role=\"img\" \
         aria-label=\"Stated chances against how often they came true\">\n",
    );
    for tenths in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let (at_x, at_y) = (x(tenths), y(tenths));
        let _ = write!(
            svg,
            "<path d=\"M{left:.1} {at_y:.1}H{:.1}M{at_x:.1} {top:.1}V{:.1}\" stroke=\"#9ca3af\" \
             stroke-width=\"0.5\"/>\n<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{tenths}</text>\n\
             <text x=\"{at_x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{tenths}</text>\n",
            left + size,
            top + size,
            left - 6.0,
            at_y + 4.0,
            top + size + 16.0,
        );
    }
    let _ = writeln!(
        svg,
        "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"#6b7280\" stroke-dasharray=\"4 4\"/>",
        x(0.0),
        y(0.0),
        x(1.0),
        y(1.0)
    );
    for bin in report.chances.iter().filter(|bin| bin.entries > 0) {
        let radius = 2.0 + f64::from(bin.entries).sqrt() / 2.5;
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\" fill=\"#2563eb\" \
             fill-opacity=\"0.6\"><title>stated {:.2}, came true {:.2}, {} statements</title></circle>",
            x(bin.stated),
            y(bin.came_true),
            bin.stated,
            bin.came_true,
            bin.entries
        );
    }
    svg.push_str(
        "<text x=\"220\" y=\"380\" text-anchor=\"middle\">stated chance to be among the best three</text>\n\
         <text x=\"16\" y=\"180\" text-anchor=\"middle\" transform=\"rotate(-90 16 180)\">came true</text>\n\
         </svg>\n",
    );
    svg
}
