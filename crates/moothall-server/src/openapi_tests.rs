use moothall_core::ErrorCode;

use super::*;

#[test]
fn every_route_is_described_in_the_openapi_document() {
    let document = document();
    for route in routes() {
        let method = route.method.as_str().to_ascii_lowercase();
        let described = &document["paths"][route.path][&method];
        assert!(described["summary"].is_string(), "{method} {}", route.path);
    }
}

#[test]
fn every_referenced_schema_is_in_the_openapi_document() {
    let document = document();
    let text = document.to_string();
    let named = text.split("\"#/components/schemas/").skip(1);
    for name in named.map(|rest| rest.split('"').next().unwrap()) {
        assert!(document["components"]["schemas"][name].is_object(), "{name}");
    }
}

#[test]
fn the_api_reference_page_has_no_scripts_and_lists_every_route() {
    let page = page::page(&document());
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
    for route in routes() {
        assert!(page.contains(&format!("<code>{}</code>", route.path)), "{}", route.path);
    }
}

#[test]
fn every_error_code_is_in_the_document() {
    let document = document();
    let codes = document["components"]["schemas"]["ErrorCode"]["oneOf"].as_array().unwrap();
    for code in codes {
        // Every code in the document is known to the program and has a description.
        serde_json::from_value::<ErrorCode>(code["const"].clone()).unwrap();
        assert!(code["description"].as_str().is_some_and(|words| !words.is_empty()), "{code}");
    }
    let known = |code: ErrorCode| codes.iter().any(|one| one["const"] == json!(code));
    assert!(known(ErrorCode::BadRequest) && known(ErrorCode::OldText) && codes.len() > 60);
    let of_problem = &document["components"]["schemas"]["Problem"]["properties"]["code"];
    assert_eq!(of_problem["$ref"], "#/components/schemas/ErrorCode", "{of_problem}");
}
