use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use moothall_core::MicroUsd;
use moothall_core::model::ModelChoice;
use moothall_models::settings::{ProviderSettings, RetrySettings, WireFormat};
use proptest::prelude::*;

use super::super::{
    BudgetSection, ConsultSection, EngineChoice, EvidenceSection, IsolationSection, LogFormat,
    LogLevel, LogSection, ModelsSection, NoticeEvent, NotifySection, SandboxFallback, StoreSection,
};
use super::*;

fn layers(
    file: &str,
    dotenv: &[(&str, &str)],
    environment: &[(&str, &str)],
    flags: &str,
) -> ConfigLayers {
    ConfigLayers {
        file: (!file.is_empty()).then(|| (PathBuf::from("etc/moothall.toml"), file.to_owned())),
        dotenv: dotenv.iter().copied().collect(),
        environment: environment.iter().copied().collect(),
        flags: toml::from_str(flags).unwrap(),
    }
}

#[track_caller]
fn check(layers: ConfigLayers, expected: Config) {
    assert_eq!(resolve(layers).unwrap().config, expected);
}

/// Compares all problems as pairs of message and hint.
#[track_caller]
fn check_problems(layers: ConfigLayers, expected: &[(&str, &str)]) {
    let error = resolve(layers).unwrap_err();
    let found: Vec<_> = error.problems().map(shown).collect();
    assert_eq!(found, expected);
}

#[track_caller]
fn check_warning(name: &str, value: &str, message: &str, hint: &str) {
    let resolved = resolve(layers("", &[], &[(name, value)], "")).unwrap();
    assert_eq!(resolved.config, Config::default());
    assert_eq!(resolved.warnings.iter().map(shown).collect::<Vec<_>>(), [(message, hint)]);
}

fn shown(problem: &ConfigProblem) -> (&str, &str) {
    (problem.message.as_str(), problem.hint.as_deref().unwrap_or_default())
}

#[track_caller]
fn check_file(file: &str, message: &str, hint: &str) {
    check_problems(layers(file, &[], &[], ""), &[(message, hint)]);
}

#[track_caller]
fn check_variable(name: &str, value: &str, message: &str, hint: &str) {
    check_problems(layers("", &[], &[(name, value)], ""), &[(message, hint)]);
}

fn with_model(model: &str) -> Config {
    Config { model: Some(ModelChoice::One(model.to_owned())), ..Config::default() }
}

#[test]
fn nothing_configured_gives_the_defaults() {
    check(
        ConfigLayers::default(),
        Config {
            model: None,
            catalog: None,
            models: ModelsSection::default(),
            budget: BudgetSection { usd: None, tokens: None },
            retry: RetrySettings {
                retries: 3,
                first_delay: Duration::from_millis(500),
                max_delay: Duration::from_secs(30),
                outage_wait: Duration::from_secs(300),
            },
            provider: BTreeMap::new(),
            isolation: IsolationSection {
                engine: EngineChoice::Auto,
                minimum: None,
                allow_shared_kernel: false,
                memory_mib: None,
                pool: 1,
                on_failure: SandboxFallback::Fallback,
                build: true,
            },
            consult: ConsultSection { ask_above_usd: MicroUsd::new(1_000_000) },
            evidence: EvidenceSection {
                contact: None,
                data_url: "https://data.sec.gov".to_owned(),
                www_url: "https://www.sec.gov".to_owned(),
            },
            notify: NotifySection {
                desktop: false,
                webhook: None,
                webhook_env: None,
                webhook_format: crate::config::WebhookFormat::Json,
                webhook_secret_env: None,
                events: Vec::new(),
                server_url: None,
                link_lifetime: Duration::from_secs(24 * 60 * 60),
                target: BTreeMap::new(),
            },
            store: StoreSection { url: None, connections: 8 },
            log: LogSection { level: LogLevel::Warn, format: LogFormat::Pretty },
        },
    );
}

