use std::path::{Path, PathBuf};

use moothall_models::{Catalog, RecordingMode, RecordingStore};
use toml::Table;

use super::{CommandContext, ConfigFlags};
use crate::app_dirs::AppDirs;
use crate::config::{
    ConfigFileCandidate, ConfigFileSource, ConfigLayers, ConfigLocations, EnvVars, LoadedConfig,
    resolve,
};
use crate::error::{CliError, CliExit};
use crate::keys::ApiKeyring;

/// Inputs of a context, without files and without the process environment.
#[derive(Default)]
struct Given<'a> {
    by: Option<ConfigFileSource>,
    file: &'a str,
    catalog: &'a str,
    dotenv: &'a [(&'a str, &'a str)],
    environment: &'a [(&'a str, &'a str)],
    flags: ConfigFlags,
}

fn context(given: Given<'_>) -> CommandContext {
    let environment: EnvVars = given.environment.iter().copied().collect();
    let dotenv: EnvVars = given.dotenv.iter().copied().collect();
    let path = PathBuf::from("moothall.toml");
    let resolved = resolve(ConfigLayers {
        file: Some((path.clone(), given.file.to_owned())),
        dotenv: dotenv.clone(),
        environment: environment.clone(),
        flags: given.flags.into_table(),
    })
    .unwrap();
    let by = given.by.unwrap_or(ConfigFileSource::ConfigFolder);
    let locations = ConfigLocations {
        candidates: vec![ConfigFileCandidate { path, by, exists: true }],
        folders: AppDirs::under("/config".into(), Path::new("/data")),
    };
    let mut catalog = Catalog::built_in().unwrap();
    catalog.add(given.catalog).unwrap();
    catalog.configure(&resolved.config.provider).unwrap();
    let loaded = LoadedConfig { locations, environment, dotenv, resolved };
    let keys = ApiKeyring::load(
        &loaded.environment,
        &loaded.dotenv,
        Path::new("/no/such/keys.toml"),
        &catalog,
        &loaded.resolved.config.provider,
        &super::untrusted_providers(&loaded),
    )
    .unwrap();
    CommandContext {
        loaded,
        catalog,
        keys,
        config_file: None,
        connections: moothall_models::ProviderConnections::default(),
        limiter: None,
        progress: crate::debate_image::ProgressNotice::default(),
        judges: None,
    }
}

#[track_caller]
fn check_model(given: Given<'_>, named: Option<&str>, expected: &str) {
    let named = named.map(|named| named.parse().unwrap());
    assert_eq!(context(given).model(named.as_ref()).unwrap().to_string(), expected);
}

#[track_caller]
fn check_usage<T: std::fmt::Debug>(result: Result<T, CliError>, words: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.exit, CliExit::Usage);
    let text = error.render();
    assert!(text.contains(words), "{text}");
}

const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "a-key");
const GROQ: (&str, &str) = ("GROQ_API_KEY", "b-key");
const ANTHROPIC: (&str, &str) = ("ANTHROPIC_API_KEY", "c-key");

#[test]
fn named_model_beats_the_configured_one_which_beats_the_keys() {
    let file = "model = \"openai/configured\"\n";
    let environment = &[GROQ][..];
    check_model(
        Given { file, environment, ..Given::default() },
        Some("ollama/named"),
        "ollama/named",
    );
    check_model(Given { file, environment, ..Given::default() }, None, "openai/configured");
    check_model(Given { environment, ..Given::default() }, None, "groq/openai/gpt-oss-20b");
}

#[test]
fn anthropic_is_the_default_if_several_keys_are_set() {
    let environment = &[OPENAI, ANTHROPIC, GROQ][..];
    check_model(Given { environment, ..Given::default() }, None, "anthropic/claude-haiku-5-5");
}

#[test]
fn several_keys_without_anthropic_require_a_choice() {
    let given = Given { environment: &[OPENAI, GROQ], ..Given::default() };
    check_usage(context(given).model(None), "there are API keys for groq, openai");
    check_usage(context(Given::default()).model(None), "`--model demo`");
}

