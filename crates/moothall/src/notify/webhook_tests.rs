use super::*;

/// The example of the Standard Webhooks specification.
#[test]
fn signature_is_that_of_standard_webhooks() {
    let sign = |secret| {
        signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", r#"{"test": 2432232314}"#)
    };
    let signed = sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    assert_eq!(signed, Ok("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".to_owned()));
    sign("whsec_not base64").unwrap_err();
    sign("any other secret").unwrap();
}