#[test]
fn a_list_in_a_variable_is_separated_by_commas() {
    let file = "notify.target.own = { url = \"https://example.com\", to = [\"a@b.c\"] }\n";
    let variables = [
        ("MOOTHALL_NOTIFY__EVENTS", "failed, needs-review,"),
        ("MOOTHALL_NOTIFY__TARGET__OWN__EVENTS", "decided"),
    ];
    let notify = resolve(layers(file, &[], &variables, "")).unwrap().config.notify;
    assert_eq!(notify.events, [NoticeEvent::Failed, NoticeEvent::NeedsReview]);
    assert_eq!(notify.target["own"].events, [NoticeEvent::Decided]);
    assert_eq!(notify.target["own"].to, ["a@b.c"]);
    let wrong = [("MOOTHALL_NOTIFY__EVENTS", "sometimes")];
    assert!(resolve(layers("", &[], &wrong, "")).is_err());
}

#[test]
fn models_are_one_name_or_a_list_in_order_of_preference() {
    let several = |names: &[&str]| {
        Some(ModelChoice::Several(names.iter().map(|name| (*name).to_owned()).collect()))
    };
    check(
        layers(
            "model = [\"a/b\", \"c/d\"]\nmodels.critic = [\"c/d\", \"a/b\"]\n",
            &[],
            &[("MOOTHALL_MODELS__ANALYST", "a/b,c/d")],
            "",
        ),
        Config {
            model: several(&["a/b", "c/d"]),
            models: ModelsSection {
                analyst: Some(ModelChoice::One("a/b,c/d".to_owned())),
                critic: several(&["c/d", "a/b"]),
                ..ModelsSection::default()
            },
            ..Config::default()
        },
    );
    let invalid = "is invalid: `a/b` is in the list twice";
    check_file(
        "models.critic = [\"a/b\", \"a/b\"]",
        &format!("etc/moothall.toml:1: `models.critic` {invalid}"),
        "see `moothall models`",
    );
    check_variable(
        "MOOTHALL_MODEL",
        "a/b,a/b",
        &format!("MOOTHALL_MODEL: `model` {invalid}"),
        "see `moothall models`",
    );
}

#[test]
fn each_layer_covers_the_ones_below_it() {
    let (file, dotenv, environment, flags) = (
        "model = \"a/file\"",
        [("MOOTHALL_MODEL", "a/dotenv")],
        [("MOOTHALL_MODEL", "a/environment")],
        "model = \"a/flag\"",
    );
    check(layers(file, &[], &[], ""), with_model("a/file"));
    check(layers(file, &dotenv, &[], ""), with_model("a/dotenv"));
    check(layers(file, &dotenv, &environment, ""), with_model("a/environment"));
    check(layers(file, &dotenv, &environment, flags), with_model("a/flag"));
    check(layers("", &dotenv, &environment, ""), with_model("a/environment"));
    check(layers(file, &[], &[], flags), with_model("a/flag"));
}

#[test]
fn layers_mix_key_by_key_inside_one_section() {
    let file = "[provider.openai]\nbase_url = \"http://127.0.0.1:1/v1\"\nconcurrent = 2\ntimeout = \"1m\"\n";
    let environment = [
        ("MOOTHALL_PROVIDER__OPENAI__CONCURRENT", "8"),
        ("MOOTHALL_PROVIDER__LAB__BASE_URL", "http://lab/v1"),
    ];
    let lab = ProviderSettings {
        base_url: Some("http://lab/v1".to_owned()),
        ..ProviderSettings::default()
    };
    let openai = ProviderSettings {
        base_url: Some("http://127.0.0.1:1/v1".to_owned()),
        wire: Some(WireFormat::OpenAiChat),
        concurrent: NonZeroU32::new(8),
        timeout: Some(Duration::from_secs(60)),
        ..ProviderSettings::default()
    };
    check(
        layers(file, &[], &environment, "provider.openai.wire = \"openai-chat\""),
        Config {
            provider: BTreeMap::from([("lab".to_owned(), lab), ("openai".to_owned(), openai)]),
            ..Config::default()
        },
    );
}

#[test]
fn variables_are_read_as_the_type_of_their_key() {
    check(
        layers(
            "",
            &[],
            &[
                ("MOOTHALL_MODEL", "lab/5"),
                ("MOOTHALL_BUDGET__USD", "$2.50"),
                ("MOOTHALL_BUDGET__TOKENS", " 100000 "),
                ("MOOTHALL_RETRY__FIRST_DELAY", "2s"),
                ("MOOTHALL_LOG__LEVEL", "debug"),
            ],
            "",
        ),
        Config {
            model: Some(ModelChoice::One("lab/5".to_owned())),
            budget: BudgetSection { usd: Some(MicroUsd::new(2_500_000)), tokens: Some(100_000) },
            retry: RetrySettings {
                first_delay: Duration::from_secs(2),
                ..RetrySettings::default()
            },
            log: LogSection { level: LogLevel::Debug, ..LogSection::default() },
            ..Config::default()
        },
    );
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    check(
        layers("model = \"a/b\"", &[], &[("MOOTHALL_MODEL", ""), ("MOOTHALL_BUDGET__USD", "")], ""),
        with_model("a/b"),
    );
}

