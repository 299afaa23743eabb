//! Opens the draft store of a workspace for commands, and adds hints to its errors.

use std::path::Path;

use moothall_core::drafts::{ClientInfo, DraftId, DraftRefusal, Principal, PrincipalAccount, VIEW};
use moothall_core::text::sanitize_line;
use moothall_workspace::{
    DraftCaller, DraftError, DraftStateFile, DraftStore, DraftStoreOptions, FileFault, HandoffMode,
    workspace_id,
};

use super::checkers::{GatewayReviewer, HostChecker};
use crate::args::{GlobalArgs, HandoffArg, HandoffFlags, WorkspaceFlags};
use crate::config::{self, LoadedConfig};
use crate::context::CommandContext;
use crate::error::{CliError, CliExit};
use crate::logging;
use crate::notify;
use crate::terminal::{self, YELLOW};
use crate::user_input;

/// The policy that applies to all workspaces, in the configuration directory.
const ORGANISATION_POLICY: &str = "policy.toml";

pub(crate) const PATH_HINT: &str = "use a path inside the workspace, such as `src/a.py`";

pub(crate) struct OpenDraftStore {
    pub(crate) store: DraftStore,
    loaded: LoadedConfig,
}

/// Location and options of a workspace's draft store.
pub(crate) fn options(
    global: &GlobalArgs,
    flags: &WorkspaceFlags,
) -> Result<(DraftStoreOptions, LoadedConfig), CliError> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let options = options_of(global.config.as_deref(), &loaded, &flags.workspace)?;
    Ok((options, loaded))
}

/// Same as [`options`], for a configuration that is already loaded.
pub(crate) fn options_of(
    config: Option<&Path>,
    loaded: &LoadedConfig,
    workspace: &Path,
) -> Result<DraftStoreOptions, CliError> {
    let shown = workspace.display();
    let no_folder = |error: std::io::Error| {
        CliError::usage(format!("`{shown}` is not a directory")).with_source(error)
    };
    let workspace = fs_err::canonicalize(workspace).map_err(no_folder)?;
    let id = workspace_id(&workspace).map_err(no_folder)?;
    let folders = &loaded.locations.folders;
    let state = folders.state.join("drafts").join(&id);
    if state.starts_with(&workspace) {
        return Err(CliError::usage("the draft store would be inside the workspace").with_hint(
            "choose a smaller workspace, or move the state directory with `XDG_STATE_HOME`",
        ));
    }
    let mut options = DraftStoreOptions::new(workspace, state);
    options.anchor = Some(folders.data.join("anchors").join(id));
    options.organisation_policy = Some(folders.config.join(ORGANISATION_POLICY));
    options.checker = Some(Box::new(HostChecker { config: config.map(Path::to_owned) }));
    options.reviewer = Some(Box::new(GatewayReviewer::new(config.map(Path::to_owned))));
    options.listener = notify::draft_listener(config, loaded);
    Ok(options)
}

pub(crate) fn open(
    global: &GlobalArgs,
    flags: &WorkspaceFlags,
) -> Result<OpenDraftStore, CliError> {
    open_with_view(global, flags, &HandoffFlags { handoff: None })
}

pub(crate) fn open_for(
    context: &CommandContext,
    workspace: &Path,
) -> Result<OpenDraftStore, CliError> {
    let loaded = config::load(context.config_file.as_deref(), toml::Table::new())?;
    let options = options_of(context.config_file.as_deref(), &loaded, workspace)?;
    let store = DraftStore::open(options).map_err(failed)?;
    Ok(OpenDraftStore { store, loaded })
}

/// Opens the store and turns the handoff view on or off.
pub(crate) fn open_with_view(
    global: &GlobalArgs,
    flags: &WorkspaceFlags,
    view: &HandoffFlags,
) -> Result<OpenDraftStore, CliError> {
    let (mut options, loaded) = options(global, flags)?;
    options.handoff = match view.handoff {
        None => HandoffMode::AsBefore,
        Some(HandoffArg::On) => HandoffMode::Keep,
        Some(HandoffArg::Off) => HandoffMode::End,
    };
    let store = DraftStore::open(options).map_err(failed)?;
    Ok(OpenDraftStore { store, loaded })
}

impl OpenDraftStore {
    /// Prints which rules the workspace's policy loosens or tries to loosen.
    pub(crate) fn warn_about_policy(&self) {
        warn_about_policy(&self.store);
    }

    /// A worker of the current user.
    pub(crate) fn worker(&self, name: &str) -> Result<DraftCaller, CliError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err(CliError::usage(
                "invalid worker name: use 1 to 64 letters, digits, `-`, `_` and `.`",
            ));
        }
        Ok(caller(Principal::worker(format!("{}/{name}", self.user()))))
    }

    /// The directory of persistent files that need no backup.
    pub(crate) fn state_folder(&self) -> &Path {
        &self.loaded.locations.folders.state
    }

    /// Name of the current user from the environment.
    pub(crate) fn user(&self) -> String {
        user_input::user_name(&self.loaded, None, "works").unwrap_or_else(|_| "user".to_owned())
    }

    /// The current user as a reviewer. `by` is only a label; policies match the user id.
    pub(crate) fn person(&self, by: Option<&str>) -> Result<DraftCaller, CliError> {
        Ok(human(user_input::user_name(&self.loaded, by, "reviews")?))
    }

    /// The current user as a reader. Reading records no name, so none is required.
    pub(crate) fn reader(&self) -> DraftCaller {
        human(self.user())
    }
}

