use super::*;

#[test]
fn every_address_is_described() {
    let document = document();
    for route in routes() {
        let method = route.method.as_str().to_ascii_lowercase();
        let described = &document["paths"][route.path][&method];
        assert!(described["summary"].is_string(), "{method} {}", route.path);
    }
}

#[test]
fn every_type_that_is_named_is_there() {
    let document = document();
    let text = document.to_string();
    let named = text.split("\"#/components/schemas/").skip(1);
    for name in named.map(|rest| rest.split('"').next().unwrap()) {
        assert!(document["components"]["schemas"][name].is_object(), "{name}");
    }
}

#[test]
fn page_for_people_has_no_script_and_shows_every_address() {
    let page = page::page(&document());
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
    for route in routes() {
        assert!(page.contains(&format!("<code>{}</code>", route.path)), "{}", route.path);
    }
}
