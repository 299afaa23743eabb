//! The closed list of rules, and the actions of a policy.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::FindingSeverity;

/// What a policy does about a finding, least severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateAction {
    /// Ignore it.
    Allow,
    /// Report it.
    Warn,
    /// Require review by a person.
    Escalate,
    /// Refuse the draft; the worker may fix it.
    Reject,
}

impl GateAction {
    /// The severity that all kinds of findings share.
    pub fn severity(self) -> FindingSeverity {
        match self {
            Self::Allow => FindingSeverity::Note,
            Self::Warn => FindingSeverity::Warn,
            Self::Escalate => FindingSeverity::Escalate,
            Self::Reject => FindingSeverity::Block,
        }
    }

    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Escalate => "escalate",
            Self::Reject => "reject",
        }
    }
}

impl fmt::Display for GateAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

macro_rules! rules {
    ($($variant:ident $name:literal $default:ident $floor:ident $says:literal;)*) => {
        /// A rule of the gate. The list is closed, so a misspelled name in a policy is an error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum GateRule {
            $(
                #[doc = $says]
                #[serde(rename = $name)]
                $variant,
            )*
        }

        impl GateRule {
            /// All rules, in the order of the reference documentation.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// A one-line description.
            pub fn description(self) -> &'static str {
                match self { $(Self::$variant => $says,)* }
            }

            /// The action if no policy sets one.
            pub fn default_action(self) -> GateAction {
                match self { $(Self::$variant => GateAction::$default,)* }
            }

            /// The least severe action a policy can set. Only an exception with an owner and an
            /// expiry date can go below it.
            pub fn floor(self) -> GateAction {
                match self { $(Self::$variant => GateAction::$floor,)* }
            }
        }
    };
}

rules! {
    SecretSpecific "secret.specific" Reject Reject "credential in a known format";
    SecretGeneric "secret.generic" Escalate Warn "value that looks like a password, key or token";
    SecretExample "secret.example" Warn Allow "credential in a known format that looks like a documentation example";
    PathHome "path.home" Reject Allow "added line with a path in a user's home directory";
    PathSystem "path.system" Warn Allow "added line with a path in a system directory";
    PathTmp "path.tmp" Warn Allow "added line with a path in a temporary directory";
    PathDenied "path.denied" Reject Reject "path that the policy denies or does not allow";
    PathInvalid "path.invalid" Reject Reject "path that is reserved, or that means something else on some systems";
    PathProtected "path.protected" Escalate Warn "path that the policy protects";
    PathAutorun "path.autorun" Escalate Warn "file that another program loads or runs automatically";
    PathIgnored "path.ignored" Escalate Warn "path that git ignores or that tools generate, so no diff shows the change";
    PathTwin "path.twin" Escalate Escalate "new name that differs from a neighboring one only in case or Unicode form";
    DiffDeletionRatio "diff.deletion_ratio" Escalate Warn "more lines deleted than `max_deletion_ratio` allows; moved lines do not count";
    DiffMaxLines "diff.max_lines" Escalate Allow "more lines changed than `max_changed_lines` allows";
    DiffMaxFiles "diff.max_files" Escalate Allow "more files changed than `max_files_per_changeset` allows";
    DiffEmptied "diff.emptied" Escalate Escalate "file is emptied";
    DiffEmpty "diff.empty" Reject Reject "no changes";
    DiffGutted "diff.gutted" Escalate Warn "code is deleted or replaced by stubs or comments, or tests are removed";
    ContentBinary "content.binary" Reject Escalate "binary content";
    ContentNul "content.nul" Reject Escalate "NUL byte";
    ContentBidi "content.bidi" Reject Escalate "characters that change the text direction";
    ContentInvisible "content.invisible" Escalate Warn "invisible characters";
    ContentHomoglyph "content.homoglyph" Warn Allow "word with look-alike letters from different scripts";
    ContentEol "content.eol" Escalate Allow "line endings changed";
    ContentEncoding "content.encoding" Escalate Warn "not UTF-8, or a byte order mark added or removed";
    ContentConflictMarkers "content.conflict_markers" Reject Escalate "merge conflict markers";
    ContentGenerated "content.generated" Escalate Allow "generated file";
    ContentMinified "content.minified" Escalate Allow "line longer than `max_line_bytes`, or a minified file";
    ContentPlaceholder "content.placeholder" Reject Escalate "placeholder such as `rest of the code unchanged` instead of code";
    ContentLfsPointer "content.lfs_pointer" Escalate Warn "Git LFS pointer, whose content is not part of the change";
    ContentTooLarge "content.too_large" Escalate Escalate "file larger than `max_file_bytes`, whose content is not checked";
    FileNewExecutable "file.new_executable" Escalate Warn "new executable file";
    FileDelete "file.delete" Escalate Warn "file is deleted";
    FileRename "file.rename" Escalate Warn "file is renamed";
    FileMode "file.mode" Escalate Warn "executable bit set or cleared";
    FileGitRepository "file.git_repository" Escalate Escalate "file that turns a directory into a git repository, or git settings that run programs";
    FileLink "file.link" Escalate Warn "symbolic link added, changed or removed";
    FileLinkOutside "file.link_outside" Reject Escalate "symbolic link to a place outside of the repository or to a reserved directory";
    FileSubmodule "file.submodule" Escalate Escalate "submodule added, removed or set to another commit";
    FileShebangAdded "file.shebang_added" Warn Allow "shebang added";
    CodeExecSinkAdded "code.exec_sink_added" Warn Allow "added line that runs a program or evaluates text as code";
    DepsManifestChanged "deps.manifest_changed" Escalate Allow "dependency file changed";
    CheckFailed "check.failed" Reject Escalate "policy check failed";
    CheckTimeout "check.timeout" Escalate Escalate "policy check timed out";
    ReviewModel "review.model" Escalate Warn "the reviewing model raised a concern";
    ReviewPreview "review.preview" Escalate Escalate "the policy requires review of every change";
    PolicyChanged "policy.changed" Escalate Escalate "policy or configuration of Moothall changed";
    CopyConflict "copy.conflict" Escalate Escalate "the workspace changed while an agent worked on a private copy of it";
    CopyGitSettings "copy.git_settings" Escalate Escalate "an agent changed git settings or hooks in its private copy";
    GateError "gate.error" Escalate Escalate "part of the change could not be checked";
}

impl GateRule {
    /// Looks up a rule by name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rule| rule.name() == name)
    }
}

impl fmt::Display for GateRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