/// Same as [`OpenDraftStore::warn_about_policy`], for a store that is already open.
pub(crate) fn warn_about_policy(store: &DraftStore) {
    let notes = store.policy_notes();
    for note in &notes {
        terminal::note(&format!("{YELLOW}policy: {}{YELLOW:#}\n", sanitize_line(note)));
    }
    let is_request = |note: &String| note.starts_with("the workspace asks for");
    if notes.iter().any(is_request) {
        terminal::note("hint: run `moothall policy trust` to review and accept it\n");
    }
}

fn human(label: String) -> DraftCaller {
    let account = PrincipalAccount::User(rustix::process::getuid().as_raw());
    caller(Principal::human(label).with_account(account))
}

fn caller(principal: Principal) -> DraftCaller {
    let client =
        ClientInfo { name: "moothall".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    DraftCaller { principal, client: Some(client) }
}

/// A malformed id gives the same error as an unknown one.
pub(crate) fn id_of(text: &str) -> Result<DraftId, CliError> {
    DraftId::parse(text).ok_or_else(|| failed(DraftRefusal::Unknown.into()))
}

pub(crate) fn failed(error: DraftError) -> CliError {
    let hint = match &error {
        DraftError::Refused(DraftRefusal::Unknown) => {
            Some("`moothall draft list --all` shows your drafts")
        }
        DraftError::Refused(DraftRefusal::Stale { .. }) => {
            Some("read the draft again: `moothall draft read DRAFT`")
        }
        DraftError::Refused(DraftRefusal::Limit { what: "comments on the submission", .. }) => {
            Some("decide on the draft: `moothall review send-back DRAFT --if-match SEAL`")
        }
        DraftError::Refused(DraftRefusal::EmptyResult) => {
            Some("`moothall review reject DRAFT --if-match SEAL` rejects all of it")
        }
        DraftError::Refused(DraftRefusal::CommentPath { .. }) => {
            Some("`moothall review show DRAFT` prints the files of the submission")
        }
        DraftError::Refused(DraftRefusal::Limit { what: "drafts in one submission", .. }) => {
            Some("submit fewer drafts together, or raise the limit in the policy")
        }
        DraftError::Refused(DraftRefusal::Limit { .. }) => {
            Some("submit or discard open drafts; `moothall draft list` shows them")
        }
        DraftError::Path(_) => Some(PATH_HINT),
        DraftError::Refused(DraftRefusal::Seal { .. }) => {
            Some("review the current version: `moothall review show DRAFT`")
        }
        DraftError::Refused(DraftRefusal::Policy) => {
            Some("review it under the current policy: `moothall review show DRAFT`")
        }
        DraftError::Refused(DraftRefusal::State { what: "reviewed", .. }) => {
            Some("`moothall review list` shows the drafts that need review")
        }
        DraftError::Refused(DraftRefusal::State { .. }) => {
            Some("`moothall draft status DRAFT` shows its findings and its review")
        }
        DraftError::Refused(DraftRefusal::Author) => Some(
            "ask another person to review it, or set `author_may_approve = true` in the policy",
        ),
        DraftError::Refused(DraftRefusal::NotApprover { .. }) => {
            Some("`approvers` takes user ids (`uid:1000`) and token ids (`token:ID`), not names")
        }
        DraftError::Refused(DraftRefusal::WorkerName { .. }) => {
            Some("pass your own name: `--by NAME`")
        }
        DraftError::File { fault: FileFault::NotOurs | FileFault::NotPlain(_), path }
            if path.starts_with(VIEW) =>
        {
            Some(
                "move the file away: everything in `_handoff` except the task's contract is generated",
            )
        }
        DraftError::File { fault: FileFault::Missing, .. } => {
            Some("pass `--new` to draft a file that does not exist yet")
        }
        DraftError::File { fault: FileFault::Denied, .. } => {
            Some("`moothall policy explain PATH` shows the rules for a path")
        }
        DraftError::File { fault: FileFault::TooLarge, .. } => {
            Some("raise `max_file_bytes` in the section `[limits]` of the policy")
        }
        DraftError::Io { what: "cannot write to the workspace", .. } => Some(
            "check that you may write to the file and its directory, and that the disk has space",
        ),
        DraftError::Policy(_) => Some("run `moothall policy check` for details"),
        DraftError::TooManyChecks { .. } => Some("try again in an hour"),
        DraftError::ContentGone(_) => Some("discard the draft and make it again"),
        DraftError::Busy => Some("another process is changing the drafts; run the command again"),
        DraftError::JournalDamaged { .. } => {
            Some("no drafts are accepted until this is resolved; run `moothall audit verify`")
        }
        DraftError::InvalidFile { file: DraftStateFile::Handoff, .. } => {
            Some("delete this file to turn the export off; `--handoff` turns it on again")
        }
        DraftError::InvalidFile { file: DraftStateFile::Anchor, .. } => {
            Some("restore the file from a backup, or delete it to accept the audit log without it")
        }
        _ => None,
    };
    let exit = match &error {
        DraftError::Policy(_) => CliExit::Usage,
        error if error.is_refusal() => CliExit::Usage,
        _ => CliExit::Failed,
    };
    let message = error.to_string();
    let mut failed = CliError::new(exit, message);
    if let DraftError::Io { source, .. } | DraftError::InvalidFile { source, .. } = error {
        failed = failed.with_source(source);
    }
    match hint {
        Some(hint) => failed.with_hint(hint),
        None => failed,
    }
}
