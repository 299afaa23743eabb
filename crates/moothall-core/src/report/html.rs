//! Renders a document as one HTML file: no scripts, no external resources, with styles for all
//! screen widths, dark mode and print.
//!
//! Every text is escaped for elements and attributes, and the content security policy forbids
//! scripts, images, forms and frames, so injected markup would have no effect.

use super::document::{DocumentBlock, DocumentTable, ReportDocument, TextSpan, Words};

/// Paper sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaperSize {
    /// 210 × 297 mm.
    A4,
    /// 8.5 × 11 in.
    Letter,
}

impl PaperSize {
    /// The name in CSS and Typst.
    pub fn name(self) -> &'static str {
        match self {
            Self::A4 => "a4",
            Self::Letter => "letter",
        }
    }
}

const STYLE: &str = include_str!("html/memo.css");

/// Tables with more rows may break across pages.
const SMALL_TABLE: usize = 8;

const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Renders a document as one HTML file.
pub fn html(document: &ReportDocument, paper: PaperSize) -> String {
    let title = escaped(&document.title);
    let style = STYLE.replace("{{paper}}", paper.name());
    let watermark = document.watermark.as_deref().map(escaped);
    let mark = |tag: &str| {
        let line = |words: &String| format!("<{tag} class=\"watermark\">{words}</{tag}>\n");
        watermark.as_ref().map(line).unwrap_or_default()
    };
    let body: String = document.blocks.iter().map(block).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n\
         <table class=\"sheet\">\n<thead><tr><td><div class=\"running\">{head}</div>{on_paper}</td></tr></thead>\n\
         <tfoot><tr><td><div class=\"running\">{foot}</div></td></tr></tfoot>\n\
         <tbody><tr><td>\n<main>\n<h1>{title}</h1>\n{banner}<p class=\"subtitle\">{subtitle}</p>\n\
         {body}</main>\n</td></tr></tbody>\n</table>\n</body>\n</html>\n",
        head = escaped(&document.running_head),
        on_paper = mark("span"),
        foot = escaped(&document.running_foot),
        banner = mark("p"),
        subtitle = escaped(&document.subtitle),
    )
}

fn block(block: &DocumentBlock) -> String {
    match block {
        DocumentBlock::Heading { level, words, new_page } => {
            let tag = format!("h{}", usize::from(*level) + 1);
            let class = if *new_page { " class=\"page\"" } else { "" };
            format!("<{tag}{class}>{}</{tag}>\n", escaped(words))
        }
        DocumentBlock::Paragraph { words } => format!("<p>{}</p>\n", spans(words)),
        DocumentBlock::Notice { words } => format!("<p class=\"notice\">{}</p>\n", spans(words)),
        DocumentBlock::Fine { words } => format!("<p class=\"fine\">{}</p>\n", spans(words)),
        DocumentBlock::List { numbered, items } => {
            let tag = if *numbered { "ol" } else { "ul" };
            let items: String =
                items.iter().map(|item| format!("<li>{}</li>\n", spans(item))).collect();
            format!("<{tag}>\n{items}</{tag}>\n")
        }
        DocumentBlock::Fields { rows } => {
            let rows: String = rows
                .iter()
                .map(|row| {
                    format!("<dt>{}</dt><dd>{}</dd>\n", escaped(&row.name), spans(&row.value))
                })
                .collect();
            format!("<dl>\n{rows}</dl>\n")
        }
        DocumentBlock::Table(table) => table_of(table),
    }
}

/// A table that scrolls horizontally on narrow screens.
fn table_of(table: &DocumentTable) -> String {
    let class = |at: usize| match table.columns.get(at) {
        Some(column) if column.numbers => " class=\"number\"",
        Some(column) if column.wide => " class=\"wide\"",
        _ => " class=\"tight\"",
    };
    let titles: String = (0..)
        .zip(&table.columns)
        .map(|(at, column)| format!("<th{}>{}</th>", class(at), escaped(&column.title)))
        .collect();
    let last = table.rows.len();
    let whole = if last <= SMALL_TABLE { " whole" } else { "" };
    let mut rows = String::new();
    for (number, row) in (1..).zip(&table.rows) {
        let total = table.has_total && number == last;
        rows.push_str(if total { "<tr class=\"total\">" } else { "<tr>" });
        for (at, cell) in row.iter().enumerate() {
            rows.push_str(&format!("<td{}>{}</td>", class(at), spans(cell)));
        }
        rows.push_str("</tr>\n");
    }
    format!(
        "<div class=\"scroll{whole}\"><table class=\"data\">\n<thead><tr>{titles}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

fn spans(words: &Words) -> String {
    words.iter().map(span).collect()
}

fn span(span: &TextSpan) -> String {
    match span {
        TextSpan::Text { text } => escaped(text),
        TextSpan::Strong { text } => format!("<strong>{}</strong>", escaped(text)),
        TextSpan::Cite { id, url, listed } => {
            let (shown, target) = (escaped(id), anchor(id));
            match (url, listed) {
                (Some(url), _) => {
                    format!("<a class=\"cite\" href=\"{}\">[{shown}]</a>", escaped(url.as_str()))
                }
                (None, true) => format!("<a class=\"cite\" href=\"#{target}\">[{shown}]</a>"),
                (None, false) => format!("<span class=\"cite\">[{shown}]</span>"),
            }
        }
        TextSpan::Source { id } => {
            format!("<span class=\"cite\" id=\"{}\">[{}]</span>", anchor(id), escaped(id))
        }
        TextSpan::Link { text, url } => {
            format!("<a href=\"{}\">{}</a>", escaped(url.as_str()), escaped(text))
        }
        TextSpan::Mark { number } => format!("<sup class=\"mark\">⚠{number}</sup>"),
        TextSpan::Bar { value, top } => bar(*value, *top),
        TextSpan::Dots { values, top } => dots(values, *top),
    }
}

/// Hidden from screen readers, because the number is next to it.
fn bar(value: u32, top: u32) -> String {
    let full = u64::from(value.min(top)) * 100 / u64::from(top.max(1));
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 100 10\" aria-hidden=\"true\">\
         <rect class=\"room\" width=\"100\" height=\"10\" rx=\"2\"/>\
         <rect class=\"full\" width=\"{full}\" height=\"10\" rx=\"2\"/></svg>"
    )
}

fn dots(values: &[u32], top: u32) -> String {
    let steps = u64::from(top.max(2)) - 1;
    let place = |value: u32| 5 + u64::from(value.clamp(1, top.max(1)) - 1) * 90 / steps;
    let least = values.iter().min().map_or(5, |value| place(*value));
    let most = values.iter().max().map_or(5, |value| place(*value));
    let width = most - least;
    let dots: String = values
        .iter()
        .map(|value| format!("<circle cx=\"{}\" cy=\"5\" r=\"3.5\"/>", place(*value)))
        .collect();
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 100 10\" aria-hidden=\"true\">\
         <rect class=\"room\" y=\"4\" x=\"2\" width=\"96\" height=\"2\"/>\
         <rect class=\"full\" x=\"{least}\" y=\"4\" width=\"{width}\" height=\"2\"/>{dots}</svg>"
    )
}

/// An HTML id. Evidence ids do not differ only in characters such as `&`, so anchors are unique.
fn anchor(id: &str) -> String {
    let plain = |sign: char| if sign.is_ascii_alphanumeric() { sign } else { '-' };
    id.chars().map(plain).collect()
}

/// Escapes text for elements and for double-quoted attributes.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(sign),
        }
    }
    safe
}
