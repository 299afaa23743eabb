//! The configuration: its settings, and how its layers are merged.
//!
//! A flag overrides a `MOOTHALL_*` variable, which overrides `.env`, the file and the default, in
//! this order. [`resolve`] is pure; only [`load`] reads the process environment and files. The
//! field docs below are printed in the reference manual.

mod commands;
mod environment;
mod file;
mod hints;
mod layers;
mod notify;
mod origin;
mod problem;
mod reference;
mod schema;
mod sources;
mod validate;

use std::collections::BTreeMap;
use std::path::PathBuf;

use moothall_core::model::ModelChoice;
use moothall_core::money::{dollars, dollars_option};
use moothall_core::sandbox::IsolationClass;
use moothall_core::{IsolationChoice, MicroUsd};
use moothall_models::settings::{ProviderSettings, RetrySettings};
use moothall_sources::edgar::EdgarEndpoints;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use self::commands::{check, path, show};
pub use self::environment::{CONFIG_VARIABLE, EnvVars};
pub(crate) use self::file::line_of;
pub(crate) use self::hints::nearest;
pub use self::layers::{ConfigEntry, ConfigLayers, ResolvedConfig, resolve};
pub use self::notify::{NoticeEvent, NotifySection, NotifyTarget, TargetKind, WebhookFormat};
pub(crate) use self::notify::{check_mail_url, check_webhook};
pub use self::origin::ConfigOrigin;
pub use self::problem::{ConfigError, ConfigProblem};
pub use self::reference::reference;
pub use self::sources::{
    ConfigFileCandidate, ConfigFileSource, ConfigLocations, FILE_NAME, KEYS_FILE_NAME,
    LoadedConfig, load,
};

/// All settings. Every key is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Default model, written `provider/name`, or a list of models: each one is used when those
    /// before it are unavailable. If not set, it is chosen by the available API key.
    #[schemars(extend("x-type" = "models"))]
    pub model: Option<ModelChoice>,
    /// File with additional models, limits and prices; its rows replace built-in rows with the same
    /// name. A relative path is resolved against the directory of the configuration file.
    #[schemars(extend("x-type" = "path"))]
    pub catalog: Option<PathBuf>,
    /// Models of `moothall consult` by role. Ignored if `--model` is given.
    pub models: ModelsSection,
    /// Spend limits of a run. A run stops before a call that could exceed them.
    pub budget: BudgetSection,
    /// Retries after temporary failures.
    pub retry: RetrySettings,
    /// Providers by name: settings of a built-in provider (`anthropic`, `azure`, `bedrock`,
    /// `bedrock-claude`, `google`, `groq`, `lmstudio`, `mistral`, `ollama`, `openai`, `openrouter`,
    /// `vertex`, `vllm`), or a new provider with its `base_url`. Names consist of lower-case
    /// letters, digits, `-` and `_`.
    pub provider: BTreeMap<String, ProviderSettings>,
    /// Isolation of untrusted programs. A `moothall.toml` in the working directory can only make it
    /// stricter.
    pub isolation: IsolationSection,
    /// Settings of `moothall consult`.
    pub consult: ConsultSection,
    /// Sources of company filings.
    pub evidence: EvidenceSection,
    /// Notices when a run ends or needs you, and when a draft needs review. A `moothall.toml` in
    /// the working directory cannot set them.
    pub notify: NotifySection,
    /// Where runs are stored.
    pub store: StoreSection,
    /// Logging to standard error.
    pub log: LogSection,
}

/// The `[models]` section: the models of a consultation by role. Roles that are not set use `model`.
/// Each value is a model, or a list of models in order of preference, such as
/// `["openai/gpt-5-mini", "anthropic/claude-haiku-5-5"]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelsSection {
    /// Models of the two inference agents, which read the evidence first.
    #[schemars(extend("x-type" = "models"))]
    pub inference: Option<ModelChoice>,
    /// Models of the analysts, who propose moves.
    #[schemars(extend("x-type" = "models"))]
    pub analyst: Option<ModelChoice>,
    /// Models of the critic, who attacks the moves.
    #[schemars(extend("x-type" = "models"))]
    pub critic: Option<ModelChoice>,
    /// Models of the decision makers, who defend and score the moves.
    #[schemars(extend("x-type" = "models"))]
    pub decision_maker: Option<ModelChoice>,
}

