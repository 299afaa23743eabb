//! The store of a workspace, as commands open it, and its errors in words.

use std::path::Path;

use moothall_core::drafts::{Account, Client, DraftId, Principal, Refusal, VIEW};
use moothall_core::text::shown_line;
use moothall_workspace::{
    Caller, DraftError, DraftStore, FileFault, Handoff, Options, workspace_id,
};

use super::looking::{GatewayReviewer, HostChecker};
use crate::args::{Global, HandoffArg, HandoffFlags, WorkspaceFlags};
use crate::config::{self, Loaded};
use crate::context::Context;
use crate::error::{CliError, Exit};
use crate::logging;
use crate::terminal::{self, YELLOW};
use crate::user_input;

/// The policy above those of workspaces, in the config folder.
const ORGANISATION_POLICY: &str = "policy.toml";

pub(crate) struct Opened {
    pub(crate) store: DraftStore,
    loaded: Loaded,
}

/// Where the store of a workspace is, and what it is opened with.
pub(in crate::commands) fn options(
    global: &Global,
    flags: &WorkspaceFlags,
) -> Result<(Options, Loaded), CliError> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let options = options_of(global.config.as_deref(), &loaded, &flags.workspace)?;
    Ok((options, loaded))
}

/// The same, for a configuration that is at hand.
pub(in crate::commands) fn options_of(
    config: Option<&Path>,
    loaded: &Loaded,
    workspace: &Path,
) -> Result<Options, CliError> {
    let shown = workspace.display();
    let no_folder = |error: std::io::Error| {
        CliError::usage(format!("`{shown}` is no folder")).with_source(error)
    };
    let workspace = fs_err::canonicalize(workspace).map_err(no_folder)?;
    let id = workspace_id(&workspace).map_err(no_folder)?;
    let folders = &loaded.places.folders;
    let state = folders.state.join("drafts").join(&id);
    if state.starts_with(&workspace) {
        return Err(CliError::usage("the store of drafts would be inside of the workspace")
            .with_hint("choose a smaller workspace, or move the state with `XDG_STATE_HOME`"));
    }
    let mut options = Options::new(workspace, state);
    options.anchor = Some(folders.data.join("anchors").join(id));
    options.organisation_policy = Some(folders.config.join(ORGANISATION_POLICY));
    options.checker = Some(Box::new(HostChecker { config: config.map(Path::to_owned) }));
    options.reviewer = Some(Box::new(GatewayReviewer::new(config.map(Path::to_owned))));
    Ok(options)
}

pub(in crate::commands) fn open(
    global: &Global,
    flags: &WorkspaceFlags,
) -> Result<Opened, CliError> {
    open_with_view(global, flags, &HandoffFlags { handoff: None })
}

/// Opens the store of a run's workspace.
pub(crate) fn open_for(context: &Context, workspace: &Path) -> Result<Opened, CliError> {
    let loaded = config::load(context.config_file.as_deref(), toml::Table::new())?;
    let options = options_of(context.config_file.as_deref(), &loaded, workspace)?;
    let store = DraftStore::open(options).map_err(failed)?;
    Ok(Opened { store, loaded })
}

/// Opens the store, and does what was asked for about the view.
pub(in crate::commands) fn open_with_view(
    global: &Global,
    flags: &WorkspaceFlags,
    view: &HandoffFlags,
) -> Result<Opened, CliError> {
    let (mut options, loaded) = options(global, flags)?;
    options.handoff = match view.handoff {
        None => Handoff::AsBefore,
        Some(HandoffArg::On) => Handoff::Keep,
        Some(HandoffArg::Off) => Handoff::End,
    };
    let store = DraftStore::open(options).map_err(failed)?;
    Ok(Opened { store, loaded })
}

impl Opened {
    /// Says on the terminal what the workspace's policy loosens, or wants to loosen.
    pub(crate) fn warn_about_policy(&self) {
        warn_about_policy(&self.store);
    }

