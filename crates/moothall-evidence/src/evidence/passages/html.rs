//! Converts the HTML of a filing to paragraphs of plain text.
//!
//! This is a small scanner instead of a full HTML parser: filings are flat (blocks, spans and
//! tables), only the ends of blocks matter, tree-building parsers need a hundred times the memory
//! for a 20 MB report, and this crate would take on their dependencies. It reads every document
//! once from start to end, regardless of its content.

use crate::text::is_hidden;

/// Limit on paragraphs per document; the rest is dropped.
const MAX_PARAGRAPHS: usize = 200_000;
/// The longest supported entity, including `&` and `;`.
const MAX_ENTITY_BYTES: usize = 12;

/// Elements that end a paragraph.
const BLOCK_ELEMENTS: &[&str] = &[
    "address",
    "article",
    "blockquote",
    "body",
    "caption",
    "center",
    "dd",
    "div",
    "dl",
    "dt",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "tbody",
    "thead",
    "title",
    "tr",
    "ul",
];
/// Elements whose content is not visible.
const HIDDEN_ELEMENTS: &[&str] =
    &["head", "ix:header", "noscript", "script", "style", "template", "xml"];
/// Elements whose content is not markup, so a `<` in it opens no tag.
const RAW_TEXT_ELEMENTS: &[&str] = &["script", "style"];
/// Elements without an end tag.
const VOID_ELEMENTS: &[&str] = &["area", "br", "col", "hr", "img", "input", "link", "meta", "wbr"];

/// The paragraphs of a document, in order, with each run of white space collapsed to one space.
pub(crate) fn paragraphs(html: &str) -> Vec<String> {
    let mut reader = HtmlReader::default();
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        let (text, from) = rest.split_at(open);
        reader.text(text);
        match markup(from) {
            Some((tag, behind)) => {
                reader.tag(tag);
                rest = reader.raw_element().map_or(behind, |name| end_of_raw(behind, name));
            }
            // A literal `<`.
            None => {
                reader.text("<");
                rest = &from[1..];
            }
        }
        if reader.paragraphs.len() >= MAX_PARAGRAPHS {
            return reader.paragraphs;
        }
    }
    reader.text(rest);
    reader.end_paragraph();
    reader.paragraphs
}

/// The text between `<` and `>` at the start of `from`, and the rest; `None` if no markup starts
/// here. A comment is returned as empty markup. Unterminated markup consumes the rest, so that
/// nothing is scanned twice.
fn markup(from: &str) -> Option<(&str, &str)> {
    if let Some(comment) = from.strip_prefix("<!--") {
        return Some(comment.split_once("-->").map_or(("", ""), |(_, behind)| ("", behind)));
    }
    let begins = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'!' | b'?');
    if !from.as_bytes().get(1).is_some_and(begins) {
        return None;
    }
    Some(from[1..].split_once('>').unwrap_or(("", "")))
}

/// The text from the end tag of a raw element.
fn end_of_raw<'a>(text: &'a str, name: &str) -> &'a str {
    let is_end = |(at, _): &(usize, &str)| {
        let behind = text.as_bytes().get(at + 2..at + 2 + name.len());
        behind.is_some_and(|behind| behind.eq_ignore_ascii_case(name.as_bytes()))
    };
    text.match_indices("</").find(is_end).map_or("", |(at, _)| &text[at..])
}

#[derive(Default)]
struct HtmlReader {
    paragraphs: Vec<String>,
    current: String,
    /// White space was read since the last word.
    gap: bool,
    /// A line break was read since the last word.
    broken: bool,
    unseen: Option<HiddenElement>,
}

/// The invisible element being read, and how many elements of that name are nested inside it.
struct HiddenElement {
    name: String,
    depth: usize,
}

impl HtmlReader {
    fn tag(&mut self, inside: &str) {
        let (is_end, inside) = match inside.strip_prefix('/') {
            Some(inside) => (true, inside),
            None => (false, inside),
        };
        let name_end = inside.find(|sign: char| sign.is_whitespace() || sign == '/');
        let name = inside[..name_end.unwrap_or(inside.len())].to_ascii_lowercase();
        let is_void = VOID_ELEMENTS.contains(&name.as_str()) || inside.ends_with('/');
        if let Some(unseen) = &mut self.unseen {
            if name == unseen.name && !is_void {
                match (is_end, unseen.depth) {
                    (false, _) => unseen.depth += 1,
                    (true, 0) => self.unseen = None,
                    (true, _) => unseen.depth -= 1,
                }
            }
            return;
        }
        if BLOCK_ELEMENTS.contains(&name.as_str()) {
            self.end_paragraph();
        }
        if !is_end
            && !is_void
            && (HIDDEN_ELEMENTS.contains(&name.as_str()) || is_hidden_element(inside))
        {
            self.unseen = Some(HiddenElement { name, depth: 0 });
            return;
        }
        match name.as_str() {
            // One line break is a space; some filers end a paragraph with two.
            "br" if self.broken => self.end_paragraph(),
            "br" => {
                self.gap = true;
                self.broken = true;
            }
            "td" | "th" => self.gap = true,
            _ => {}
        }
    }