#[test]
fn reserved_and_foreign_variables_are_not_configuration_keys() {
    let environment = [
        ("MOOTHALL_CONFIG", "x.toml"),
        ("MOOTHALL_DATA_DIR", "/srv"),
        ("MOOTHALL_TEST_SEED", "1"),
        ("MOOTHALL_REQUIRE_GUEST", "1"),
        ("OPENAI_API_KEY", "sk-1"),
        ("PATH", "/bin"),
    ];
    check(layers("", &environment[1..], &environment, ""), Config::default());
}

#[test]
fn a_relative_path_is_resolved_from_the_directory_of_its_file() {
    let catalog = |path: &str| Config { catalog: Some(path.into()), ..Config::default() };
    check(layers("catalog = \"prices.toml\"", &[], &[], ""), catalog("etc/prices.toml"));
    check(layers("catalog = \"/prices.toml\"", &[], &[], ""), catalog("/prices.toml"));
    check(
        layers("log = {}", &[("MOOTHALL_CATALOG", "prices.toml")], &[], ""),
        catalog("etc/prices.toml"),
    );
    check(
        layers("log = {}", &[], &[("MOOTHALL_CATALOG", "prices.toml")], ""),
        catalog("prices.toml"),
    );
    check(layers("log = {}", &[], &[], "catalog = \"prices.toml\""), catalog("prices.toml"));
    let home = "etc/moothall.toml:1: `catalog` starts with `~`, which is expanded only by shells";
    check_file("catalog = \"~/prices.toml\"", home, "write the full path");
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest_known_one() {
    check_file(
        "model = \"a/b\"\n\n[log]\nlevel = \"info\"\n\n[budgt]\nusd = 5\n",
        "etc/moothall.toml:7: unknown key `budgt.usd`",
        "did you mean `budget.usd`?",
    );
    check_file(
        "modle = \"a/b\"",
        "etc/moothall.toml:1: unknown key `modle`",
        "did you mean `model`?",
    );
    check_file("[budgt]", "etc/moothall.toml:1: unknown key `budgt`", "did you mean `budget`?");
    check_file("usd = 5", "etc/moothall.toml:1: unknown key `usd`", "did you mean `budget.usd`?");
    check_file(
        "timeout = \"1s\"",
        "etc/moothall.toml:1: unknown key `timeout`",
        "did you mean `provider.NAME.timeout`?",
    );
    check_file(
        "provider = { groq = { concurent = 1 } }",
        "etc/moothall.toml:1: unknown key `provider.groq.concurent`",
        "did you mean `provider.groq.concurrent`?",
    );
    check_file(
        "zzz = 5",
        "etc/moothall.toml:1: unknown key `zzz`",
        "`moothall config show` lists the known keys",
    );
    check_file(
        "\"a.b\\u001b\" = 5",
        "etc/moothall.toml:1: unknown key `\"a.b\\u{1b}\"`",
        "`moothall config show` lists the known keys",
    );
}

#[test]
fn an_unknown_variable_is_named_with_the_nearest_known_one() {
    let unknown = "unknown environment variable";
    for (name, near) in [
        ("MOOTHALL_BUDGT__USD", "MOOTHALL_BUDGET__USD"),
        ("MOOTHALL_BUDGET_USD", "MOOTHALL_BUDGET__USD"),
        ("MOOTHALL_model", "MOOTHALL_MODEL"),
        ("MOOTHALL_CONFG", "MOOTHALL_CONFIG"),
        ("MOOTHALL_DATADIR", "MOOTHALL_DATA_DIR"),
        ("MOOTHALL_PROVIDER__LAB__BASEURL", "MOOTHALL_PROVIDER__LAB__BASE_URL"),
    ] {
        check_warning(
            name,
            "5",
            &format!("{unknown} `{name}`"),
            &format!("did you mean `{near}`?"),
        );
    }
    check_problems(
        layers("", &[("MOOTHALL_MODLE", "x")], &[], ""),
        &[(
            "unknown variable `MOOTHALL_MODLE` in the `.env` file",
            "did you mean `MOOTHALL_MODEL`?",
        )],
    );
    check_problems(
        layers("", &[("MOOTHALL_CONFIG", "x")], &[], ""),
        &[(
            "`MOOTHALL_CONFIG` has no effect in a `.env` file",
            "set it in the process environment: the `.env` file is located through the configuration file",
        )],
    );
}

#[test]
fn an_api_key_in_the_configuration_is_refused_and_not_quoted() {
    let hint = |variable: &str| {
        let provider = variable.trim_end_matches("_API_KEY").to_lowercase();
        format!(
            "API keys are not part of the configuration: run `moothall key set {provider}`, or set `{variable}`"
        )
    };
    check_file(
        "api_key = \"sk-1\"",
        "etc/moothall.toml:1: unknown key `api_key`",
        &hint("ANTHROPIC_API_KEY"),
    );
    check_file(
        "[provider.openai]\napi_key = \"sk-1\"",
        "etc/moothall.toml:2: unknown key `provider.openai.api_key`",
        &hint("OPENAI_API_KEY"),
    );
    check_warning(
        "MOOTHALL_PROVIDER__GROQ__API_KEY",
        "sk-1",
        "unknown environment variable `MOOTHALL_PROVIDER__GROQ__API_KEY`",
        &hint("GROQ_API_KEY"),
    );
}

#[test]
fn a_value_of_the_wrong_type_is_named_with_its_place() {
    let budget = "expects an amount of US dollars such as \"2.50\"";
    check_file(
        "[budget]\nusd = true",
        &format!("etc/moothall.toml:2: `budget.usd` {budget}, not true"),
        "",
    );
    check_file(
        "[budget]\nusd = \"much\"",
        &format!("etc/moothall.toml:2: `budget.usd` {budget}, not \"much\""),
        "",
    );
    check_file(
        "budget.tokens = -1",
        "etc/moothall.toml:1: `budget.tokens` expects an integer of at least 0, not -1",
        "",
    );
    check_file(
        "model = 5",
        "etc/moothall.toml:1: `model` expects a model or a list of models, not 5",
        "",
    );
    check_file(
        "[model]\na = 5",
        "etc/moothall.toml:1: `model` expects a model or a list of models, not a table",
        "",
    );
    check_file("budget = 5", "etc/moothall.toml:1: `budget` must be a table, not 5", "");
    check_file("[[provider]]", "etc/moothall.toml:1: `provider` must be a table, not a list", "");
    check_file(
        "retry.max_delay = \"soon\"",
        "etc/moothall.toml:1: `retry.max_delay` expects a duration such as \"30s\", not \"soon\"",
        "",
    );
    check_file(
        "log.level = \"inof\"",
        "etc/moothall.toml:1: `log.level` expects one of `error`, `warn`, `info`, `debug`, `trace`, not \"inof\"",
        "did you mean `info`?",
    );
    check_variable(
        "MOOTHALL_BUDGET__USD",
        "much",
        &format!("MOOTHALL_BUDGET__USD: {budget}, not \"much\""),
        "",
    );
    check_variable(
        "MOOTHALL_RETRY__RETRIES",
        "3.5",
        "MOOTHALL_RETRY__RETRIES: expects an integer of at least 0, not \"3.5\"",
        "",
    );
    check_variable(
        "MOOTHALL_RETRY__RETRIES",
        "-3",
        "MOOTHALL_RETRY__RETRIES: expects an integer of at least 0, not -3",
        "",
    );
    check_problems(
        layers("", &[("MOOTHALL_LOG__FORMAT", "JSON")], &[], "retry.retries = \"3\""),
        &[
            (
                ".env MOOTHALL_LOG__FORMAT: expects one of `pretty`, `json`, not \"JSON\"",
                "did you mean `json`?",
            ),
            ("flag: `retry.retries` expects an integer of at least 0, not \"3\"", ""),
        ],
    );
}

#[test]
fn invalid_toml_is_reported_with_its_line_and_not_quoted() {
    let error =
        resolve(layers("model = \"a/b\"\napi_key = sk-secret\n", &[], &[], "")).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with("etc/moothall.toml:2: "), "{message}");
    assert!(!message.contains("sk-secret"), "{message}");
}