impl ModelsSection {
    /// The roles with their keys.
    pub(crate) fn roles(&self) -> [(&'static str, Option<&ModelChoice>); 4] {
        [
            ("inference", self.inference.as_ref()),
            ("analyst", self.analyst.as_ref()),
            ("critic", self.critic.as_ref()),
            ("decision_maker", self.decision_maker.as_ref()),
        ]
    }
}

/// The `[budget]` section.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSection {
    /// Spend limit of one run in US dollars, such as `"2.50"`. If not set, spending is not limited.
    #[serde(with = "dollars_option")]
    #[schemars(schema_with = "dollars_schema")]
    pub usd: Option<MicroUsd>,
    /// Token limit of one run, sent and received together. If not set, tokens are not limited.
    pub tokens: Option<u64>,
}

/// The `[isolation]` section. A `moothall.toml` in the working directory is untrusted: it can only
/// make isolation stricter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IsolationSection {
    /// Sandbox engine. `auto` chooses the strongest one that works on this machine.
    pub engine: EngineChoice,
    /// Weakest isolation class that is allowed. `moothall doctor` shows the classes of this
    /// machine.
    pub minimum: Option<IsolationClass>,
    /// Allow `auto` to choose a container on the host kernel. Naming `runc` or `crun` allows it for
    /// one command.
    pub allow_shared_kernel: bool,
    /// Memory limit of all sandboxes together, in MiB. If not set, half of the machine's memory.
    pub memory_mib: Option<u64>,
    /// Number of sandboxes that are kept ready for the next program. `serve`, `worker` and `mcp`
    /// keep them between requests, other commands until the run ends.
    pub pool: usize,
    /// What to do with a debate whose sandbox fails or is unavailable: `fallback` continues in the
    /// process of moothall and reports it, `fail` fails the move. Programs never run without a
    /// sandbox.
    pub on_failure: SandboxFallback,
    /// Build the image of the debate sandboxes when a consultation first needs it (once, about
    /// 10 seconds; downloads a Debian kernel). With `false`, only `moothall image build` and
    /// `moothall image import` install images.
    pub build: bool,
}

/// What to do with a debate whose sandbox fails or is unavailable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxFallback {
    /// Continue in the process of moothall, and report it
    #[default]
    Fallback,
    /// Fail the move
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
            on_failure: SandboxFallback::Fallback,
            build: true,
        }
    }
}

/// Sandbox engines.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum EngineChoice {
    /// The strongest engine that works on this machine
    #[default]
    Auto,
    /// QEMU microVM with its own kernel, on KVM or emulated
    Microvm,
    /// gVisor: a kernel in user space
    Runsc,
    /// Container on the host kernel
    Runc,
    /// Container on the host kernel
    Crun,
}

impl EngineChoice {
    /// The engine of a run, or `None` for a run without a sandbox.
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
    /// Ask for confirmation before a consultation that may cost more than this many US dollars,
    /// such as `"1.00"`. Pass `--yes` in scripts. A `moothall.toml` in the working directory cannot
    /// raise it above the default.
    #[serde(with = "dollars")]
    #[schemars(schema_with = "dollars_schema")]
    pub ask_above_usd: MicroUsd,
}

impl Default for ConsultSection {
    fn default() -> Self {
        Self { ask_above_usd: MicroUsd::new(1_000_000) }
    }
}

/// The `[evidence]` section. A `moothall.toml` in the working directory is untrusted and cannot set
/// the URLs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EvidenceSection {
    /// Your email address, sent with every request to the SEC, which requires it. If not set, the
    /// SEC is not contacted; recordings and HLXI work without it.
    pub contact: Option<String>,
    /// Base URL for filing lists and facts. A `moothall.toml` in the working directory cannot set
    /// it.
    pub data_url: String,
    /// Base URL for tickers and filings. A `moothall.toml` in the working directory cannot set it.
    pub www_url: String,
}

impl Default for EvidenceSection {
    fn default() -> Self {
        let EdgarEndpoints { data, www } = EdgarEndpoints::sec();
        Self { contact: None, data_url: data, www_url: www }
    }
}

/// The `[store]` section. A `moothall.toml` in the working directory is untrusted and cannot set
/// the URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSection {
    /// PostgreSQL database for runs, such as `"postgres://moothall@db.example.com/runs"`. A
    /// password is not allowed here: put it in `~/.pgpass`, or the complete URL in the variable
    /// `MOOTHALL_DATABASE_URL`. If not set, runs are stored in a local file. A `moothall.toml` in
    /// the working directory cannot set it.
    pub url: Option<String>,
    /// Maximum number of database connections of one process, in addition to one for commit
    /// notifications and one for run locks.
    pub connections: u32,
}

impl Default for StoreSection {
    fn default() -> Self {
        Self { url: None, connections: 8 }
    }
}

/// The `[log]` section.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogSection {
    /// Minimum level of messages to log.
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
