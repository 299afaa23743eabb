//! A document as data: what a memo says, before anyone decides how it looks.
//!
//! Every text in here is one line of plain words: no markup of any format and nothing that a reader
//! cannot see. Renderers escape what their format would read as markup, and add no words of their
//! own; so nothing is said in one format and missing in another.

use serde::Serialize;

use super::visible::visible_line;

/// The only host that documents link to.
const KNOWN_HOST: &str = "https://www.sec.gov/";

/// A document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Document {
    /// What it is, and of whom.
    pub title: String,
    /// The line below it.
    pub subtitle: String,
    /// What stands at the head of every page.
    pub running_head: String,
    /// What stands across every page; nothing where the data is real.
    pub watermark: Option<String>,
    /// What stands at the foot of every page.
    pub running_foot: String,
    /// Everything else, in order.
    pub blocks: Vec<Block>,
}

/// One part of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "block", rename_all = "snake_case")]
pub enum Block {
    /// A headline.
    Heading {
        /// From 1, the largest below the title.
        level: u8,
        /// Its words.
        words: String,
        /// A sheet of paper begins with it.
        new_page: bool,
    },
    /// A paragraph.
    Paragraph {
        /// Its words.
        words: Words,
    },
    /// Something to know before reading on.
    Notice {
        /// Its words.
        words: Words,
    },
    /// Items in a column.
    List {
        /// Whether they are numbered from 1.
        numbered: bool,
        /// The items.
        items: Vec<Words>,
    },
    /// Names and values.
    Fields {
        /// One row each.
        rows: Vec<Field>,
    },
    /// A table.
    Table(Table),
    /// The small print at the end.
    Fine {
        /// Its words.
        words: Words,
    },
}

/// A name and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Field {
    /// What it is.
    pub name: String,
    /// Its value.
    pub value: Words,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// As many cells in each row as there are columns.
    pub rows: Vec<Vec<Words>>,
    /// Whether the last row sums up the others.
    pub has_total: bool,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its headline.
    pub title: String,
    /// Numbers stand at the right.
    pub numbers: bool,
    /// Whether it takes the room that others leave.
    pub wide: bool,
}

/// Words with what hangs on them.
pub type Words = Vec<Span>;

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "span", rename_all = "snake_case")]
pub enum Span {
    /// Plain words.
    Text {
        /// The words.
        text: String,
    },
    /// Words that stand out.
    Strong {
        /// The words.
        text: String,
    },
    /// A citation such as `F0:Revenue:FY2025`.
    Cite {
        /// What is cited, without brackets.
        id: String,
        /// The filing behind it.
        url: Option<Link>,
        /// Whether the document lists it among its sources.
        listed: bool,
    },
    /// The place where a source is listed, which citations lead to.
    Source {
        /// What is listed, without brackets.
        id: String,
    },
    /// Words that lead to a page of a known host.
    Link {
        /// The words.
        text: String,
        /// Where they lead.
        url: Link,
    },
    /// A number behind words that the evidence does not carry; explained where the same number
    /// stands without words.
    Mark {
        /// From 1.
        number: usize,
    },
    /// A bar, beside the number that it stands for.
    Bar {
        /// The length.
        value: u32,
        /// The longest there can be.
        top: u32,
    },
    /// Dots on a line from 1 to `top`, beside the numbers that they stand for.
    Dots {
        /// Where there is one.
        values: Vec<u32>,
        /// The end of the line.
        top: u32,
    },
}

/// An address at a known host; there is no way to make another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Link(String);

impl Link {
    /// An address, where it leads to a known host and has no sign that a format could misread.
    pub fn new(url: &str) -> Option<Self> {
        let path = url.strip_prefix(KNOWN_HOST)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
        (url.len() <= 300 && path.bytes().all(plain)).then(|| Self(url.to_owned()))
    }

    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Span {
    /// Words of anyone, as one line of what can be seen; a space at their ends stays, because
    /// pieces of a line are joined as they are.
    pub fn text(words: &str) -> Self {
        let space = |is_there: bool| if is_there { " " } else { "" };
        let (before, after) = (space(words.starts_with(' ')), space(words.ends_with(' ')));
        let line = visible_line(words);
        let text =
            if line.is_empty() { before.to_owned() } else { format!("{before}{line}{after}") };
        Self::Text { text }
    }

    /// The same, standing out.
    pub fn strong(words: &str) -> Self {
        Self::Strong { text: visible_line(words) }
    }
}

impl Block {
    /// A headline.
    pub fn heading(level: u8, words: &str) -> Self {
        Self::Heading { level, words: visible_line(words), new_page: false }
    }

    /// A headline that begins a sheet of paper.
    pub fn chapter(level: u8, words: &str) -> Self {
        Self::Heading { level, words: visible_line(words), new_page: true }
    }

    /// A paragraph of plain words.
    pub fn paragraph(words: &str) -> Self {
        Self::Paragraph { words: vec![Span::text(words)] }
    }

    /// Something to know before reading on.
    pub fn notice(words: &str) -> Self {
        Self::Notice { words: vec![Span::text(words)] }
    }
}

impl Field {
    /// A name and plain words.
    pub fn new(name: &str, value: &str) -> Self {
        Self { name: visible_line(name), value: vec![Span::text(value)] }
    }
}

impl Column {
    /// A narrow column of words.
    pub fn words(title: &str) -> Self {
        Self { title: visible_line(title), numbers: false, wide: false }
    }

    /// A column of words that takes what room there is.
    pub fn wide(title: &str) -> Self {
        Self { wide: true, ..Self::words(title) }
    }

    /// A column of numbers.
    pub fn numbers(title: &str) -> Self {
        Self { numbers: true, ..Self::words(title) }
    }
}