#[test]
fn provider_of_the_users_own_answers_only_with_a_default_model() {
    let environment = &[("LAB_API_KEY", "a-key")][..];
    let file = "[provider.lab]\nbase_url = \"http://127.0.0.1:1\"\n";
    let given = Given { file, environment, ..Given::default() };
    check_usage(context(given).model(None), "`provider.lab.default_model`");
    let file = &format!("{file}default_model = \"small\"\n");
    check_model(Given { file, environment, ..Given::default() }, None, "lab/small");
}

#[track_caller]
fn check_gateway(given: Given<'_>, model: &str, expected: Result<(), &str>) {
    let result = context(given).gateway(&model.parse().unwrap(), RecordingMode::Off);
    match expected {
        Ok(()) => assert!(result.is_ok(), "{result:?}"),
        Err(words) => check_usage(result, words),
    }
}

#[test]
fn a_key_is_required_only_by_providers_that_need_one() {
    check_gateway(Given::default(), "openai/m", Err("no API key for openai"));
    check_gateway(Given::default(), "acme/m", Err("unknown provider `acme`"));
    check_gateway(Given::default(), "ollama/m", Ok(()));
    check_gateway(Given::default(), "demo", Ok(()));
    let file = "[provider.openai]\nbase_url = \"http://127.0.0.1:1\"\n";
    check_gateway(Given { file, ..Given::default() }, "openai/m", Ok(()));
    let replay = RecordingMode::Replay(RecordingStore::at("/kept"));
    assert!(context(Given::default()).gateway(&"openai/m".parse().unwrap(), replay).is_ok());
}

const STRAY: Result<(), &str> = Err("redirects your API key for openai: ");

#[test]
fn only_a_file_in_the_working_directory_is_not_trusted_with_keys() {
    let file = "[provider.openai]\nbase_url = \"https://collector.example/v1\"\n";
    for (by, expected) in [
        (ConfigFileSource::WorkingFolder, STRAY),
        (ConfigFileSource::Flag, Ok(())),
        (ConfigFileSource::Environment, Ok(())),
        (ConfigFileSource::ConfigFolder, Ok(())),
    ] {
        let environment = &[OPENAI][..];
        check_gateway(
            Given { by: Some(by), file, environment, ..Given::default() },
            "openai/m",
            expected,
        );
    }
}

#[test]
fn a_working_directory_cannot_redirect_an_api_key_in_any_way() {
    let by = Some(ConfigFileSource::WorkingFolder);
    let row = |address: &str, variable: &str| {
        format!(
            "[provider.openai]\nwire = \"openai-chat\"\nbase_url = \"{address}\"\nkey_env = [\"{variable}\"]\n"
        )
    };
    let usual = "https://api.openai.com/v1";
    let (moved, renamed, same) = (
        row("https://x.example", "OPENAI_API_KEY"),
        row(usual, "SECRET"),
        row(usual, "OPENAI_API_KEY"),
    );
    let with_catalog = "catalog = \"rows.toml\"\n";
    let secret = &[("SECRET", "a-secret")][..];
    let url = ("MOOTHALL_PROVIDER__OPENAI__BASE_URL", "https://x.example");
    for (file, catalog, dotenv, environment, expected) in [
        ("[provider.openai]\nkey_env = \"SECRET\"\n", "", &[][..], secret, STRAY),
        ("", "", &[url], &[OPENAI][..], STRAY),
        (with_catalog, &*moved, &[], &[OPENAI], STRAY),
        (with_catalog, &*renamed, &[], secret, STRAY),
        // The directory does not configure the key.
        (with_catalog, &*same, &[], &[OPENAI], Ok(())),
        ("[provider.openai]\ntimeout = \"1m\"\n", "", &[], &[OPENAI], Ok(())),
        // The key comes from the directory, or the URL from the user.
        ("", "", &[url, OPENAI], &[], Ok(())),
        ("", "", &[], &[url, OPENAI], Ok(())),
        (with_catalog, &*moved, &[], &[url, OPENAI], Ok(())),
    ] {
        let given = Given { by, file, catalog, dotenv, environment, ..Given::default() };
        check_gateway(given, "openai/m", expected);
    }
}

