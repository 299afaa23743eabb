use super::*;

fn served(models: &[(&str, Option<u64>)]) -> Vec<ServedModel> {
    let model = |(name, context): &(&str, Option<u64>)| ServedModel {
        name: (*name).to_owned(),
        context: *context,
    };
    models.iter().map(model).collect()
}

#[track_caller]
fn check_text(model: &str, models: &[(&str, Option<u64>)], stated: Option<u64>, expected: &str) {
    let text = served_text(&model.parse().unwrap(), &served(models), stated);
    assert_eq!(anstream::adapter::strip_str(&text).to_string(), expected);
}

#[test]
fn a_check_names_the_models_of_a_server_and_the_window() {
    let two = &[("small.gguf", Some(4096)), ("large.gguf", None)];
    check_text(
        "lab/small.gguf",
        two,
        None,
        "models on this server: small.gguf, large.gguf\n\
         context window: 4096 tokens; set `context = 4096` in [provider.lab], or pass `--save`\n",
    );
    check_text(
        "lab/small.gguf",
        two,
        Some(4096),
        "models on this server: small.gguf, large.gguf\ncontext window: 4096 tokens\n",
    );
    let other = "tiny is not among the models of this server: small.gguf, large.gguf\n";
    check_text("lab/tiny", two, None, other);
    let latest = &[("llama3.2:latest", None)];
    check_text("lab/llama3.2", latest, None, "models on this server: llama3.2:latest\n");
    check_text("lab/tiny", &[], None, "");
}

#[test]
fn only_the_first_models_of_a_long_list_are_named() {
    let names: Vec<String> = (1..=23).map(|number| format!("m{number}")).collect();
    let models: Vec<(&str, Option<u64>)> = names.iter().map(|name| (name.as_str(), None)).collect();
    let shown = served_names(&served(&models));
    assert_eq!(shown, format!("{} and 3 more", names[..MAX_SERVED_MODELS].join(", ")));
}