#[test]
fn a_bad_value_is_a_problem_even_where_another_layer_covers_it() {
    check_problems(
        layers("model = 5\nzzz = 1", &[], &[("MOOTHALL_MODEL", "a/b")], ""),
        &[
            (
                "etc/moothall.toml:2: unknown key `zzz`",
                "`moothall config show` lists the known keys",
            ),
            ("etc/moothall.toml:1: `model` expects a model or a list of models, not 5", ""),
        ],
    );
}

#[test]
fn inconsistent_provider_settings_are_refused() {
    let new = "a new provider needs a `base_url`";
    check_file(
        "[provider.lab]",
        "etc/moothall.toml:1: `provider.lab` is not a known provider",
        new,
    );
    check_file(
        "[provider.openia]\nconcurrent = 1",
        "etc/moothall.toml:2: `provider.openia` is not a known provider",
        &format!("did you mean `provider.openai`? {new}"),
    );
    check_file(
        "[provider.\"My Lab\"]",
        "etc/moothall.toml:1: `provider.\"My Lab\"` is not a valid provider name",
        "use lower-case letters, digits, `-` and `_`",
    );
    check_file(
        "retry.max_delay = \"100ms\"",
        "`retry.first_delay` is longer than `retry.max_delay`",
        "lower it, or raise `retry.max_delay`",
    );
    check_file(
        "provider.groq.timeout = \"0s\"",
        "etc/moothall.toml:1: `provider.groq.timeout` must not be zero",
        "remove it",
    );
    check(layers("[provider.openai]", &[], &[], ""), {
        Config {
            provider: BTreeMap::from([("openai".to_owned(), ProviderSettings::default())]),
            ..Config::default()
        }
    });
}

