use std::path::{Path, PathBuf};

use super::super::sources::{ConfigFileCandidate, ConfigFileSource};
use super::super::{ConfigLayers, EnvVars, resolve};
use super::*;
use crate::app_dirs::AppDirs;

fn resolved(file: &str) -> Result<ResolvedConfig, ConfigError> {
    resolve(ConfigLayers {
        file: Some(("moothall.toml".into(), file.to_owned())),
        environment: [("MOOTHALL_LOG__LEVEL", "info")].into_iter().collect::<EnvVars>(),
        ..ConfigLayers::default()
    })
}

fn places() -> ConfigLocations {
    let candidate =
        |path: &str, by, exists| ConfigFileCandidate { path: PathBuf::from(path), by, exists };
    ConfigLocations {
        candidates: vec![
            candidate("moothall.toml", ConfigFileSource::WorkingFolder, false),
            candidate("/c/moothall.toml", ConfigFileSource::ConfigFolder, true),
        ],
        folders: AppDirs::under("/c".into(), Path::new("/d")),
    }
}

#[track_caller]
fn check_text(text: &str, expected: &str) {
    assert_eq!(text, expected.strip_prefix('\n').unwrap_or(expected));
}

#[test]
fn config_show_prints_every_value_with_its_origin() {
    check_text(
        &show(
            &resolved("[budget]\nusd = 2.5\n[provider.lab]\nbase_url = \"http://lab/v1\"\n")
                .unwrap(),
            false,
        ),
        r#"
# model is not set
# catalog is not set

[models]
# inference is not set
# analyst is not set
# critic is not set
# decision_maker is not set

[budget]
usd = "2.50"  # from moothall.toml:2
# tokens is not set

[retry]
retries = 3  # default
first_delay = "500ms"  # default
max_delay = "30s"  # default
outage_wait = "5m"  # default

[provider.lab]
base_url = "http://lab/v1"  # from moothall.toml:4

[isolation]
engine = "auto"  # default
# minimum is not set
allow_shared_kernel = false  # default
# memory_mib is not set
pool = 1  # default
on_failure = "fallback"  # default
build = true  # default

[consult]
ask_above_usd = "1.00"  # default

[evidence]
# contact is not set
data_url = "https://data.sec.gov"  # default
www_url = "https://www.sec.gov"  # default

[notify]
desktop = false  # default
# webhook is not set
# webhook_env is not set
webhook_format = "json"  # default
# webhook_secret_env is not set
events = []  # default
# server_url is not set
link_lifetime = "1day"  # default

[store]
# url is not set
connections = 8  # default

[log]
level = "info"  # from MOOTHALL_LOG__LEVEL
format = "pretty"  # default
"#,
    );
}

