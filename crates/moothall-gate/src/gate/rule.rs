//! The closed list of rules, and what can be done about a finding.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Severity;

/// What a policy does about a finding, lightest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Nothing.
    Allow,
    /// Say so.
    Warn,
    /// A person must decide.
    Escalate,
    /// Refuse; the worker may mend the draft.
    Reject,
}

impl Action {
    /// The same weight in the words that all trials share.
    pub fn severity(self) -> Severity {
        match self {
            Self::Allow => Severity::Note,
            Self::Warn => Severity::Warn,
            Self::Escalate => Severity::Escalate,
            Self::Reject => Severity::Block,
        }
    }

    /// The word for it, as in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Escalate => "escalate",
            Self::Reject => "reject",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

macro_rules! rules {
    ($($variant:ident $name:literal $default:ident $floor:ident $says:literal;)*) => {
        /// A rule of the gate. Nobody can add one in a file, so a misspelt name is an error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Rule {
            $(
                #[doc = $says]
                #[serde(rename = $name)]
                $variant,
            )*
        }

        impl Rule {
            /// All of them, in the order of the reference.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name, as in files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it looks for.
            pub fn says(self) -> &'static str {
                match self { $(Self::$variant => $says,)* }
            }

            /// What happens where no policy says anything.
            pub fn default_action(self) -> Action {
                match self { $(Self::$variant => Action::$default,)* }
            }

            /// The least that happens, whatever a policy says; exceptions with an owner and an end
            /// are the only way below it.
            pub fn floor(self) -> Action {
                match self { $(Self::$variant => Action::$floor,)* }
            }
        }
    };
}

rules! {
    SecretSpecific "secret.specific" Reject Reject "a credential of a known format";
    SecretGeneric "secret.generic" Escalate Warn "a value that looks like a password, key or token";
    PathHome "path.home" Reject Allow "the home folder of somebody's machine on an added line";
    PathSystem "path.system" Warn Allow "a folder of the system on an added line";
    PathTmp "path.tmp" Warn Allow "a temporary folder on an added line";
    PathDenied "path.denied" Reject Reject "a path that the policy denies or does not allow";
    PathProtected "path.protected" Escalate Warn "a path that the policy protects";
    PathAutorun "path.autorun" Escalate Warn "a file that another program runs or obeys by itself";
    PathIgnored "path.ignored" Escalate Warn "a path that git ignores or that tools write, so no diff shows it";
    PathTwin "path.twin" Escalate Escalate "a new name that differs from one beside it only by case or Unicode form";
    DiffDeletionRatio "diff.deletion_ratio" Escalate Warn "more of the file is deleted than `max_deletion_ratio`; moved lines are kept lines";
    DiffMaxLines "diff.max_lines" Escalate Allow "more lines are changed than `max_changed_lines`";
    DiffEmptied "diff.emptied" Escalate Escalate "nothing is left of the file";
    DiffEmpty "diff.empty" Reject Reject "nothing is changed";
    DiffGutted "diff.gutted" Escalate Warn "code is replaced by stubs, comments or nothing, or tests go";
    ContentBinary "content.binary" Reject Escalate "bytes that are not text";
    ContentNul "content.nul" Reject Escalate "a NUL byte";
    ContentBidi "content.bidi" Reject Escalate "marks that change the direction of writing";
    ContentInvisible "content.invisible" Escalate Warn "characters that cannot be seen";
    ContentHomoglyph "content.homoglyph" Warn Allow "a word that mixes letters of scripts that look alike";
    ContentEol "content.eol" Escalate Allow "other line endings than before";
    ContentEncoding "content.encoding" Escalate Warn "another encoding than UTF-8, or a byte order mark that comes or goes";
    ContentConflictMarkers "content.conflict_markers" Reject Escalate "marks that a merge left behind";
    ContentGenerated "content.generated" Escalate Allow "a file that a program writes";
    ContentMinified "content.minified" Escalate Allow "a line longer than `max_line_bytes`, or a minified file";
    ContentPlaceholder "content.placeholder" Reject Escalate "words such as `rest of the code unchanged` instead of code";
    FileNewExecutable "file.new_executable" Escalate Warn "a new file that can be run";
    FileDelete "file.delete" Escalate Warn "a file is deleted";
    FileRename "file.rename" Escalate Warn "a file is renamed";
    FileMode "file.mode" Escalate Warn "a file becomes executable, or no longer is";
    FileGitRepository "file.git_repository" Escalate Escalate "a file that makes a directory a git repository, or git settings that run programs";
    FileShebangAdded "file.shebang_added" Warn Allow "a first line that names an interpreter";
    CodeExecSinkAdded "code.exec_sink_added" Warn Allow "an added line that runs programs or text as code";
    DepsManifestChanged "deps.manifest_changed" Escalate Allow "a file that says what is installed";
    CheckFailed "check.failed" Reject Escalate "a check of the policy failed";
    CheckTimeout "check.timeout" Escalate Escalate "a check of the policy took too long";
    ReviewModel "review.model" Escalate Warn "a model that reviews has doubts";
    ReviewPreview "review.preview" Escalate Escalate "the policy lets a person see every change";
    GateError "gate.error" Escalate Escalate "something could not be looked at";
}

impl Rule {
    /// The rule of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rule| rule.name() == name)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