#[test]
fn a_base_url_cannot_carry_a_secret() {
    let hint = "use a URL like \"https://host:port/v1\"; for API keys, see `moothall config path`";
    for (url, fault) in [
        ("127.0.0.1:8080", "must start with `https://` or `http://`"),
        ("https://user:sk-1@host/v1", "must not contain a user name or password"),
        ("https://host/v1?key=sk-1", "must not contain a query"),
        ("https:///v1", "is not a valid URL"),
        ("https://ho st/v1", "is not a valid URL"),
    ] {
        let message = format!("etc/moothall.toml:1: `provider.lab.base_url` {fault}");
        check_file(&format!("provider.lab.base_url = \"{url}\""), &message, hint);
    }
}

#[test]
fn an_api_key_instead_of_a_variable_name_is_refused_and_not_quoted() {
    for key in ["sk-ant-1", "AIzaSyA1", "", "1ABC"] {
        check_file(
            &format!("provider.groq.key_env = \"{key}\""),
            "etc/moothall.toml:1: `provider.groq.key_env` is not the name of an environment variable",
            "use the name of a variable, such as \"LAB_API_KEY\", never the key itself",
        );
    }
}

#[test]
fn every_configuration_value_records_its_origin() {
    let file =
        "model = \"a/b\"\n[budget]\nusd = 2.5\ntokens = 1000\n[provider.ollama]\nconcurrent = 1\n";
    let resolved = resolve(layers(
        file,
        &[("MOOTHALL_BUDGET__TOKENS", "2000"), ("MOOTHALL_LOG__LEVEL", "info")],
        &[("MOOTHALL_LOG__LEVEL", "debug")],
        "retry.retries = 0",
    ));
    let at = |line| ConfigOrigin::File { path: "etc/moothall.toml".into(), line };
    let text = |value: &str| Some(Value::String(value.to_owned()));
    let entry = |key: &str, value, origin| ConfigEntry { key: key.to_owned(), value, origin };
    assert_eq!(
        resolved.unwrap().entries,
        [
            entry("model", text("a/b"), at(1)),
            entry("catalog", None, ConfigOrigin::Default),
            entry("models.inference", None, ConfigOrigin::Default),
            entry("models.analyst", None, ConfigOrigin::Default),
            entry("models.critic", None, ConfigOrigin::Default),
            entry("models.decision_maker", None, ConfigOrigin::Default),
            entry("budget.usd", text("2.50"), at(3)),
            entry(
                "budget.tokens",
                Some(Value::Integer(2000)),
                ConfigOrigin::DotEnv { name: "MOOTHALL_BUDGET__TOKENS".to_owned() }
            ),
            entry("retry.retries", Some(Value::Integer(0)), ConfigOrigin::Flag),
            entry("retry.first_delay", text("500ms"), ConfigOrigin::Default),
            entry("retry.max_delay", text("30s"), ConfigOrigin::Default),
            entry("retry.outage_wait", text("5m"), ConfigOrigin::Default),
            entry("provider.ollama.concurrent", Some(Value::Integer(1)), at(6)),
            entry("isolation.engine", text("auto"), ConfigOrigin::Default),
            entry("isolation.minimum", None, ConfigOrigin::Default),
            entry(
                "isolation.allow_shared_kernel",
                Some(Value::Boolean(false)),
                ConfigOrigin::Default
            ),
            entry("isolation.memory_mib", None, ConfigOrigin::Default),
            entry("isolation.pool", Some(Value::Integer(1)), ConfigOrigin::Default),
            entry("isolation.on_failure", text("fallback"), ConfigOrigin::Default),
            entry("isolation.build", Some(Value::Boolean(true)), ConfigOrigin::Default),
            entry("consult.ask_above_usd", text("1.00"), ConfigOrigin::Default),
            entry("evidence.contact", None, ConfigOrigin::Default),
            entry("evidence.data_url", text("https://data.sec.gov"), ConfigOrigin::Default),
            entry("evidence.www_url", text("https://www.sec.gov"), ConfigOrigin::Default),
            entry("notify.desktop", Some(Value::Boolean(false)), ConfigOrigin::Default),
            entry("notify.webhook", None, ConfigOrigin::Default),
            entry("notify.webhook_env", None, ConfigOrigin::Default),
            entry("notify.webhook_format", text("json"), ConfigOrigin::Default),
            entry("notify.webhook_secret_env", None, ConfigOrigin::Default),
            entry("notify.events", Some(Value::Array(Vec::new())), ConfigOrigin::Default),
            entry("notify.server_url", None, ConfigOrigin::Default),
            entry("notify.link_lifetime", text("1day"), ConfigOrigin::Default),
            entry("store.url", None, ConfigOrigin::Default),
            entry("store.connections", Some(Value::Integer(8)), ConfigOrigin::Default),
            entry(
                "log.level",
                text("debug"),
                ConfigOrigin::Environment { name: "MOOTHALL_LOG__LEVEL".to_owned() }
            ),
            entry("log.format", text("pretty"), ConfigOrigin::Default),
        ]
    );
}

