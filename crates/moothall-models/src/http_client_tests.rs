use super::*;

#[test]
fn built_in_root_certificates_can_be_the_only_trusted_ones() {
    let roots = built_in_roots().unwrap();
    assert!(roots.len() > 50, "{}", roots.len());
    build_http_client(|builder| builder.tls_certs_only(built_in_roots().unwrap())).unwrap();
}

#[test]
fn invalid_client_settings_are_reported_and_not_replaced() {
    let invalid = |builder: ClientBuilder| builder.user_agent("line\nbreak");
    assert!(build_http_client(invalid).unwrap_err().is_builder());
}
