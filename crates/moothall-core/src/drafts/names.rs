//! Who acts, on what, and for which task.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The handle of a draft: 128 random bits, made by the gate. Holding one proves nothing; every use
/// is looked up together with the [`Principal`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DraftId([u8; 16]);

impl DraftId {
    const PREFIX: &str = "drf_";

    /// A handle of random bytes.
    pub fn new(random: [u8; 16]) -> Self {
        Self(random)
    }

    /// Reads a handle; everything else is `None`, whatever it looks like.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(Self::PREFIX)?;
        let plain = digits.len() == 32
            && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = plain.then(|| u128::from_str_radix(digits, 16).ok())??;
        Some(Self(number.to_be_bytes()))
    }
}

impl TryFrom<String> for DraftId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("a draft is `drf_` and 32 hexadecimal digits")
    }
}

impl From<DraftId> for String {
    fn from(id: DraftId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for DraftId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:032x}", Self::PREFIX, u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for DraftId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a worker says it works on. A label, never a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(String);

impl TaskId {
    /// Reads a task: 1 to 128 letters, digits, `-`, `_` and `.`.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        (plain && (1..=128).contains(&text.len())).then(|| Self(text.to_owned()))
    }

    /// The task as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for TaskId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("a task is 1 to 128 letters, digits, `-`, `_` and `.`")
    }
}

impl From<TaskId> for String {
    fn from(task: TaskId) -> Self {
        task.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who acts, as the gate knows it: never from an argument of a tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Principal {
    /// What kind of actor.
    pub kind: PrincipalKind,
    /// Its name among those of its kind.
    pub id: String,
}

/// The kinds of actors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrincipalKind {
    /// A model or a script. Sees its own drafts only.
    Worker,
    /// A person, who may review.
    Human,
    /// The gate itself.
    Gate,
    /// The gate, mending what a crash left.
    Recovery,
}

impl Principal {
    /// A worker.
    pub fn worker(id: impl Into<String>) -> Self {
        Self { kind: PrincipalKind::Worker, id: id.into() }
    }

    /// A person.
    pub fn human(id: impl Into<String>) -> Self {
        Self { kind: PrincipalKind::Human, id: id.into() }
    }

    /// The gate.
    pub fn gate() -> Self {
        Self { kind: PrincipalKind::Gate, id: "gate".to_owned() }
    }

    /// The gate after a crash.
    pub fn recovery() -> Self {
        Self { kind: PrincipalKind::Recovery, id: "recovery".to_owned() }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            PrincipalKind::Worker => "worker",
            PrincipalKind::Human => "human",
            PrincipalKind::Gate | PrincipalKind::Recovery => return f.write_str(&self.id),
        };
        write!(f, "{kind}:{}", self.id)
    }
}

/// The program through which somebody acts, as it names itself: for the record only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}