    /// A worker of the user who runs this.
    pub(crate) fn worker(&self, name: &str) -> Result<Caller, CliError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err(CliError::usage(
                "the name of a worker is letters, digits, `-`, `_` and `.`",
            ));
        }
        Ok(caller(Principal::worker(format!("{}/{name}", self.user()))))
    }

    /// Whoever runs this, as far as the environment says.
    pub(in crate::commands) fn user(&self) -> String {
        user_input::who(&self.loaded, None, "works").unwrap_or_else(|_| "user".to_owned())
    }

    /// The person who runs this. `by` is only a label; the policy goes by the user id.
    pub(in crate::commands) fn person(&self, by: Option<&str>) -> Result<Caller, CliError> {
        let label = user_input::who(&self.loaded, by, "reviews")?;
        let account = Account::User(rustix::process::getuid().as_raw());
        Ok(caller(Principal::human(label).with_account(account)))
    }
}

/// The same, for a store that a command opened itself.
pub(in crate::commands) fn warn_about_policy(store: &DraftStore) {
    let notes = store.policy_notes();
    for note in &notes {
        terminal::note(&format!("{YELLOW}policy: {}{YELLOW:#}\n", shown_line(note)));
    }
    let wants = |note: &String| note.starts_with("the workspace wants");
    if notes.iter().any(wants) {
        terminal::note("hint: `moothall policy trust` shows it and lets it count\n");
    }
}

fn caller(who: Principal) -> Caller {
    let client =
        Client { name: "moothall".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    Caller { who, client: Some(client) }
}

/// A handle, or the words for one that is none: the same as for one that nobody knows.
pub(in crate::commands) fn id_of(text: &str) -> Result<DraftId, CliError> {
    DraftId::parse(text).ok_or_else(|| failed(Refusal::Unknown.into()))
}

pub(in crate::commands) fn failed(error: DraftError) -> CliError {
    let hint = match &error {
        DraftError::Refused(Refusal::Unknown) => Some("`moothall draft list --all` shows yours"),
        DraftError::Refused(Refusal::Seal { .. }) => {
            Some("look at it again: `moothall review show DRAFT`")
        }
        DraftError::Refused(Refusal::Policy) => {
            Some("look at it again, it is judged anew: `moothall review show DRAFT`")
        }
        DraftError::Refused(Refusal::Author) => {
            Some("somebody else reviews it, or the policy says `author_may_approve = true`")
        }
        DraftError::Refused(Refusal::NotApprover { .. }) => {
            Some("`approvers` holds user ids (`uid:1000`) and token ids (`token:ID`), no names")
        }
        DraftError::Refused(Refusal::WorkerName { .. }) => Some("pass your own name: `--by NAME`"),
        DraftError::File { fault: FileFault::NotOurs | FileFault::NotPlain(_), path }
            if path.starts_with(VIEW) =>
        {
            Some("move it away: what is in `_handoff` besides the task's contract is generated")
        }
        DraftError::File { fault: FileFault::Missing, .. } => {
            Some("`--new` opens a draft of a file that does not exist yet")
        }
        DraftError::Policy(_) => Some("`moothall policy check` says more"),
        DraftError::Busy => Some("another process works on the drafts; `moothall review` again"),
        DraftError::JournalDamaged { .. } => {
            Some("nothing is accepted until a person looked: `moothall audit verify`")
        }
        _ => None,
    };
    let exit = match &error {
        DraftError::Policy(_) => Exit::Usage,
        error if error.is_refusal() => Exit::Usage,
        _ => Exit::Failed,
    };
    let words = error.to_string();
    let mut failed = CliError::new(exit, words);
    if let DraftError::Io { source, .. } = error {
        failed = failed.with_source(source);
    }
    match hint {
        Some(hint) => failed.with_hint(hint),
        None => failed,
    }
}
