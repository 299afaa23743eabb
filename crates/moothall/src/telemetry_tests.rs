use std::collections::BTreeMap;

use super::*;

fn read(flag: Option<&str>, variables: &[(&str, &str)]) -> Result<Option<OtlpSettings>, CliError> {
    let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
    settings(flag, &|name: &str| variables.get(name).map(|value| (*value).to_owned()))
}

#[test]
fn the_collector_comes_from_the_flag_or_the_environment() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318/");
    let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces/intake");
    let off = ("OTEL_SDK_DISABLED", "TRUE");
    let none = ("OTEL_TRACES_EXPORTER", "none");
    for (flag, variables, expected) in [
        (None, vec![], None),
        (Some("http://flag:1"), vec![endpoint, traces, off], Some("http://flag:1/v1/traces")),
        (None, vec![endpoint], Some("http://all:4318/v1/traces")),
        (None, vec![endpoint, traces], Some("https://traces/intake")),
        (None, vec![endpoint, off], None),
        (None, vec![endpoint, none], None),
        (None, vec![("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], None),
    ] {
        let url = read(flag, &variables).unwrap().map(|settings| settings.url);
        assert_eq!(url.as_deref(), expected, "{flag:?} {variables:?}");
    }
}

#[test]
fn invalid_settings_are_refused_without_showing_credentials() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318");
    for (flag, variables) in [
        (Some("localhost:4318"), vec![]),
        (None, vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "file:///etc/passwd")]),
        (None, vec![endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]),
        (None, vec![endpoint, ("OTEL_EXPORTER_OTLP_HEADERS", "a b=hidden")]),
        (None, vec![endpoint, ("OTEL_EXPORTER_OTLP_HEADERS", "key=hidden%0a")]),
    ] {
        let error = read(flag, &variables).unwrap_err();
        assert!(error.hint.is_some(), "{error}");
        assert!(!error.render().contains("hidden"), "{}", error.render());
    }
}

#[test]
fn headers_and_attributes_are_read_as_the_standard_says() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc, x-team = one"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=ignored,deployment.environment.name=a%2Cb%"),
        ("OTEL_SERVICE_NAME", "checks"),
    ];
    let settings = read(None, &variables).unwrap().unwrap();
    assert_eq!(settings.headers["authorization"], "Bearer abc");
    assert_eq!(settings.headers["x-team"], "one");
    assert_eq!(settings.protocol, OtlpProtocol::Json);
    assert_eq!(settings.timeout, Duration::from_millis(250));
    let get = |key: &str| {
        let found = settings.resource.iter().filter(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(get("service.name"), ["checks"]);
    assert_eq!(get("deployment.environment.name"), ["a,b%"]);
    assert_eq!(get("service.version"), [env!("CARGO_PKG_VERSION")]);
    assert!(!format!("{settings:?}").contains("abc"));
}
