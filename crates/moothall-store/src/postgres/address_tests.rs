use super::*;

fn check(text: &str, expected: Result<(&str, &'static str), InvalidPgAddress>) {
    let read = text.parse::<PgAddress>().map(|address| (address.location(), address.tls()));
    let expected = expected.map(|(place, tls)| (place.to_owned(), tls));
    assert_eq!(read, expected, "{text}");
}

#[test]
fn a_postgres_address_requires_tls_unless_it_is_local() {
    check("postgres://u:p@127.0.0.1:6000/runs", Ok(("127.0.0.1:6000/runs", "prefer")));
    check("postgresql://u@[::1]/runs?sslmode=disable", Ok(("[::1]:5432/runs", "disable")));
    check("postgres://u@db.example.com/runs", Ok(("db.example.com:5432/runs", "verify-full")));
    let asked = "postgres://u@db.example.com/runs?sslmode=require&sslrootcert=/etc/ca.pem";
    check(asked, Ok(("db.example.com:5432/runs", "require")));
    for mode in ["disable", "allow", "prefer"] {
        let clear = format!("postgres://u@db.example.com/runs?sslmode={mode}");
        check(&clear, Err(InvalidPgAddress::Clear(mode)));
    }
    check("postgres://u@%2Frun%2Fpostgresql/runs", Ok(("/run/postgresql/runs", "prefer")));
}

#[test]
fn an_invalid_postgres_address_is_refused_without_showing_its_password() {
    check("mysql://u:hunter2@host/runs", Err(InvalidPgAddress::Scheme));
    check("postgres://u:hunter2@host:port/runs", Err(InvalidPgAddress::Unreadable));
    check("postgres://u:hunter2@127.0.0.1/", Err(InvalidPgAddress::NoDatabase));
    let stray = "postgres://u@127.0.0.1/runs?pasword=hunter2";
    check(stray, Err(InvalidPgAddress::Parameter("pasword".to_owned())));
    for text in ["postgres://u:hunter2@host:port/runs", "postgres://u@127.0.0.1/runs?hunter2"] {
        let error = text.parse::<PgAddress>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2:"), "{error}");
    }
    let fine: PgAddress = "postgres://u:hunter2@127.0.0.1/runs".parse().unwrap();
    assert_eq!(format!("{fine:?}"), "PgAddress(127.0.0.1:5432/runs)");
}
