use moothall_core::MicroUsd;
use moothall_core::model::{ModelRequest, TokenUsage};
use proptest::prelude::*;

use super::*;

fn built_in() -> Catalog {
    Catalog::built_in().unwrap()
}

fn card(catalog: &Catalog, model: &str) -> ModelCard {
    catalog.card(&model.parse().unwrap())
}

fn with_rows(rows: &str) -> Catalog {
    let mut catalog = built_in();
    catalog.add(rows).unwrap();
    catalog
}

fn configured(name: &str, settings: ProviderSettings) -> Result<Catalog, CatalogError> {
    let mut catalog = built_in();
    catalog.configure(&BTreeMap::from([(name.to_owned(), settings)]))?;
    Ok(catalog)
}

#[test]
fn the_built_in_table_lists_the_providers_and_its_date() {
    let catalog = built_in();
    let names: Vec<_> = catalog.providers().map(|provider| provider.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "anthropic",
            "azure",
            "bedrock",
            "bedrock-claude",
            "google",
            "groq",
            "lmstudio",
            "mistral",
            "ollama",
            "openai",
            "openrouter",
            "vertex",
            "vllm"
        ]
    );
    assert_eq!(catalog.dated().len(), "2026-11-15".len());
}

#[test]
fn every_default_model_is_listed_with_its_limits_and_its_price() {
    let catalog = built_in();
    for provider in catalog.providers() {
        let Some(default_model) = &provider.default_model else {
            // The user's own servers and deployments have names that only the user knows.
            assert!(provider.free || provider.has_deployments(), "{}", provider.name);
            continue;
        };
        let model = format!("{}/{default_model}", provider.name);
        let card = card(&catalog, &model);
        assert!(card.listed && card.context.is_some() && card.max_output.is_some(), "{model}");
        assert_eq!(card.prices.unwrap().is_free(), provider.free, "{model}");
    }
}

#[test]
fn every_listed_model_has_consistent_limits_and_prices() {
    let catalog = built_in();
    for name in catalog.models.keys() {
        let card = card(&catalog, name);
        let provider = catalog.provider(card.model.provider()).unwrap();
        assert!(card.context.unwrap() >= u64::from(card.max_output.unwrap()), "{name}");
        let prices = card.prices.unwrap();
        assert_eq!(prices.is_free(), provider.free, "{name}");
        // Cached tokens never cost more than uncached ones, and long prompts never less than short
        // ones.
        let above = prices.above.map_or(prices.base, |(_, above)| above);
        for price in [prices.base, above] {
            assert!(price.cache_read.unwrap_or_default() <= price.input, "{name}");
        }
        assert!(above.input >= prices.base.input && above.output >= prices.base.output, "{name}");
    }
}

#[test]
fn listing_a_provider_returns_only_its_own_models() {
    let models: Vec<_> =
        built_in().models_of("groq").iter().map(|card| card.model.to_string()).collect();
    assert_eq!(
        models,
        ["groq/llama-3.3-70b-versatile", "groq/openai/gpt-oss-120b", "groq/openai/gpt-oss-20b"]
    );
    assert_eq!(built_in().models_of("nobody"), []);
}

#[test]
fn an_unlisted_model_gets_careful_assumptions_and_no_price() {
    let expected = ModelCard {
        model: "openai/gpt-99".parse().unwrap(),
        context: None,
        max_output: None,
        temperature: true,
        effort: false,
        structured: true,
        cache_minimum: None,
        prices: None,
        listed: false,
    };
    assert_eq!(card(&built_in(), "openai/gpt-99"), expected);
    assert_eq!(card(&built_in(), "nobody/gpt-99").prices, None);
}

#[test]
fn an_unlisted_model_on_the_users_own_machine_is_free() {
    let card = card(&built_in(), "ollama/some-model:1b");
    assert_eq!((card.listed, card.prices), (false, Some(ModelPrices::free())));
}

#[test]
fn the_demo_model_supports_everything_and_is_free() {
    let card = card(&built_in(), "demo");
    assert!(card.listed && card.structured && card.effort && card.temperature);
    assert!(card.prices.unwrap().is_free());
}

