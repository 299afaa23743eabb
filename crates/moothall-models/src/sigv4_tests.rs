//! The expected signatures are those of the test suite that AWS publishes for Signature Version 4.

use std::time::Duration;

use super::*;

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

fn credentials(token: Option<&str>) -> AwsCredentials {
    AwsCredentials::new("AKIDEXAMPLE".to_owned(), SECRET.to_owned(), token.map(str::to_owned))
}

/// Signs a request of the test suite, which was made on 2015-08-30 at 12:36:00.
#[track_caller]
fn check(method: &str, target: &str, headers: &[(&str, &str)], body: &str, expected: &str) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160);
    let scope = SigningScope { region: "us-east-1", service: "service", time };
    let url = Url::parse(&format!("https://example.amazonaws.com{target}")).unwrap();
    let fixed = [("host", "example.amazonaws.com"), ("x-amz-date", "20150830T123600Z")];
    let headers: BTreeMap<String, String> = fixed
        .iter()
        .chain(headers)
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let value = authorization(&credentials(None), scope, method, &url, &headers, body.as_bytes());
    let names: Vec<&str> = headers.keys().map(String::as_str).collect();
    let start = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request";
    let names = names.join(";");
    assert_eq!(value, format!("{start}, SignedHeaders={names}, Signature={expected}"));
}

#[test]
fn signatures_match_the_test_suite_of_aws() {
    let vanilla = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
    check("GET", "/", &[], "", vanilla);
    let post = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b";
    check("POST", "/", &[], "", post);
    let query = "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac";
    check("GET", "/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1", &[], "", query);
}

#[test]
fn a_signature_covers_the_body_and_all_given_headers() {
    check(
        "POST",
        "/",
        &[
            ("content-length", "13"),
            ("content-type", "application/x-www-form-urlencoded"),
            (
                "x-amz-content-sha256",
                "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e",
            ),
        ],
        "Param1=value1",
        "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
    );
    let token = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";
    check(
        "GET",
        "/",
        &[("x-amz-security-token", token)],
        "",
        "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8",
    );
}

#[test]
fn the_path_is_encoded_twice() {
    let url = Url::parse("https://a.example/test/@connections/JBDvjfGEIAMCERw%3D").unwrap();
    let request = canonical_request("POST", &url, &BTreeMap::new(), "", b"");
    assert_eq!(request.lines().nth(1), Some("/test/%40connections/JBDvjfGEIAMCERw%253D"));
}

#[track_caller]
fn check_parsed(text: &str, expected: Option<(&str, &str, Option<&str>)>) {
    let parsed = AwsCredentials::parse(text);
    let parsed = parsed.as_ref().map(|parsed| {
        (
            parsed.access_key_id.as_str(),
            parsed.secret.expose(),
            parsed.session_token().map(ApiKey::expose),
        )
    });
    assert_eq!(parsed, expected);
}

#[test]
fn credentials_are_read_from_json_and_from_one_line() {
    let json = "{\n  \"Version\": 1,\n  \"AccessKeyId\": \"ASIAEXAMPLE\",\n  \"SecretAccessKey\": \"s\",\n  \"SessionToken\": \"t\"\n}";
    check_parsed(json, Some(("ASIAEXAMPLE", "s", Some("t"))));
    check_parsed(
        "{\"AccessKeyId\": \"A\", \"SecretAccessKey\": \"s\", \"SessionToken\": \"\"}",
        Some(("A", "s", None)),
    );
    check_parsed("AKIAIOSFODNN7EXAMPLE:s/1", Some(("AKIAIOSFODNN7EXAMPLE", "s/1", None)));
    check_parsed("AKIAIOSFODNN7EXAMPLE:s:t", Some(("AKIAIOSFODNN7EXAMPLE", "s", Some("t"))));
    let line = AwsCredentials::parse(json).unwrap().into_key();
    assert_eq!(line.expose(), "ASIAEXAMPLE:s:t");
}

#[test]
fn an_api_key_of_bedrock_is_not_mistaken_for_credentials() {
    for text in ["ABSKQmVkcm9ja0FQSUtleS1l", "bedrock-api-key-YmVk", "sk:a:b", "{}", "{", ""] {
        check_parsed(text, None);
    }
}

#[test]
fn debug_output_of_credentials_shows_no_secret() {
    let text = format!("{:?}", credentials(Some("the-token")));
    assert!(!text.contains(SECRET) && !text.contains("the-token"), "{text}");
}
