use super::*;

#[test]
fn few_open_files_lower_the_limits() {
    let check = |files: u64, total: usize, per_address: usize, waiting: usize| {
        let limits = ConnectionLimits::for_open_files(files);
        assert_eq!(
            (limits.total, limits.per_address, limits.waiting),
            (total, per_address, waiting),
            "{files}"
        );
    };
    check(u64::MAX, 4_096, 1_024, 3_072);
    check(20_000, 4_096, 1_024, 3_072);
    check(1_024, 768, 768, 384);
    check(256, 128, 128, 64);
}

#[test]
fn connections_are_limited_per_address_except_from_localhost() {
    let check = |address: &str, limited: Option<&str>| {
        let address: SocketAddr = address.parse().unwrap();
        let found = ClientAddress::ip(&address).and_then(limited_address);
        assert_eq!(found, limited.map(|limited| limited.parse().unwrap()), "{address}");
    };
    check("127.0.0.1:1", None);
    check("127.9.9.9:1", None);
    check("[::1]:1", None);
    check("[::ffff:127.0.0.1]:1", None);
    check("192.0.2.7:1", Some("192.0.2.7"));
    check("[::ffff:192.0.2.7]:1", Some("192.0.2.7"));
    check("[2001:db8:1:2:3:4:5:6]:1", Some("2001:db8:1:2::"));
}