#[test]
fn user_catalog_rows_replace_rows_of_the_same_name_only() {
    let catalog = with_rows(
        r#"
        dated = "2027-01-01"
        [model."openai/gpt-5-mini"]
        context = 1000
        price = { input = 1, output = 2.5 }
        "#,
    );
    let replaced = card(&catalog, "openai/gpt-5-mini");
    let price = TokenPrice {
        input: MicroUsd::new(1_000_000),
        output: MicroUsd::new(2_500_000),
        ..TokenPrice::default()
    };
    let expected = ModelCard {
        model: "openai/gpt-5-mini".parse().unwrap(),
        context: Some(1000),
        prices: Some(ModelPrices { base: price, above: None }),
        listed: true,
        ..card(&built_in(), "openai/gpt-99")
    };
    assert_eq!(replaced, expected);
    assert_eq!(catalog.dated(), "2027-01-01");
    assert_eq!(card(&catalog, "openai/gpt-4.1-mini"), card(&built_in(), "openai/gpt-4.1-mini"));
}

#[test]
fn rows_of_the_user_may_add_a_provider() {
    let catalog = with_rows(
        r#"
        [provider.lab]
        wire = "openai-chat"
        base_url = "https://lab.example/v1/"
        concurrent = 3
        timeout_seconds = 5
        "#,
    );
    let expected = ModelProvider {
        name: "lab".to_owned(),
        wire: WireFormat::OpenAiChat,
        // Without the trailing slash, because paths start with one.
        base_url: "https://lab.example/v1".to_owned(),
        missing: None,
        region: None,
        auth: AuthScheme::Bearer,
        key_test_path: None,
        connection: ConnectionOptions::default(),
        own_address: false,
        key_env: Vec::new(),
        default_model: None,
        free: false,
        schema: SchemaForm::Full,
        max_tokens_field: "max_tokens".to_owned(),
        cache_control_in_parts: false,
        stream_options: true,
        limits: ProviderLimits {
            requests_per_minute: None,
            tokens_per_minute: None,
            concurrent: NonZeroU32::new(3).unwrap(),
        },
        timeout: Duration::from_secs(5),
        stated: StatedModel::default(),
        template: AddressTemplate::new("lab", "https://lab.example/v1/", None).unwrap(),
    };
    assert_eq!(catalog.provider("lab"), Some(&expected));
}

