//! Who acts, on what, and for which task.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::access::TokenId;

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
    /// Its name among those of its kind. For a person a label: they choose it themselves.
    pub id: String,
    /// Who a person is, as the system knows it. Records of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

/// Who a person is, from their process or credential and never from what they say.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Account {
    /// A user of this machine: `uid:1000`.
    User(u32),
    /// An access token of the server: `token:0123456789ab`.
    Token(TokenId),
    /// Whoever answers a form in a client that this user runs: `elicitation:uid:1000`.
    Elicitation(u32),
}

impl Account {
    /// Reads an account; everything else is `None`, a plain name too.
    pub fn parse(text: &str) -> Option<Self> {
        // One spelling for each number.
        let uid = |digits: &str| {
            let number: u32 = digits.parse().ok()?;
            (number.to_string() == digits).then_some(number)
        };
        if let Some(digits) = text.strip_prefix("uid:") {
            return uid(digits).map(Self::User);
        }
        if let Some(digits) = text.strip_prefix("elicitation:uid:") {
            return uid(digits).map(Self::Elicitation);
        }
        text.strip_prefix("token:")?.parse().ok().map(Self::Token)
    }
}

impl TryFrom<String> for Account {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("expected `uid:NUMBER`, `token:ID` or `elicitation:uid:NUMBER`")
    }
}

impl From<Account> for String {
    fn from(account: Account) -> Self {
        account.to_string()
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(uid) => write!(f, "uid:{uid}"),
            Self::Token(id) => write!(f, "token:{id}"),
            Self::Elicitation(uid) => write!(f, "elicitation:uid:{uid}"),
        }
    }
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
    fn new(kind: PrincipalKind, id: impl Into<String>) -> Self {
        Self { kind, id: id.into(), account: None }
    }

    /// A worker.
    pub fn worker(id: impl Into<String>) -> Self {
        Self::new(PrincipalKind::Worker, id)
    }

    /// A person.
    pub fn human(id: impl Into<String>) -> Self {
        Self::new(PrincipalKind::Human, id)
    }

    /// The same, known to the system as this account.
    pub fn with_account(self, account: Account) -> Self {
        Self { account: Some(account), ..self }
    }

    /// The gate.
    pub fn gate() -> Self {
        Self::new(PrincipalKind::Gate, "gate")
    }

    /// The gate after a crash.
    pub fn recovery() -> Self {
        Self::new(PrincipalKind::Recovery, "recovery")
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            PrincipalKind::Worker => "worker",
            PrincipalKind::Human => "human",
            PrincipalKind::Gate | PrincipalKind::Recovery => return f.write_str(&self.id),
        };
        match &self.account {
            Some(account) => write!(f, "{kind}:{} ({account})", self.id),
            None => write!(f, "{kind}:{}", self.id),
        }
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