#[test]
fn a_working_directory_cannot_set_commands_or_connections_for_a_key() {
    let by = Some(ConfigFileSource::WorkingFolder);
    let openai = |lines: &str| format!("[provider.openai]\n{lines}\n");
    for lines in [
        "proxy = \"http://proxy.example:3128\"",
        "ca_file = \"ca.pem\"",
        "headers = { x-team = \"a\" }",
        "query = { api-version = \"1\" }",
        "region = \"eu\"",
    ] {
        let file = &*openai(lines);
        let given = |by, environment| Given { by, file, environment, ..Given::default() };
        check_gateway(given(by, &[OPENAI]), "openai/m", STRAY);
        check_gateway(given(None, &[OPENAI]), "openai/m", Ok(()));
    }
    // Refused even if no key would be sent.
    let base_url = "base_url = \"http://127.0.0.1:1\"\n";
    for (setting, lines) in [
        ("key_command", "key_command = \"touch /tmp/a\""),
        ("header_env", "header_env = { x-a = \"HOME\" }"),
        ("header_command", "header_command = { x-a = \"touch /tmp/a\" }"),
    ] {
        let file = &*openai(&format!("{base_url}{lines}"));
        let words = format!("sets `provider.openai.{setting}`");
        check_gateway(Given { by, file, ..Given::default() }, "openai/m", Err(&words));
        let environment = &[("HOME", "a")][..];
        check_gateway(Given { file, environment, ..Given::default() }, "openai/m", Ok(()));
    }
}

#[test]
fn a_provider_with_an_incomplete_address_cannot_be_called() {
    let environment = &[("AZURE_OPENAI_API_KEY", "a-key"), OPENAI][..];
    let given = Given { environment, ..Given::default() };
    check_gateway(given, "azure/m", Err("set `resource` in [provider.azure]"));
    // Its key does not select a model either.
    check_model(Given { environment, ..Given::default() }, None, "openai/gpt-6-luna");
    let file = "[provider.azure]\nresource = \"acme\"\n";
    check_gateway(Given { file, environment, ..Given::default() }, "azure/m", Ok(()));
    let none = Given { file, ..Given::default() };
    check_gateway(none, "azure/m", Err("no API key for azure"));
}

#[test]
fn a_working_directory_cannot_choose_the_server_that_reviews_drafts() {
    let moved = "[provider.ollama]\nbase_url = \"http://127.0.0.1:1\"\n";
    let model = "ollama/m".parse().unwrap();
    let asked = |file, by| {
        context(Given { by: Some(by), file, ..Given::default() }).refuse_untrusted_provider(&model)
    };
    check_usage(asked(moved, ConfigFileSource::WorkingFolder), "sets the server for `ollama/m`");
    assert!(asked(moved, ConfigFileSource::ConfigFolder).is_ok());
    assert!(asked("[budget]\ntokens = 7\n", ConfigFileSource::WorkingFolder).is_ok());
}

#[test]
fn a_base_url_given_as_a_flag_is_trusted() {
    let mut flags = ConfigFlags::default();
    let model = "openai/m".parse().unwrap();
    flags.set_base_url(Some(&model), "--model", "https://mine.example/v1").unwrap();
    let file = "[provider.openai]\nbase_url = \"https://collector.example/v1\"\n";
    let by = Some(ConfigFileSource::WorkingFolder);
    let context = context(Given { by, file, environment: &[OPENAI], flags, ..Given::default() });
    assert!(context.gateway(&model, RecordingMode::Off).is_ok());
    assert_eq!(context.catalog.provider("openai").unwrap().base_url, "https://mine.example/v1");
}

#[test]
fn flags_are_converted_to_configuration_tables() {
    let mut flags = ConfigFlags::default();
    flags.set(&["budget", "usd"], "1.00");
    flags.set(&["budget", "tokens"], 7);
    flags.set(&["model"], "first");
    flags.set(&["model"], "second");
    flags.set(&[], "nowhere");
    let expected: Table =
        toml::from_str("model = \"second\"\n[budget]\nusd = \"1.00\"\ntokens = 7\n").unwrap();
    assert_eq!(flags.into_table(), expected);
}

#[test]
fn a_base_url_flag_needs_a_model_that_calls_a_server() {
    let mut flags = ConfigFlags::default();
    check_usage(
        flags.set_base_url(None, "--check", "http://127.0.0.1:1"),
        "requires a model in `--check`",
    );
    let demo = "demo".parse().unwrap();
    check_usage(
        flags.set_base_url(Some(&demo), "--model", "http://127.0.0.1:1"),
        "the `demo` model, which calls no server",
    );
    assert_eq!(flags.into_table(), Table::new());
}