#[test]
fn debug_output_of_the_layers_shows_no_value_of_a_variable_and_no_text_of_the_file() {
    let layers = layers(
        "api_key = \"sk-file\"",
        &[("A_KEY", "sk-dotenv")],
        &[("B_KEY", "sk-environment")],
        "",
    );
    let debug = format!("{layers:?}");
    assert!(!debug.contains("sk-"), "{debug}");
}

#[test]
fn a_very_deep_key_is_a_problem_and_no_crash() {
    let deep = "a.".repeat(5_000);
    assert!(resolve(layers(&format!("{deep}a = 1"), &[], &[], "")).is_err());
    assert!(resolve(layers(&format!("[{deep}a]"), &[], &[], "")).is_err());
    assert!(resolve(layers(&format!("a = {}", "[".repeat(5_000)), &[], &[], "")).is_err());
}

/// Text made of meaningful pieces, to reach more than syntax errors.
fn toml_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "model",
        "budget",
        "usd",
        "tokens",
        "provider",
        "lab",
        "base_url",
        "key_env",
        "retry",
        "max_delay",
        "log",
        "level",
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        "=",
        " = ",
        ".",
        ",",
        "\n",
        "\n\n",
        "\"",
        "\"x\"",
        "\"2s\"",
        "\"http://h/v1\"",
        "5",
        "-1",
        "2.5",
        "1e400",
        "true",
        "'",
        "\u{feff}",
        "\\u001b",
        "é",
        "#",
        "1979-05-27",
        "9223372036854775808",
    ]);
    prop_oneof![".{0,200}", prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())]
}

fn variable() -> impl Strategy<Value = (String, String)> {
    let name = prop_oneof![
        "MOOTHALL_[A-Za-z_]{0,20}",
        prop::sample::select(
            ConfigNode::root()
                .walk()
                .iter()
                .map(|(path, _)| environment::variable_of(path))
                .collect::<Vec<_>>()
        ),
        ".{0,20}",
    ];
    (name, prop_oneof![".{0,20}", "[0-9.]{0,20}", "[a-z-]{0,8}"])
}

