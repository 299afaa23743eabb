//! A document as one HTML file: no script, nothing from elsewhere, a style for screens of any width,
//! for the dark and for paper.
//!
//! Every text is escaped, for elements and attributes alike, and the policy in the head forbids
//! scripts, images, forms and frames: what slipped through would still do nothing.

use super::document::{Block, Document, Span, Table, Words};

/// Paper to print on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paper {
    /// 210 × 297 mm.
    A4,
    /// 8.5 × 11 in.
    Letter,
}

impl Paper {
    /// Its name in style sheets and in typesetting.
    pub fn name(self) -> &'static str {
        match self {
            Self::A4 => "a4",
            Self::Letter => "letter",
        }
    }
}

const STYLE: &str = include_str!("html/memo.css");

/// A table with more rows may be divided between two pages.
const SMALL_TABLE: usize = 8;

const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Writes a document as one HTML file.
pub fn html(document: &Document, paper: Paper) -> String {
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

fn block(block: &Block) -> String {
    match block {
        Block::Heading { level, words, new_page } => {
            let tag = format!("h{}", usize::from(*level) + 1);
            let class = if *new_page { " class=\"page\"" } else { "" };
            format!("<{tag}{class}>{}</{tag}>\n", escaped(words))
        }
        Block::Paragraph { words } => format!("<p>{}</p>\n", spans(words)),
        Block::Notice { words } => format!("<p class=\"notice\">{}</p>\n", spans(words)),
        Block::Fine { words } => format!("<p class=\"fine\">{}</p>\n", spans(words)),
        Block::List { numbered, items } => {
            let tag = if *numbered { "ol" } else { "ul" };
            let items: String =
                items.iter().map(|item| format!("<li>{}</li>\n", spans(item))).collect();
            format!("<{tag}>\n{items}</{tag}>\n")
        }
        Block::Fields { rows } => {
            let rows: String = rows
                .iter()
                .map(|row| {
                    format!("<dt>{}</dt><dd>{}</dd>\n", escaped(&row.name), spans(&row.value))
                })
                .collect();
            format!("<dl>\n{rows}</dl>\n")
        }
        Block::Table(table) => table_of(table),
    }
}

/// A table that scrolls by itself where the screen is narrower than its words.
fn table_of(table: &Table) -> String {
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

fn span(span: &Span) -> String {
    match span {
        Span::Text { text } => escaped(text),
        Span::Strong { text } => format!("<strong>{}</strong>", escaped(text)),
        Span::Cite { id, url, listed } => {
            let (shown, target) = (escaped(id), anchor(id));
            match (url, listed) {
                (Some(url), _) => {
                    format!("<a class=\"cite\" href=\"{}\">[{shown}]</a>", escaped(url.as_str()))
                }
                (None, true) => format!("<a class=\"cite\" href=\"#{target}\">[{shown}]</a>"),
                (None, false) => format!("<span class=\"cite\">[{shown}]</span>"),
            }
        }
        Span::Source { id } => {
            format!("<span class=\"cite\" id=\"{}\">[{}]</span>", anchor(id), escaped(id))
        }
        Span::Link { text, url } => {
            format!("<a href=\"{}\">{}</a>", escaped(url.as_str()), escaped(text))
        }
        Span::Mark { number } => format!("<sup class=\"mark\">⚠{number}</sup>"),
        Span::Bar { value, top } => bar(*value, *top),
        Span::Dots { values, top } => dots(values, *top),
    }
}

/// Drawn beside the number that it stands for, so readers of the page's words need no second one.
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

/// A name in a page; two ids of evidence that differ only in signs like `&` are not to be had.
fn anchor(id: &str) -> String {
    let plain = |sign: char| if sign.is_ascii_alphanumeric() { sign } else { '-' };
    id.chars().map(plain).collect()
}

/// Fit for the inside of an element and of an attribute in double quotes.
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
