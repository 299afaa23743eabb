//! A document as data: the content of a memo, independent of its format.
//!
//! Every text is a single line of plain text, without markup and without invisible characters.
//! Renderers escape what their format would interpret as markup, and add no text, so all formats
//! have the same content.

use schemars::JsonSchema;
use serde::Serialize;

use super::visible::visible_line;

/// The only host that documents link to.
const KNOWN_HOST: &str = "https://www.sec.gov/";

/// A document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, ts_rs::TS)]
pub struct ReportDocument {
    /// The title.
    pub title: String,
    /// The line below the title.
    pub subtitle: String,
    /// The header of every page.
    pub running_head: String,
    /// The watermark of every page; `None` if the data is real.
    pub watermark: Option<String>,
    /// The footer of every page.
    pub running_foot: String,
    /// The content, in order.
    pub blocks: Vec<DocumentBlock>,
}

/// One part of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, ts_rs::TS)]
#[serde(tag = "block", rename_all = "snake_case")]
pub enum DocumentBlock {
    /// A heading.
    Heading {
        /// The level, starting at 1 for the largest below the title.
        level: u8,
        /// The text.
        words: String,
        /// Whether it starts a new page.
        new_page: bool,
    },
    /// A paragraph.
    Paragraph {
        /// The text.
        words: Words,
    },
    /// An important note.
    Notice {
        /// The text.
        words: Words,
    },
    /// A list.
    List {
        /// Whether the items are numbered from 1.
        numbered: bool,
        /// The items.
        items: Vec<Words>,
    },
    /// Names and values.
    Fields {
        /// One row each.
        rows: Vec<DocumentField>,
    },
    /// A table.
    Table(DocumentTable),
    /// Small print at the end.
    Fine {
        /// The text.
        words: Words,
    },
}

/// A name and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, ts_rs::TS)]
pub struct DocumentField {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Words,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, ts_rs::TS)]
pub struct DocumentTable {
    /// The columns.
    pub columns: Vec<TableColumn>,
    /// The rows, with one cell per column.
    pub rows: Vec<Vec<Words>>,
    /// Whether the last row is a total.
    pub has_total: bool,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, ts_rs::TS)]
pub struct TableColumn {
    /// The heading.
    pub title: String,
    /// Whether it holds numbers, which are right-aligned.
    pub numbers: bool,
    /// Whether it takes the remaining width.
    pub wide: bool,
}

/// A line of inline content.
pub type Words = Vec<TextSpan>;

/// A piece of inline content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, ts_rs::TS)]
#[serde(tag = "span", rename_all = "snake_case")]
pub enum TextSpan {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// Emphasized text.
    Strong {
        /// The text.
        text: String,
    },
    /// A citation such as `F0:Revenue:FY2025`.
    Cite {
        /// The cited id, without brackets.
        id: String,
        /// The filing it refers to.
        url: Option<FilingLink>,
        /// Whether the document lists it among its sources.
        listed: bool,
    },
    /// The entry of a source in the source list, which citations link to.
    Source {
        /// The source's id, without brackets.
        id: String,
    },
    /// A link to a page of the known host.
    Link {
        /// The link text.
        text: String,
        /// The target.
        url: FilingLink,
    },
    /// A footnote number after a statement that the evidence does not support; the note with the
    /// same number explains it.
    Mark {
        /// The number, starting at 1.
        number: usize,
    },
    /// A bar next to the number it represents.
    Bar {
        /// The length.
        value: u32,
        /// The maximum length.
        top: u32,
    },
    /// Dots on a line from 1 to `top`, next to the numbers they represent.
    Dots {
        /// The positions of the dots.
        values: Vec<u32>,
        /// The end of the line.
        top: u32,
    },
}

/// A URL at the known host; no other can be constructed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, ts_rs::TS)]
#[serde(transparent)]
pub struct FilingLink(String);

impl FilingLink {
    /// Accepts a URL at the known host whose characters are safe in every output format.
    pub fn new(url: &str) -> Option<Self> {
        let path = url.strip_prefix(KNOWN_HOST)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
        (url.len() <= 300 && path.bytes().all(plain)).then(|| Self(url.to_owned()))
    }

    /// The URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TextSpan {
    /// Untrusted text as one visible line. Leading and trailing spaces are kept as one space,
    /// because spans are joined without separators.
    pub fn text(words: &str) -> Self {
        let space = |is_there: bool| if is_there { " " } else { "" };
        let (before, after) = (space(words.starts_with(' ')), space(words.ends_with(' ')));
        let line = visible_line(words);
        let text =
            if line.is_empty() { before.to_owned() } else { format!("{before}{line}{after}") };
        Self::Text { text }
    }

    /// The same as [`TextSpan::text`], emphasized and without outer spaces.
    pub fn strong(words: &str) -> Self {
        Self::Strong { text: visible_line(words) }
    }
}

impl DocumentBlock {
    /// A heading.
    pub fn heading(level: u8, words: &str) -> Self {
        Self::Heading { level, words: visible_line(words), new_page: false }
    }

    /// A heading that starts a new page.
    pub fn chapter(level: u8, words: &str) -> Self {
        Self::Heading { level, words: visible_line(words), new_page: true }
    }

    /// A paragraph of plain text.
    pub fn paragraph(words: &str) -> Self {
        Self::Paragraph { words: vec![TextSpan::text(words)] }
    }

    /// An important note.
    pub fn notice(words: &str) -> Self {
        Self::Notice { words: vec![TextSpan::text(words)] }
    }
}

impl DocumentField {
    /// A name and a plain text value.
    pub fn new(name: &str, value: &str) -> Self {
        Self { name: visible_line(name), value: vec![TextSpan::text(value)] }
    }
}

impl TableColumn {
    /// A narrow text column.
    pub fn words(title: &str) -> Self {
        Self { title: visible_line(title), numbers: false, wide: false }
    }

    /// A text column that takes the remaining width.
    pub fn wide(title: &str) -> Self {
        Self { wide: true, ..Self::words(title) }
    }

    /// A column of numbers.
    pub fn numbers(title: &str) -> Self {
        Self { numbers: true, ..Self::words(title) }
    }
}