proptest! {
    #[test]
    fn resolving_any_configuration_never_panics(
        file in toml_text(),
        dotenv in prop::collection::vec(variable(), 0..4),
        environment in prop::collection::vec(variable(), 0..4),
        flags in toml_text(),
    ) {
        let layers = ConfigLayers {
            file: Some(("moothall.toml".into(), file)),
            dotenv: dotenv.into_iter().collect(),
            environment: environment.into_iter().collect(),
            flags: toml::from_str(&flags).unwrap_or_default(),
        };
        let resolved = resolve(layers);
        let _ = super::super::check(&resolved, false);
        if let Ok(resolved) = resolved {
            let shown = super::super::show(&resolved, false);
            let again = resolve(ConfigLayers { file: Some(("moothall.toml".into(), shown)), ..ConfigLayers::default() });
            let mut expected = resolved.config;
            // A section without settings leaves no trace in the text, and has no meaning.
            expected.provider.retain(|_, provider| *provider != ProviderSettings::default());
            prop_assert_eq!(again.map(|again| again.config), Ok(expected));
        }
    }

    #[test]
    fn any_dotenv_text_is_read_without_a_panic_and_never_quoted(text in "[A-Z='\" \\\\#\n$\\{\\}\r\t\u{feff}]{0,80}") {
        let marked = format!("{text}sk-secret");
        if let Err(error) = EnvVars::from_dotenv(Path::new(".env"), &marked) {
            let debug = format!("{error:?}");
            prop_assert!(!debug.contains("sk-secret"), "{}", debug);
        }
    }
}

#[test]
fn invalid_connection_settings_are_refused_and_not_quoted() {
    let secret = "is a secret, which does not belong in the configuration";
    let variable = "put the name of a variable in `provider.groq.header_env`, or for the API key run `moothall key set groq`";
    for (lines, fault, hint) in [
        ("headers.Authorization = \"sk-1\"", secret, variable),
        ("headers.x-gateway_token = \"sk-1\"", secret, variable),
        ("query.api_key = \"sk-1\"", secret, "run `moothall key set groq`"),
        (
            "query.\"a.b\" = \"1\"",
            "is not the name of a query parameter",
            "use letters, digits, `-` and `_`",
        ),
        (
            "headers.Host = \"evil.example\"",
            "is not a header that can be set",
            "use letters, digits and `-`; `host` and `content-length` are set by the connection",
        ),
        (
            "header_env.x-token = \"sk-1\"",
            "is not the name of an environment variable",
            "use the name of a variable, such as \"GATEWAY_TOKEN\", never the secret itself",
        ),
        (
            "proxy = \"http://me:sk-1@proxy.example\"",
            "must not contain a user name or password",
            "use a URL like \"http://proxy.example.com:3128\"; put a proxy with a password in `HTTPS_PROXY`",
        ),
        ("key_command_timeout = \"0s\"", "must not be zero", "remove it"),
    ] {
        let (key, _) = lines.split_once(" = ").unwrap();
        let message = format!("etc/moothall.toml:1: `provider.groq.{key}` {fault}");
        check_file(&format!("provider.groq.{lines}"), &message, hint);
    }
}

#[test]
fn a_contact_that_is_not_an_email_address_is_refused() {
    check_file(
        "[evidence]\ncontact = \"ada\"",
        "etc/moothall.toml:2: `evidence.contact` is not an email address",
        "use an address like \"ada@example.com\"; the SEC requires a contact",
    );
    let contact = "[evidence]\ncontact = \"Ada <ada@example.com>\"";
    let evidence = EvidenceSection {
        contact: Some("Ada <ada@example.com>".to_owned()),
        ..EvidenceSection::default()
    };
    check(layers(contact, &[], &[], ""), Config { evidence, ..Config::default() });
}

#[test]
fn an_invalid_evidence_url_is_refused() {
    check_variable(
        "MOOTHALL_EVIDENCE__DATA_URL",
        "data.sec.gov",
        "MOOTHALL_EVIDENCE__DATA_URL: `evidence.data_url` must start with `https://` or `http://`",
        "use a URL like \"https://host:port\"",
    );
}
