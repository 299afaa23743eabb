//! The configuration: what it holds, and how its layers become one.
//!
//! Flag beats `MOOTHALL_*` variable beats `.env` beats file beats default. [`resolve`] is pure;
//! [`load`] is the one place that reads the process environment and the files. The field docs below
//! are printed in the reference manual.

mod commands;
mod environment;
mod file;
mod hints;
mod layers;
mod origin;
mod problem;
mod reference;
mod schema;
mod sources;
mod validate;

use std::collections::BTreeMap;
use std::path::PathBuf;

use moothall_core::money::{dollars, dollars_option};
use moothall_core::sandbox::IsolationClass;
use moothall_core::{IsolationChoice, MicroUsd};
use moothall_models::settings::{ProviderSettings, RetrySettings};
use moothall_sources::edgar::Endpoints;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use self::commands::{check, path, show};
pub use self::environment::{CONFIG_VARIABLE, Environment};
pub(crate) use self::file::line_of;
pub(crate) use self::hints::nearest;
pub use self::layers::{Entry, Layers, Resolved, resolve};
pub use self::origin::Origin;
pub use self::problem::{ConfigError, Problem};
pub use self::reference::reference;
pub use self::sources::{Candidate, FILE_NAME, FoundBy, KEYS_FILE_NAME, Loaded, Places, load};

/// Everything that can be configured. Every key is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Model that answers unless a command names another, written `provider/name`. When it is not
    /// set, the provider whose key is present decides.
    pub model: Option<String>,
    /// File with further models, limits and prices; its rows replace built-in rows of the same
    /// name. A relative path starts at the folder of the configuration file.
    #[schemars(extend("x-type" = "path"))]
    pub catalog: Option<PathBuf>,
    /// What a run may spend. It stops before a call that could go beyond.
    pub budget: BudgetSection,
    /// What happens after a failure that may pass by itself.
    pub retry: RetrySettings,
    /// Providers by name: settings of a built-in one (`anthropic`, `openai`, `google`, `groq`,
    /// `openrouter`, `ollama`), or a new one with its `base_url`. A name is made of lower-case
    /// letters, digits, `-` and `_`.
    pub provider: BTreeMap<String, ProviderSettings>,
    /// How programs that nobody trusts are kept apart from this machine.
    pub isolation: IsolationSection,
    /// What `moothall consult` does.
    pub consult: ConsultSection,
    /// Where filings of companies come from.
    pub evidence: EvidenceSection,
    /// Who is told when a run ends or stands still.
    pub notify: NotifySection,
    /// Where runs are kept.
    pub store: StoreSection,
    /// What the program tells about its own work, on standard error.
    pub log: LogSection,
}

/// The `[budget]` section.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSection {
    /// US dollars that one run may spend, such as `"2.50"`. Without it the price is not limited.
    #[serde(with = "dollars_option")]
    #[schemars(schema_with = "dollars_schema")]
    pub usd: Option<MicroUsd>,
    /// Tokens that one run may use, sent and received together. Without it they are not limited.
    pub tokens: Option<u64>,
}

/// The `[isolation]` section. A file that merely lies in the working folder may tighten it and not
/// loosen it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IsolationSection {
    /// What runs sandboxes. `auto` takes the strongest that works on this machine.
    pub engine: EngineChoice,
    /// The weakest class that is used; a weaker one is refused. `moothall doctor` shows which
    /// classes this machine has.
    pub minimum: Option<IsolationClass>,
    /// Whether `auto` may choose a container on this machine's own kernel. Naming `runc` or `crun`
    /// says the same for one command.
    pub allow_shared_kernel: bool,
    /// Mebibytes of memory that all sandboxes together may take. Without it, half of the machine's
    /// memory.
    pub memory_mib: Option<u64>,
    /// Sandboxes that wait, already started, for the next program of a run.
    pub pool: usize,
    /// What happens to a debate whose sandbox fails or cannot be had: `fallback` goes on in this
    /// program's own process and says so, `fail` gives the move up. A program is never run without
    /// a sandbox.
    pub on_failure: OnFailure,
}

/// What happens to a debate without a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// It goes on in this program's own process, marked
    #[default]
    Fallback,
    /// The move is given up
    Fail,
}