    /// The raw element that was just opened.
    fn raw_element(&self) -> Option<&'static str> {
        let unseen = self.unseen.as_ref()?;
        RAW_TEXT_ELEMENTS.iter().find(|raw| **raw == unseen.name).copied()
    }

    fn text(&mut self, text: &str) {
        if self.unseen.is_some() {
            return;
        }
        let mut rest = text;
        while let Some(at) = rest.find('&') {
            self.plain(&rest[..at]);
            let (sign, length) = entity(&rest[at..]).unwrap_or(('&', 1));
            self.sign(sign);
            rest = &rest[at + length..];
        }
        self.plain(rest);
    }

    fn plain(&mut self, text: &str) {
        text.chars().for_each(|sign| self.sign(sign));
    }

    fn sign(&mut self, sign: char) {
        if sign.is_whitespace() {
            self.gap = true;
        } else if !is_hidden(sign) {
            if self.gap && !self.current.is_empty() {
                self.current.push(' ');
            }
            self.current.push(sign);
            self.gap = false;
            self.broken = false;
        }
    }

    fn end_paragraph(&mut self) {
        self.gap = false;
        self.broken = false;
        if !self.current.is_empty() {
            self.paragraphs.push(std::mem::take(&mut self.current));
        }
    }
}

/// Whether the element is hidden by CSS; inline XBRL stores facts in such elements.
fn is_hidden_element(inside: &str) -> bool {
    let Some(style) = inside
        .to_ascii_lowercase()
        .split_once("style")
        .map(|(_, style)| style.chars().filter(|sign| !sign.is_whitespace()).collect::<String>())
    else {
        return false;
    };
    style.contains("display:none") || style.contains("visibility:hidden")
}

/// The character of an entity and its length in bytes; `None` for unknown entities.
fn entity(from: &str) -> Option<(char, usize)> {
    let window = from.as_bytes().get(1..from.len().min(MAX_ENTITY_BYTES))?;
    let end = 1 + window.iter().position(|byte| *byte == b';')?;
    let name = from.get(1..end)?;
    let sign = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(windows_1252(code.ok()?))?
        }
        None => ENTITIES.iter().find(|(known, _)| *known == name).map(|(_, sign)| *sign)?,
    };
    Some((sign, end + 1))
}

/// Old tools write Windows-1252 quotes as numbers that are control characters in Unicode; convert
/// them as browsers do.
fn windows_1252(code: u32) -> u32 {
    match code {
        0x80 => 0x20ac,
        0x85 => 0x2026,
        0x91 => 0x2018,
        0x92 => 0x2019,
        0x93 => 0x201c,
        0x94 => 0x201d,
        0x95 => 0x2022,
        0x96 => 0x2013,
        0x97 => 0x2014,
        0x99 => 0x2122,
        other => other,
    }
}

const ENTITIES: &[(&str, char)] = &[
    ("amp", '&'),
    ("apos", '\''),
    ("bull", '•'),
    ("cent", '¢'),
    ("copy", '©'),
    ("deg", '°'),
    ("emsp", ' '),
    ("ensp", ' '),
    ("eacute", 'é'),
    ("euro", '€'),
    ("frac12", '½'),
    ("frac14", '¼'),
    ("frac34", '¾'),
    ("gt", '>'),
    ("hellip", '…'),
    ("laquo", '«'),
    ("ldquo", '“'),
    ("lsquo", '‘'),
    ("lt", '<'),
    ("mdash", '—'),
    ("middot", '·'),
    ("minus", '−'),
    ("nbsp", ' '),
    ("ndash", '–'),
    ("plusmn", '±'),
    ("pound", '£'),
    ("quot", '"'),
    ("raquo", '»'),
    ("rdquo", '”'),
    ("reg", '®'),
    ("rsquo", '’'),
    ("sect", '§'),
    ("thinsp", ' '),
    ("times", '×'),
    ("trade", '™'),
    ("yen", '¥'),
];

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