#[track_caller]
fn check_bad_rows(rows: &str, expected: &str) {
    let error = built_in().add(rows).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn invalid_catalog_rows_are_refused() {
    check_bad_rows("[model", "cannot read the catalog");
    check_bad_rows("[modell.\"a/b\"]", "unknown field `modell`");
    check_bad_rows("[model.\"a/b\"]\nprize = 1", "unknown field `prize`");
    check_bad_rows("[model.\"a/b\"]\nprice = { input = 1 }", "missing field `output`");
    check_bad_rows(
        "[model.\"a/b\"]\nprice = { input = -1, output = 1 }",
        "cannot read the catalog",
    );
    check_bad_rows(
        "[model.\"a/b\"]\nprice = { input = 1, output = 1, cache_raed = 1 }",
        "unknown field `cache_raed`",
    );
    check_bad_rows(
        "[model.\"a/b\"]\nprice_above = { prompt_tokens = 1, input = 1, output = 1, cache_raed = 1 }",
        "unknown field `cache_raed`",
    );
    check_bad_rows("[model.gpt]", "`gpt` is not a model name; expected provider/name");
    check_bad_rows(
        "[provider.lab]\nwire = \"openai-chat\"\nbase_url = \"https://lab.example\"\nconcurrent = 0",
        "provider `lab` allows no concurrent calls",
    );
    check_bad_rows(
        "[provider.lab]\nwire = \"openai-chat\"\nbase_url = \"lab.example\"",
        "invalid `base_url` of provider `lab`: not a URL",
    );
}

#[test]
fn provider_settings_replace_only_the_values_they_set() {
    let settings = ProviderSettings {
        key_env: Some("MY_KEY".to_owned()),
        requests_per_minute: NonZeroU32::new(60),
        tokens_per_minute: NonZeroU32::new(1000),
        concurrent: NonZeroU32::new(2),
        timeout: Some(Duration::from_secs(9)),
        default_model: Some("gpt-5-mini".to_owned()),
        ..ProviderSettings::default()
    };
    let catalog = configured("openai", settings).unwrap();
    let expected = ModelProvider {
        key_env: vec!["MY_KEY".to_owned()],
        default_model: Some("gpt-5-mini".to_owned()),
        limits: ProviderLimits {
            requests_per_minute: NonZeroU32::new(60),
            tokens_per_minute: NonZeroU32::new(1000),
            concurrent: NonZeroU32::new(2).unwrap(),
        },
        timeout: Duration::from_secs(9),
        ..built_in().provider("openai").unwrap().clone()
    };
    assert_eq!(catalog.provider("openai"), Some(&expected));
    assert!(expected.needs_key());
    let unchanged = configured("openai", ProviderSettings::default()).unwrap();
    assert_eq!(unchanged.provider("openai"), built_in().provider("openai"));
}

#[test]
fn a_provider_can_be_fully_configured_without_a_catalog_file() {
    let settings = ProviderSettings {
        base_url: Some("http://127.0.0.1:1/v1".to_owned()),
        context: NonZeroU32::new(8192),
        max_output: NonZeroU32::new(2048),
        price_input: Some(MicroUsd::new(200_000)),
        price_output: Some(MicroUsd::new(800_000)),
        ..ProviderSettings::default()
    };
    let card = configured("lab", settings.clone()).unwrap().card(&"lab/tiny".parse().unwrap());
    let price = TokenPrice {
        input: MicroUsd::new(200_000),
        output: MicroUsd::new(800_000),
        ..TokenPrice::default()
    };
    assert_eq!((card.context, card.max_output), (Some(8192), Some(2048)));
    assert_eq!(card.prices, Some(ModelPrices::new(price, None)));
    let half = ProviderSettings { price_output: None, ..settings };
    let error = configured("lab", half).unwrap_err();
    assert_eq!(
        error.to_string(),
        "provider `lab` has only one of `price_input` and `price_output`"
    );
}

#[test]
fn an_own_server_on_this_machine_is_free_unless_a_price_is_stated() {
    let at = |base_url: &str| ProviderSettings {
        base_url: Some(base_url.to_owned()),
        ..ProviderSettings::default()
    };
    let prices = |name: &str, settings| {
        let model = format!("{name}/tiny").parse().unwrap();
        configured(name, settings).unwrap().card(&model).prices
    };
    for here in ["http://127.0.0.1:8080/v1", "http://localhost:8080/v1", "http://[::1]:1"] {
        assert_eq!(prices("lab", at(here)), Some(ModelPrices::free()), "{here}");
    }
    assert_eq!(prices("lab", at("http://192.168.0.2:8080/v1")), None);
    // The name of a paid provider: the server may be a proxy for it.
    assert_eq!(prices("openai", at("http://127.0.0.1:8080/v1")), None);
    let price = TokenPrice {
        input: MicroUsd::new(200_000),
        output: MicroUsd::new(800_000),
        ..TokenPrice::default()
    };
    let stated = ProviderSettings {
        price_input: Some(price.input),
        price_output: Some(price.output),
        ..at("http://127.0.0.1:8080/v1")
    };
    assert_eq!(prices("lab", stated), Some(ModelPrices::new(price, None)));
    let row = "[model.\"lab/tiny\"]\nprice = { input = \"0.20\", output = \"0.80\" }\n";
    let mut catalog = with_rows(row);
    let settings = BTreeMap::from([("lab".to_owned(), at("http://127.0.0.1:8080/v1"))]);
    catalog.configure(&settings).unwrap();
    assert_eq!(card(&catalog, "lab/tiny").prices, Some(ModelPrices::new(price, None)));
}

#[test]
fn a_built_in_provider_at_a_custom_url_needs_no_key() {
    let settings = ProviderSettings {
        base_url: Some("http://127.0.0.1:8080/v1/".to_owned()),
        ..ProviderSettings::default()
    };
    let catalog = configured("openai", settings).unwrap();
    let expected = ModelProvider {
        base_url: "http://127.0.0.1:8080/v1".to_owned(),
        own_address: true,
        schema: SchemaForm::Full,
        ..built_in().provider("openai").unwrap().clone()
    };
    assert_eq!(catalog.provider("openai"), Some(&expected));
    assert!(!expected.needs_key());
}

#[test]
fn a_new_provider_needs_only_an_address() {
    let settings = ProviderSettings {
        base_url: Some("https://lab.example/v1".to_owned()),
        ..ProviderSettings::default()
    };
    let catalog = configured("lab", settings).unwrap();
    let expected = ModelProvider {
        name: "lab".to_owned(),
        wire: WireFormat::OpenAiChat,
        base_url: "https://lab.example/v1".to_owned(),
        missing: None,
        region: None,
        auth: AuthScheme::Bearer,
        key_test_path: Some("/models".to_owned()),
        connection: ConnectionOptions::default(),
        own_address: true,
        key_env: vec!["LAB_API_KEY".to_owned()],
        default_model: None,
        free: false,
        schema: SchemaForm::Full,
        max_tokens_field: "max_tokens".to_owned(),
        cache_control_in_parts: false,
        stream_options: true,
        limits: ProviderLimits {
            requests_per_minute: None,
            tokens_per_minute: None,
            concurrent: NonZeroU32::new(8).unwrap(),
        },
        timeout: Duration::from_secs(180),
        stated: StatedModel::default(),
        template: AddressTemplate::default(),
    };
    assert_eq!(catalog.provider("lab"), Some(&expected));
    assert_eq!(
        configured("lab", ProviderSettings::default()).unwrap_err(),
        CatalogError::NoAddress("lab".to_owned())
    );
}

#[track_caller]
fn check_address(base_url: &str, expected: Result<&str, &str>) {
    let settings =
        ProviderSettings { base_url: Some(base_url.to_owned()), ..ProviderSettings::default() };
    let got = configured("lab", settings)
        .map(|catalog| catalog.provider("lab").unwrap().base_url.clone());
    let bad = |reason: &str| format!("invalid `base_url` of provider `lab`: {reason}");
    assert_eq!(
        got.map_err(|error| error.to_string()),
        expected.map(str::to_owned).map_err(bad),
        "{base_url}"
    );
}

#[test]
fn a_provider_base_url_must_be_a_plain_http_url() {
    check_address("https://lab.example", Ok("https://lab.example"));
    check_address("https://lab.example/", Ok("https://lab.example"));
    check_address("https://lab.example/v1//", Ok("https://lab.example/v1"));
    check_address("http://[::1]:8080/v1", Ok("http://[::1]:8080/v1"));
    // The validated form is the one that is used.
    check_address(" https://LAB.example/v1\n", Ok("https://lab.example/v1"));
    check_address("https:\\\\lab.example\\v1", Ok("https://lab.example/v1"));
    for text in ["", "lab.example/v1", "//lab.example", "https://", "https://a b/"] {
        check_address(text, Err("not a URL"));
    }
    for text in ["ftp://lab.example", "file:///etc/passwd", "data:text/plain,a", "localhost:8080"] {
        check_address(text, Err("expected https:// or http://"));
    }
    for text in
        ["https://ada@lab.example", "https://ada:key@lab.example", "https://:key@lab.example"]
    {
        check_address(
            text,
            Err("it contains a user name or password; set API keys with `moothall key set`"),
        );
    }
    for text in ["https://lab.example?key=1", "https://lab.example/v1?", "https://lab.example/#a"] {
        check_address(text, Err("it contains a query or fragment"));
    }
}

#[track_caller]
fn check_template(name: &str, settings: ProviderSettings, expected: (&str, Option<&str>)) {
    let catalog = configured(name, settings).unwrap();
    let provider = catalog.provider(name).unwrap();
    assert_eq!((provider.base_url.as_str(), provider.missing), expected);
    // It is the same service at every address, so the key is always needed.
    assert!(provider.needs_key());
    assert_eq!(provider.schema, built_in().provider(name).unwrap().schema);
}

#[test]
fn an_address_with_parts_is_completed_by_settings() {
    let text = |text: &str| Some(text.to_owned());
    let settings = ProviderSettings::default;
    let azure = "https://{resource}.openai.azure.com/openai/v1";
    check_template("azure", settings(), (azure, Some("resource")));
    check_template(
        "azure",
        ProviderSettings { resource: text("acme-eu"), ..settings() },
        ("https://acme-eu.openai.azure.com/openai/v1", None),
    );
    let own = "https://acme.example/openai/deployments/gpt";
    check_template("azure", ProviderSettings { base_url: text(own), ..settings() }, (own, None));
    check_template(
        "vertex",
        ProviderSettings { project: text("acme-1"), region: text("europe-west4"), ..settings() },
        (
            "https://europe-west4-aiplatform.googleapis.com/v1/projects/acme-1/locations/europe-west4/endpoints/openapi",
            None,
        ),
    );
    let bedrock =
        |region: &str| format!("https://bedrock-runtime.{region}.amazonaws.com/openai/v1");
    check_template("bedrock", settings(), (&bedrock("us-east-1"), None));
    let settings = ProviderSettings { region: text("eu-central-1"), ..settings() };
    check_template("bedrock", settings.clone(), (&bedrock("eu-central-1"), None));
    let catalog = configured("bedrock", settings).unwrap();
    assert_eq!(catalog.provider("bedrock").unwrap().region.as_deref(), Some("eu-central-1"));
}

#[test]
fn a_part_of_an_address_cannot_lead_to_another_host() {
    for resource in ["evil.example/", "a.b", "a@b", "a b", "", "a\nb", "{region}", "ä"] {
        let settings =
            ProviderSettings { resource: Some(resource.to_owned()), ..ProviderSettings::default() };
        let error = configured("azure", settings).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`resource` of provider `azure` is not a name: use letters, digits and `-`",
            "{resource}"
        );
    }
}

