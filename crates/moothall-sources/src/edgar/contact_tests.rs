use super::*;

#[test]
fn mail_address_with_or_without_a_name_is_a_contact() {
    for text in ["ada@example.com", "Ada Lovelace ada@example.com", "Ada <ada@mail.example.com>"] {
        assert_eq!(SecContact::parse(text).map(|contact| contact.to_string()), Ok(text.to_owned()));
    }
    assert_eq!(SecContact::parse("  ada@example.com\n").unwrap().to_string(), "ada@example.com");
}

#[test]
fn an_invalid_contact_is_refused() {
    for text in [
        "",
        "ada",
        "@example.com",
        "ada@",
        "ada@localhost",
        "ada@.com",
        "ada@b@example.com",
        "ada@example.com\r\nHost: example.org",
        "ädä@example.com",
        &"a".repeat(300),
    ] {
        assert_eq!(SecContact::parse(text), Err(InvalidContact), "{text:?}");
    }
}