impl Default for IsolationSection {
    fn default() -> Self {
        Self {
            engine: EngineChoice::Auto,
            minimum: None,
            allow_shared_kernel: false,
            memory_mib: None,
            pool: 1,
            on_failure: OnFailure::Fallback,
        }
    }
}

/// What runs sandboxes.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum EngineChoice {
    /// The strongest that works on this machine
    #[default]
    Auto,
    /// QEMU: a kernel of its own, on KVM or emulated
    Microvm,
    /// gVisor: a kernel in user space
    Runsc,
    /// A container on this machine's own kernel
    Runc,
    /// A container on this machine's own kernel
    Crun,
}

impl EngineChoice {
    /// The engine that a run asks for; nothing where it wants no sandbox.
    pub(crate) fn of(choice: IsolationChoice) -> Option<Self> {
        Some(match choice {
            IsolationChoice::Auto => Self::Auto,
            IsolationChoice::Microvm => Self::Microvm,
            IsolationChoice::Runsc => Self::Runsc,
            IsolationChoice::Runc => Self::Runc,
            IsolationChoice::Crun => Self::Crun,
            IsolationChoice::None => return None,
        })
    }
}

impl From<EngineChoice> for IsolationChoice {
    fn from(engine: EngineChoice) -> Self {
        match engine {
            EngineChoice::Auto => Self::Auto,
            EngineChoice::Microvm => Self::Microvm,
            EngineChoice::Runsc => Self::Runsc,
            EngineChoice::Runc => Self::Runc,
            EngineChoice::Crun => Self::Crun,
        }
    }
}

/// The `[consult]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConsultSection {
    /// Ask before a consultation that may cost more than this many US dollars, such as `"1.00"`.
    /// Whoever cannot be asked says `--yes`. A file that merely lies in the working folder may lower
    /// it and not raise it above the default.
    #[serde(with = "dollars")]
    #[schemars(schema_with = "dollars_schema")]
    pub ask_above_usd: MicroUsd,
}

impl Default for ConsultSection {
    fn default() -> Self {
        Self { ask_above_usd: MicroUsd::new(1_000_000) }
    }
}

/// The `[evidence]` section. A file that merely lies in the working folder may not set the addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EvidenceSection {
    /// Your mail address, which every request to the SEC carries, as the SEC demands. Without it
    /// nothing is asked there; recordings and HLXI need none.
    pub contact: Option<String>,
    /// Where lists of filings and facts are.
    pub data_url: String,
    /// Where tickers and the filings themselves are.
    pub www_url: String,
}

impl Default for EvidenceSection {
    fn default() -> Self {
        let Endpoints { data, www } = Endpoints::sec();
        Self { contact: None, data_url: data, www_url: www }
    }
}

/// The `[store]` section. A file that merely lies in the working folder may not set the address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSection {
    /// PostgreSQL database that holds the runs, such as
    /// `"postgres://moothall@db.example.com/runs"`; never with a password, which belongs into
    /// `~/.pgpass` or into the variable `MOOTHALL_DATABASE_URL` with the whole address. Without it,
    /// runs are kept in one file on this machine.
    pub url: Option<String>,
    /// Connections to the database that one process may have, beside one that hears of commits and
    /// one that holds the runs it drives.
    pub connections: u32,
}

impl Default for StoreSection {
    fn default() -> Self {
        Self { url: None, connections: 8 }
    }
}

/// The `[notify]` section: who is told when a run is finished, failed, stopped by its budget, or
/// waits for a person. A notice names the run and holds nothing of what it is about. A file that
/// merely lies in the working folder may not set it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotifySection {
    /// Show a notice on the desktop, by `notify-send`.
    pub desktop: bool,
    /// Address that is told by a POST, such as `"https://example.com/hooks/moothall"`; without TLS
    /// only on this machine.
    pub webhook: Option<String>,
    /// Environment variable with the secret that signs these requests, such as
    /// `"MOOTHALL_HOOK"`, as Standard Webhooks do. Never the secret itself.
    pub webhook_secret_env: Option<String>,
}

/// The `[log]` section.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogSection {
    /// The least important message that is still shown.
    pub level: LogLevel,
    /// `pretty` for people, `json` for machines.
    pub format: LogFormat,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    Error,
    #[default]
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    #[default]
    Pretty,
    Json,
}

fn dollars_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "number", "null"], "x-type": "dollars" })
}
