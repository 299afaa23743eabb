use super::*;

#[track_caller]
fn check<T>(text: &str, expected: Option<T>)
where
    T: for<'de> Deserialize<'de> + Serialize + PartialEq + std::fmt::Debug,
{
    let read = toml::from_str::<T>(text).ok();
    assert_eq!(read, expected, "{text}");
    if let Some(settings) = read {
        let written = toml::to_string(&settings).unwrap();
        assert_eq!(toml::from_str::<T>(&written).unwrap(), settings, "{written}");
    }
}

#[test]
fn an_empty_section_is_the_default() {
    check("", Some(ProviderSettings::default()));
    check(
        "",
        Some(RetrySettings {
            retries: 3,
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            outage_wait: Duration::from_secs(300),
        }),
    );
}

fn pair(name: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), value.to_owned())])
}

#[test]
fn every_provider_setting_is_read_and_written_back() {
    check(
        r#"
        base_url = "http://127.0.0.1:8080/v1"
        wire = "ollama-chat"
        key_env = "LAB_API_KEY"
        key_file = "lab.key"
        requests_per_minute = 60
        tokens_per_minute = 100000
        concurrent = 4
        timeout = "1m 30s"
        default_model = "tiny"
        context = 8192
        max_output = 2048
        price_input = "0.20"
        price_output = "0.80"
        resource = "acme"
        project = "acme-1"
        region = "eu-west-1"
        auth = "api-key"
        key_command = "op read a"
        key_command_shell = true
        key_command_timeout = "10s"
        ca_file = "ca.pem"
        proxy = "http://proxy.example:3128"
        headers = { x-team = "research" }
        header_env = { x-token = "TOKEN" }
        header_command = { x-other = "print" }
        query = { api-version = "1" }
        "#,
        Some(ProviderSettings {
            base_url: Some("http://127.0.0.1:8080/v1".to_owned()),
            wire: Some(WireFormat::OllamaChat),
            key_env: Some("LAB_API_KEY".to_owned()),
            key_file: Some("lab.key".into()),
            requests_per_minute: NonZeroU32::new(60),
            tokens_per_minute: NonZeroU32::new(100_000),
            concurrent: NonZeroU32::new(4),
            timeout: Some(Duration::from_secs(90)),
            default_model: Some("tiny".to_owned()),
            context: NonZeroU32::new(8192),
            max_output: NonZeroU32::new(2048),
            price_input: Some(MicroUsd::new(200_000)),
            price_output: Some(MicroUsd::new(800_000)),
            resource: Some("acme".to_owned()),
            project: Some("acme-1".to_owned()),
            region: Some("eu-west-1".to_owned()),
            auth: Some(AuthScheme::ApiKey),
            key_command: Some("op read a".to_owned()),
            key_command_shell: Some(true),
            key_command_timeout: Some(Duration::from_secs(10)),
            ca_file: Some("ca.pem".into()),
            proxy: Some("http://proxy.example:3128".to_owned()),
            headers: pair("x-team", "research"),
            header_env: pair("x-token", "TOKEN"),
            header_command: pair("x-other", "print"),
            query: pair("api-version", "1"),
        }),
    );
}

#[test]
fn each_wire_has_one_spelling() {
    for (text, wire) in [
        ("openai-chat", WireFormat::OpenAiChat),
        ("anthropic-messages", WireFormat::AnthropicMessages),
        ("ollama-chat", WireFormat::OllamaChat),
    ] {
        check(
            &format!("wire = \"{text}\""),
            Some(ProviderSettings { wire: Some(wire), ..ProviderSettings::default() }),
        );
    }
    check::<ProviderSettings>("wire = \"OpenAiChat\"", None);
}

#[test]
fn a_limit_of_zero_is_refused() {
    check::<ProviderSettings>("concurrent = 0", None);
    check::<ProviderSettings>("requests_per_minute = 0", None);
    check::<ProviderSettings>("tokens_per_minute = 0", None);
}

#[test]
fn an_unknown_setting_is_refused() {
    check::<ProviderSettings>("api_key = \"not here\"", None);
    check::<RetrySettings>("retry = 3", None);
}