#[test]
fn connection_settings_reach_the_provider() {
    let pair = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let settings = ProviderSettings {
        auth: Some(AuthScheme::ApiKey),
        headers: pair("x-team", "research"),
        query: pair("api-version", "1"),
        ca_file: Some("ca.pem".into()),
        proxy: Some("http://proxy.example:3128".to_owned()),
        ..ProviderSettings::default()
    };
    let catalog = configured("openai", settings).unwrap();
    let provider = catalog.provider("openai").unwrap();
    assert_eq!(provider.auth, AuthScheme::ApiKey);
    let expected = ConnectionOptions {
        headers: pair("x-team", "research"),
        query: pair("api-version", "1"),
        ca_file: Some("ca.pem".into()),
        proxy: Some("http://proxy.example:3128".to_owned()),
    };
    assert_eq!(provider.connection, expected);
}

#[test]
fn a_refused_setting_leaves_the_provider_as_it_was() {
    let mut catalog = built_in();
    let settings =
        ProviderSettings { base_url: Some("nowhere".to_owned()), ..ProviderSettings::default() };
    let result = catalog.configure(&BTreeMap::from([("openai".to_owned(), settings)]));
    assert!(result.is_err());
    assert_eq!(catalog.provider("openai"), built_in().provider("openai"));
}

