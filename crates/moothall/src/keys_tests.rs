use std::os::unix::fs::PermissionsExt as _;

use super::*;

struct Desk {
    folder: tempfile::TempDir,
    environment: EnvVars,
    dotenv: EnvVars,
    providers: BTreeMap<String, ProviderSettings>,
    untrusted: BTreeSet<String>,
}

impl Desk {
    fn new(environment: &[(&str, &str)], dotenv: &[(&str, &str)]) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            environment: environment.iter().copied().collect(),
            dotenv: dotenv.iter().copied().collect(),
            providers: BTreeMap::new(),
            untrusted: BTreeSet::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(self, name: &str, mode: u32, text: &str) -> Self {
        fs_err::write(self.path(name), text).unwrap();
        fs_err::set_permissions(self.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    fn provider(mut self, name: &str, settings: ProviderSettings) -> Self {
        self.providers.insert(name.to_owned(), settings);
        self
    }

    fn load(&self) -> Result<ApiKeyring, CliError> {
        let mut catalog = Catalog::built_in().unwrap();
        catalog.configure(&self.providers).unwrap();
        let keys_file = self.path("keys.toml");
        ApiKeyring::load(
            &self.environment,
            &self.dotenv,
            &keys_file,
            &catalog,
            &self.providers,
            &self.untrusted,
        )
    }
}

/// Compares the keys of all providers as `(provider, key, source)`.
#[track_caller]
fn check(desk: &Desk, expected: &[(&str, &str, KeySource)]) {
    let keyring = desk.load().unwrap();
    let found: Vec<_> = keyring
        .providers()
        .map(|name| {
            (name, fetch(keyring.get(name).unwrap()), keyring.source(name).unwrap().clone())
        })
        .collect();
    let expected_keys: Vec<_> = expected
        .iter()
        .map(|(name, key, source)| (*name, (*key).to_owned(), source.clone()))
        .collect();
    assert_eq!(found, expected_keys);
    let debug = format!("{keyring:?}");
    for (_, key, _) in expected {
        assert!(!debug.contains(key), "{debug}");
    }
}

fn fetch(supply: &KeySupply) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(supply.get()).unwrap().expose().to_owned()
}

#[track_caller]
fn check_error(desk: &Desk, expected: &str) {
    let error = desk.load().unwrap_err();
    let rendered = error.render().replace(desk.folder.path().to_str().unwrap(), "~");
    assert_eq!(rendered, expected.strip_prefix('\n').unwrap());
    assert_eq!(error.exit, crate::error::CliExit::Usage);
    assert!(!format!("{error:?}").contains("sk-"), "{error:?}");
}

/// A custom provider.
fn lab() -> ProviderSettings {
    ProviderSettings {
        base_url: Some("http://127.0.0.1:8080/v1".to_owned()),
        ..ProviderSettings::default()
    }
}

fn environment(name: &str) -> KeySource {
    KeySource::Environment(name.to_owned())
}

fn dotenv(name: &str) -> KeySource {
    KeySource::DotEnv(name.to_owned())
}

#[test]
fn each_provider_has_its_usual_variable() {
    check(
        &Desk::new(
            &[
                ("ANTHROPIC_API_KEY", "sk-a"),
                ("OPENAI_API_KEY", "sk-o"),
                ("GOOGLE_API_KEY", "sk-g"),
                ("GROQ_API_KEY", "sk-q"),
                ("OPENROUTER_API_KEY", "sk-r"),
                ("OTHER_API_KEY", "sk-x"),
            ],
            &[],
        ),
        &[
            ("anthropic", "sk-a", environment("ANTHROPIC_API_KEY")),
            ("google", "sk-g", environment("GOOGLE_API_KEY")),
            ("groq", "sk-q", environment("GROQ_API_KEY")),
            ("openai", "sk-o", environment("OPENAI_API_KEY")),
            ("openrouter", "sk-r", environment("OPENROUTER_API_KEY")),
        ],
    );
}

#[test]
fn the_first_of_two_variables_of_one_provider_counts() {
    let both = [("GOOGLE_API_KEY", "sk-1"), ("GEMINI_API_KEY", "sk-2")];
    check(&Desk::new(&both, &[]), &[("google", "sk-2", environment("GEMINI_API_KEY"))]);
    check(&Desk::new(&both[..1], &both[1..]), &[("google", "sk-1", environment("GOOGLE_API_KEY"))]);
}

#[test]
fn environment_beats_dotenv_beats_key_file_beats_keys_file() {
    let settings = |desk: &Desk| ProviderSettings {
        key_file: Some(desk.path("groq.key")),
        ..ProviderSettings::default()
    };
    let desk = |environment: &[(&str, &str)], dotenv: &[(&str, &str)]| {
        let desk = Desk::new(environment, dotenv).file("keys.toml", 0o600, "groq = \"sk-4\"\n");
        let settings = settings(&desk);
        desk.provider("groq", settings)
    };
    let variable = |key| [("GROQ_API_KEY", key)];
    check(
        &desk(&variable("sk-1"), &variable("sk-2")),
        &[("groq", "sk-1", environment("GROQ_API_KEY"))],
    );
    check(&desk(&[], &variable("sk-2")), &[("groq", "sk-2", dotenv("GROQ_API_KEY"))]);
    let with_key_file = desk(&[], &[]).file("groq.key", 0o600, "sk-3\n");
    check(&with_key_file, &[("groq", "sk-3", KeySource::KeyFile(with_key_file.path("groq.key")))]);
    let without = desk(&[], &[]);
    check(&without, &[("groq", "sk-4", KeySource::KeyFile(without.path("keys.toml")))]);
}

#[test]
fn a_new_provider_has_a_variable_after_its_name_unless_it_names_one() {
    let named = ProviderSettings {
        key_env: Some("SECRET_OF_LAB".to_owned()),
        ..ProviderSettings::default()
    };
    let variables =
        [("MY_LAB_API_KEY", "sk-1"), ("SECRET_OF_LAB", "sk-2"), ("OPENAI_API_KEY", "sk-3")];
    check(
        &Desk::new(&variables[..2], &[]).provider("my-lab", lab()),
        &[("my-lab", "sk-1", environment("MY_LAB_API_KEY"))],
    );
    check(
        &Desk::new(&variables, &[]).provider("openai", named),
        &[("openai", "sk-2", environment("SECRET_OF_LAB"))],
    );
}

#[test]
fn white_space_around_an_api_key_is_trimmed_and_empty_keys_ignored() {
    check(
        &Desk::new(
            &[("OPENAI_API_KEY", " \n"), ("GROQ_API_KEY", " sk-1\r\n")],
            &[("OPENAI_API_KEY", "sk-2")],
        )
        .file("keys.toml", 0o400, "anthropic = \"\"\n"),
        &[
            ("groq", "sk-1", environment("GROQ_API_KEY")),
            ("openai", "sk-2", dotenv("OPENAI_API_KEY")),
        ],
    );
}

#[test]
fn an_invalid_api_key_is_refused_and_not_quoted() {
    for key in ["sk-1\nsk-2", "sk-\u{e9}", "sk-\u{1b}", "Bearer sk-1", "sk-\u{fffd}"] {
        let rest = "contains a space, a control character or a non-ASCII character\nhint: copy the key again, without surrounding text\n";
        check_error(
            &Desk::new(&[("OPENAI_API_KEY", key)], &[]),
            &format!("\nerror: the API key in `OPENAI_API_KEY` {rest}"),
        );
        check_error(
            &Desk::new(&[], &[("OPENAI_API_KEY", key)]),
            &format!("\nerror: the API key in `OPENAI_API_KEY` in the `.env` file {rest}"),
        );
    }
}

#[test]
fn a_keys_file_that_others_can_open_is_refused() {
    for mode in [0o640, 0o604, 0o644, 0o620, 0o602, 0o610] {
        check_error(
            &Desk::new(&[], &[]).file("keys.toml", mode, "openai = \"sk-1\"\n"),
            "
error: ~/keys.toml contains API keys and is accessible to other users
hint: run `chmod 600 ~/keys.toml`
",
        );
    }
}

#[test]
fn a_keys_file_of_another_user_is_refused() {
    let rendered = |owner| {
        keys_file::check_private(Path::new("keys.toml"), owner, 0o100_600, 1000)
            .map_err(|error| error.render())
    };
    assert_eq!(rendered(1000), Ok(()));
    let expected = "error: keys.toml contains API keys and belongs to another user\nhint: create your own copy, and run `chmod 600` on it\n";
    assert_eq!(rendered(1001), Err(expected.to_owned()));
    assert_eq!(rendered(0), Err(expected.to_owned()));
}

#[test]
fn a_keys_file_must_be_a_regular_file() {
    let desk = Desk::new(&[], &[]);
    fs_err::create_dir_all(desk.path("keys.toml")).unwrap();
    let hint = "hint: use a plain text file that contains only API keys\n";
    check_error(&desk, &format!("\nerror: ~/keys.toml is not a regular file\n{hint}"));
}

#[test]
fn an_invalid_keys_file_is_reported_without_its_text() {
    let hint = "hint: put the key in double quotes\n";
    for (text, place) in [
        ("# mine\nopenai = sk-1\n", "~/keys.toml:2"),
        ("openai = \"sk-1", "~/keys.toml:1"),
        ("openai = \"sk-1\"\nopenai = \"sk-2\"", "~/keys.toml:2"),
        ("[openai]\napi_key = \"sk-1\"", "`openai` in ~/keys.toml"),
    ] {
        let desk = Desk::new(&[], &[]).file("keys.toml", 0o600, text);
        check_error(&desk, &format!("\nerror: {place}: expected `provider = \"key\"`\n{hint}"));
    }
}

#[test]
fn a_provider_without_a_key_has_a_hint_how_to_set_one() {
    let lab = ProviderSettings { key_file: Some("lab.key".into()), ..lab() };
    let desk = Desk::new(&[], &[]).provider("lab", lab);
    let keyring = desk.load().unwrap();
    let hints = ["google", "lab", "nobody"].map(|provider| keyring.hint(provider));
    assert_eq!(
        hints,
        [
            Some("run `moothall key set google`, or set `GEMINI_API_KEY`"),
            Some("run `moothall key set lab`, or set `LAB_API_KEY`, or put the key in lab.key"),
            None
        ]
    );
}

fn printing(key: &str) -> ProviderSettings {
    // The command does not contain the key, so that a leak is noticed.
    let command = format!("printf {}%s {}", &key[..3], &key[3..]);
    ProviderSettings { key_command: Some(command), ..ProviderSettings::default() }
}

#[test]
fn a_key_command_comes_after_variables_and_before_files() {
    let keys_file = "groq = \"sk-file\"\nopenai = \"sk-file\"\n";
    let desk = Desk::new(&[("OPENAI_API_KEY", "sk-variable")], &[])
        .file("keys.toml", 0o600, keys_file)
        .provider("groq", printing("sk-command"))
        .provider("openai", printing("sk-command"));
    check(
        &desk,
        &[
            ("groq", "sk-command", KeySource::Command),
            ("openai", "sk-variable", environment("OPENAI_API_KEY")),
        ],
    );
}

#[test]
fn a_command_of_an_untrusted_provider_is_never_started() {
    let proof = tempfile::tempdir().unwrap();
    let touched = proof.path().join("touched");
    let command = format!("touch {}", touched.display());
    let settings = ProviderSettings {
        key_command: Some(command.clone()),
        header_command: BTreeMap::from([("x-token".to_owned(), command)]),
        header_env: BTreeMap::from([("x-other".to_owned(), "SECRET".to_owned())]),
        ..ProviderSettings::default()
    };
    let mut desk = Desk::new(&[("SECRET", "a-secret")], &[]).provider("groq", settings);
    desk.untrusted.insert("groq".to_owned());
    let keyring = desk.load().unwrap();
    let secrets = keyring.secrets("groq");
    assert!(secrets.key.is_none() && secrets.headers.is_empty(), "{secrets:?}");
    assert!(!touched.exists());
}

#[test]
fn secret_headers_come_from_variables_and_commands() {
    let settings = ProviderSettings {
        header_env: BTreeMap::from([("x-token".to_owned(), "GATEWAY_TOKEN".to_owned())]),
        header_command: BTreeMap::from([("x-other".to_owned(), "echo printed".to_owned())]),
        ..lab()
    };
    let desk = Desk::new(&[("GATEWAY_TOKEN", "t-1")], &[]).provider("lab", settings.clone());
    let keyring = desk.load().unwrap();
    let headers: Vec<_> = keyring
        .secrets("lab")
        .headers
        .iter()
        .map(|(name, supply)| (name.clone(), fetch(supply)))
        .collect();
    let expected = [("x-other", "printed"), ("x-token", "t-1")];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(keyring.problem("lab"), None);
    let without = Desk::new(&[], &[]).provider("lab", settings).load().unwrap();
    assert_eq!(
        without.problem("lab"),
        Some("`GATEWAY_TOKEN` is not set, which the header `x-token` of lab needs")
    );
}

#[test]
fn general_aws_credentials_come_last_and_select_no_model() {
    let variables = [
        ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
        ("AWS_SESSION_TOKEN", "t"),
    ];
    let key = "AKIAIOSFODNN7EXAMPLE:s:t";
    let desk = Desk::new(&variables, &[]);
    let aws = || KeySource::AwsVariables;
    check(&desk, &[("bedrock", key, aws()), ("bedrock-claude", key, aws())]);
    assert_eq!(desk.load().unwrap().selecting_providers().count(), 0);
    let stored = Desk::new(&variables, &[]).file("keys.toml", 0o600, "bedrock = \"ABSK1\"\n");
    let keys_file = KeySource::KeyFile(stored.path("keys.toml"));
    check(&stored, &[("bedrock", "ABSK1", keys_file), ("bedrock-claude", key, aws())]);
    // Half of them is nothing.
    check(&Desk::new(&variables[..1], &[]), &[]);
}

#[test]
fn storing_a_key_changes_only_its_line() {
    let desk = Desk::new(&[], &[]).file("keys.toml", 0o600, "# mine\ngroq = \"sk-1\"\n");
    let path = desk.path("keys.toml");
    let key = ApiKey::new("sk-2".to_owned());
    let store = |provider: &str| {
        store_key(&EnvVars::default(), &path, provider, &key, KeyStorageChoice::Automatic).unwrap()
    };
    // Without a session bus the keychain is missing.
    assert_eq!(store("openai"), (KeyStorage::File, None));
    store("groq");
    let text = fs_err::read_to_string(&path).unwrap();
    assert_eq!(text, "# mine\ngroq = \"sk-2\"\nopenai = \"sk-2\"\n");
    let mode = fs_err::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(remove_key(&path, "groq").unwrap(), Some(KeyStorage::File));
    assert_eq!(remove_key(&path, "groq").unwrap(), None);
    assert_eq!(fs_err::read_to_string(&path).unwrap(), "openai = \"sk-2\"\n");
}

#[test]
fn the_first_stored_key_creates_a_private_file() {
    let desk = Desk::new(&[], &[]);
    let path = desk.path("new/keys.toml");
    let key = ApiKey::new("sk-\"1\\".to_owned());
    store_key(&EnvVars::default(), &path, "groq", &key, KeyStorageChoice::File).unwrap();
    let mode = fs_err::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let stored = read_keys_file(&path).unwrap();
    assert!(matches!(&stored["groq"], StoredKey::Text(key) if key.expose() == "sk-\"1\\"));
}

#[test]
fn a_key_in_the_keychain_is_marked_in_the_file() {
    let desk = Desk::new(&[], &[]).file("keys.toml", 0o600, "openai = { keychain = true }\n");
    let keyring = desk.load().unwrap();
    assert_eq!(keyring.source("openai"), Some(&KeySource::Keychain));
    assert!(keyring.get("openai").is_some());
    write_keys_file(&desk.path("keys.toml"), "groq", Some(&StoredKey::Keychain)).unwrap();
    assert_eq!(desk.load().unwrap().source("groq"), Some(&KeySource::Keychain));
    check_error(
        &Desk::new(&[], &[]).file("keys.toml", 0o600, "openai = { keychain = false }\n"),
        "
error: `openai` in ~/keys.toml: expected `provider = \"key\"`
hint: put the key in double quotes
",
    );
}
