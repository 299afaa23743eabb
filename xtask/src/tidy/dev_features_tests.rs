use super::*;
use crate::tidy::headlines;

#[test]
fn tests_that_enable_features_of_the_product_are_found() {
    let product = parse("rustls v0.23.1\tring,std\ntokio-rustls v0.26.6\ttls12\n");
    let same =
        parse("insta v1.49.0\tjson\nrustls v0.23.1\tring,std\ntokio-rustls v0.26.6\ttls12\n");
    assert_eq!(headlines(&check(&product, &same)), Vec::<String>::new());
    let more = parse("rustls v0.23.1\tring,std\ntokio-rustls v0.26.6\tring,tls12\n");
    assert_eq!(
        headlines(&check(&product, &more)),
        [
            r#"Cargo.toml: [dev-features] tests build `tokio-rustls v0.26.6` with {"ring,tls12"}, the product with {"tls12"}"#
        ]
    );
}

#[test]
fn a_package_that_is_printed_again_has_one_set_of_features() {
    let found = parse("rustls v0.23.1\tstd\nrustls v0.23.1\tstd (*)\nnone v1.0.0\t\n");
    let expected = [("none v1.0.0", ""), ("rustls v0.23.1", "std")];
    let expected =
        expected.map(|(package, features)| (package.to_owned(), [features.to_owned()].into()));
    assert_eq!(found, FeatureSets::from(expected));
}