#[test]
fn show_prints_key_value_and_origin_as_json() {
    let json: Value =
        serde_json::from_str(&show(&resolved("model = \"a/b\"\n").unwrap(), true)).unwrap();
    let expected = json!([
        { "key": "model", "value": "a/b", "origin": { "from": "file", "path": "moothall.toml", "line": 1 } },
        { "key": "catalog", "value": null, "origin": { "from": "default" } },
        { "key": "models.inference", "value": null, "origin": { "from": "default" } },
        { "key": "models.analyst", "value": null, "origin": { "from": "default" } },
        { "key": "models.critic", "value": null, "origin": { "from": "default" } },
        { "key": "models.decision_maker", "value": null, "origin": { "from": "default" } },
        { "key": "budget.usd", "value": null, "origin": { "from": "default" } },
        { "key": "budget.tokens", "value": null, "origin": { "from": "default" } },
        { "key": "retry.retries", "value": 3, "origin": { "from": "default" } },
        { "key": "retry.first_delay", "value": "500ms", "origin": { "from": "default" } },
        { "key": "retry.max_delay", "value": "30s", "origin": { "from": "default" } },
        { "key": "retry.outage_wait", "value": "5m", "origin": { "from": "default" } },
        { "key": "isolation.engine", "value": "auto", "origin": { "from": "default" } },
        { "key": "isolation.minimum", "value": null, "origin": { "from": "default" } },
        { "key": "isolation.allow_shared_kernel", "value": false, "origin": { "from": "default" } },
        { "key": "isolation.memory_mib", "value": null, "origin": { "from": "default" } },
        { "key": "isolation.pool", "value": 1, "origin": { "from": "default" } },
        { "key": "isolation.on_failure", "value": "fallback", "origin": { "from": "default" } },
        { "key": "isolation.build", "value": true, "origin": { "from": "default" } },
        { "key": "consult.ask_above_usd", "value": "1.00", "origin": { "from": "default" } },
        { "key": "evidence.contact", "value": null, "origin": { "from": "default" } },
        { "key": "evidence.data_url", "value": "https://data.sec.gov", "origin": { "from": "default" } },
        { "key": "evidence.www_url", "value": "https://www.sec.gov", "origin": { "from": "default" } },
        { "key": "notify.desktop", "value": false, "origin": { "from": "default" } },
        { "key": "notify.webhook", "value": null, "origin": { "from": "default" } },
        { "key": "notify.webhook_env", "value": null, "origin": { "from": "default" } },
        { "key": "notify.webhook_format", "value": "json", "origin": { "from": "default" } },
        { "key": "notify.webhook_secret_env", "value": null, "origin": { "from": "default" } },
        { "key": "notify.events", "value": [], "origin": { "from": "default" } },
        { "key": "notify.server_url", "value": null, "origin": { "from": "default" } },
        { "key": "notify.link_lifetime", "value": "1day", "origin": { "from": "default" } },
        { "key": "store.url", "value": null, "origin": { "from": "default" } },
        { "key": "store.connections", "value": 8, "origin": { "from": "default" } },
        { "key": "log.level", "value": "info", "origin": { "from": "environment", "name": "MOOTHALL_LOG__LEVEL" } },
        { "key": "log.format", "value": "pretty", "origin": { "from": "default" } },
    ]);
    assert_eq!(json, expected);
}

#[test]
fn path_prints_every_candidate_and_folder() {
    check_text(
        &path(&places(), false),
        "
config  moothall.toml (does not exist)
config  /c/moothall.toml (used)
.env    /c/.env (does not exist)
keys    /c/keys.toml (does not exist)
data    /d
cache   /d/cache
state   /d/state
",
    );
}

#[test]
fn path_prints_every_candidate_and_folder_as_json() {
    let json: Value = serde_json::from_str(&path(&places(), true)).unwrap();
    let expected = json!({
        "config": [
            { "path": "moothall.toml", "by": "working-folder", "exists": false, "used": false },
            { "path": "/c/moothall.toml", "by": "config-folder", "exists": true, "used": true },
        ],
        "dotenv": "/c/.env",
        "keys": "/c/keys.toml",
        "data": "/d",
        "cache": "/d/cache",
        "state": "/d/state",
    });
    assert_eq!(json, expected);
}

#[test]
fn check_prints_ok_or_every_problem_with_its_hint() {
    check_text(&check(&resolved(""), false), "ok\n");
    check_text(
        &check(&resolved("modle = 1\nmodel = 5\n"), false),
        "
moothall.toml:1: unknown key `modle`
  hint: did you mean `model`?
moothall.toml:2: `model` expects a model or a list of models, not 5
",
    );
}

#[test]
fn check_prints_its_problems_as_json() {
    let json = |file| serde_json::from_str::<Value>(&check(&resolved(file), true)).unwrap();
    assert_eq!(json(""), json!({ "ok": true, "problems": [] }));
    assert_eq!(
        json("modle = 1"),
        json!({
            "ok": false,
            "problems": [{ "message": "moothall.toml:1: unknown key `modle`", "hint": "did you mean `model`?" }],
        })
    );
}

#[test]
fn other_commands_stop_at_the_first_problem_and_count_the_rest() {
    let rendered = |file| crate::error::CliError::from(resolved(file).unwrap_err()).render();
    check_text(
        &rendered("modle = 1"),
        "
error: moothall.toml:1: unknown key `modle`
hint: did you mean `model`?
",
    );
    check_text(
        &rendered("modle = 1\nmodel = 5\n"),
        "
error: moothall.toml:1: unknown key `modle`
hint: did you mean `model`?
hint: `moothall config check` shows 1 more problem
",
    );
}
