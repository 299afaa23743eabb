//! A system without CA certificates, such as a minimal container. Empty variables hide the ones of
//! this machine.

use crate::fake::Fake;
use crate::world::World;

const NOTE: &str = "no CA certificates on this system, using the built-in ones";

fn without_certificates() -> World {
    World::new().with("SSL_CERT_FILE", "").with("SSL_CERT_DIR", "")
}

#[test]
fn the_built_in_sample_needs_no_certificates() {
    let world = without_certificates();
    let line = ["consult", "HLXI", "--verdict", "off", "--model", "demo", "--isolation", "none"];
    let ran = world.run(&[&line[..], &["--moves", "3", "--rounds", "2"]].concat());
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(!ran.stderr.contains("certificates"), "{ran}");
    let facts = world.run(&["facts", "HLXI"]);
    assert_eq!(facts.code, Some(0), "{facts}");
    assert!(!facts.stderr.contains("certificates"), "{facts}");
}

#[test]
fn a_model_is_called_with_built_in_certificates_and_a_note() {
    let fake = Fake::saying("fine");
    let url = fake.url();
    let question = ["ask", "--model", "openai/m", "--base-url", &url, "hello"];
    let ran = without_certificates().run(&question);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "fine\n"), "{ran}");
    assert_eq!(ran.stderr.matches(NOTE).count(), 1, "{ran}");
    let with_certificates = World::new().run(&question);
    assert!(!with_certificates.stderr.contains("certificates"), "{with_certificates}");
}

#[test]
fn certificates_that_the_user_chose_are_never_replaced() {
    let fake = Fake::saying("fine");
    let world = World::new().with("SSL_CERT_FILE", "/nonexistent/ca.pem").with("SSL_CERT_DIR", "");
    fake.configure(&world, "");
    let ran = world.run(&["--config", "fake.toml", "ask", "--model", "ollama/m", "hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(4), ""), "{ran}");
    assert!(ran.stderr.contains("check the variable SSL_CERT_FILE"), "{ran}");
    assert_eq!(fake.calls().len(), 0);
}