fn price(input: &str, output: &str) -> TokenPrice {
    TokenPrice {
        input: input.parse().unwrap(),
        output: output.parse().unwrap(),
        ..TokenPrice::default()
    }
}

#[track_caller]
fn check_cost(price: TokenPrice, usage: TokenUsage, expected: u64) {
    assert_eq!(ModelPrices { base: price, above: None }.cost(&usage), MicroUsd::new(expected));
}

#[test]
fn a_cost_is_rounded_up_once_for_the_whole_call() {
    let usage = |input, output| TokenUsage { input, output, ..TokenUsage::default() };
    check_cost(price("0.01", "0"), usage(1, 0), 1);
    check_cost(price("0.01", "0"), usage(100, 0), 1);
    check_cost(price("0.01", "0"), usage(101, 0), 2);
    check_cost(price("0.5", "0.5"), usage(1, 1), 1);
    check_cost(price("0.000001", "0"), usage(1_000_000, 0), 1);
    check_cost(price("3", "15"), usage(1_000_000, 1_000_000), 18_000_000);
    check_cost(price("3", "15"), usage(0, 0), 0);
}

#[test]
fn a_cost_that_overflows_saturates() {
    let most = MicroUsd::new(u64::MAX);
    let price = TokenPrice {
        input: most,
        output: most,
        cache_read: Some(most),
        cache_write_5m: Some(most),
        cache_write_1h: Some(most),
    };
    let usage = TokenUsage {
        input: u64::MAX,
        cache_read: u64::MAX,
        cache_write_5m: u64::MAX,
        cache_write_1h: u64::MAX,
        output: u64::MAX,
        reasoning: u64::MAX,
    };
    check_cost(price, usage, u64::MAX);
}

proptest! {
    #[test]
    fn no_possible_usage_costs_more_than_was_reserved(
        model in any::<prop::sample::Index>(),
        letters in 0..300_000_usize,
        max_tokens in 1..200_000_u32,
        parts in prop::array::uniform4(0..=1000_u64),
        output in 0..=1000_u64,
    ) {
        let catalog = built_in();
        let names: Vec<_> = catalog.models.keys().collect();
        let card = card(&catalog, names[model.index(names.len())]);
        let request = ModelRequest::ask(card.model.clone(), "a".repeat(letters), max_tokens);
        // Any split of any part of the largest prompt into the four kinds of prompt tokens.
        let prompt = request.prompt_tokens_at_most();
        let [input, cache_read, cache_write_5m, cache_write_1h] = parts.map(|part| prompt / 4 * part / 1000);
        let output = u64::from(max_tokens) * output / 1000;
        let usage = TokenUsage { input, cache_read, cache_write_5m, cache_write_1h, output, reasoning: 0 };
        let prices = card.prices.unwrap();
        prop_assert!(prices.cost(&usage) <= prices.cost_at_most(&request));
        let longest = TokenUsage { input: 0, cache_write_1h: prompt, output: max_tokens.into(), ..TokenUsage::default() };
        prop_assert!(prices.cost(&longest) <= prices.cost_at_most(&request));
    }
}
