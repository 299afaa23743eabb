use super::*;

fn registry(total: usize, per_address: usize, waiting: usize) -> ConnectionRegistry {
    let limits = ConnectionLimits { total, per_address, waiting, ..ConnectionLimits::default() };
    ConnectionRegistry::new(limits)
}

fn is_open(handle: &ConnectionHandle) -> bool {
    !handle.evicted.is_cancelled()
}

#[test]
fn connections_without_a_request_are_closed_before_idle_ones() {
    let registry = registry(3, 9, 9);
    let admit = || Arc::new(registry.admit(None).unwrap());
    let (busy, idle, waiting) = (admit(), admit(), admit());
    let request = busy.begin_request();
    drop(idle.begin_request());
    let next = admit();
    assert_eq!([&busy, &idle, &waiting].map(|one| is_open(one)), [true, true, false]);
    let next_request = next.begin_request();
    let last = admit();
    assert_eq!([&busy, &idle, &next].map(|one| is_open(one)), [true, false, true]);
    // All busy: the new connection is refused, and nothing is closed.
    let last_request = last.begin_request();
    assert!(registry.admit(None).is_none());
    assert_eq!([&busy, &next, &last].map(|one| is_open(one)), [true, true, true]);
    drop((request, next_request, last_request));
    assert!(registry.admit(None).is_some());
    assert_eq!([&busy, &next, &last].map(|one| is_open(one)), [false, true, true]);
}

#[test]
fn waiting_connections_have_a_limit_below_the_total() {
    let registry = registry(9, 9, 2);
    let all: Vec<_> = (0..5).map(|_| registry.admit(None).unwrap()).collect();
    let open: Vec<bool> = all.iter().map(is_open).collect();
    assert_eq!(open, [false, false, false, true, true]);
    assert_eq!(lock(&registry.table).open.len(), 2);
    drop(all);
    let table = lock(&registry.table);
    assert_eq!((table.open.len(), table.waiting), (0, 0));
}

#[test]
fn address_at_its_limit_closes_its_own_connections_only() {
    let registry = registry(9, 2, 9);
    let address = |last| Some(IpAddr::from([10, 0, 0, last]));
    let other = registry.admit(address(1)).unwrap();
    let local: Vec<_> = (0..3).map(|_| registry.admit(None).unwrap()).collect();
    let same: Vec<_> = (0..3).map(|_| registry.admit(address(2)).unwrap()).collect();
    assert!(is_open(&other) && local.iter().all(is_open));
    let open: Vec<bool> = same.iter().map(is_open).collect();
    assert_eq!(open, [false, true, true]);
}

#[test]
fn connection_is_busy_until_its_last_request_ends() {
    let registry = registry(1, 9, 9);
    let handle = Arc::new(registry.admit(None).unwrap());
    assert!(handle.is_waiting());
    let (one, two) = (handle.begin_request(), handle.begin_request());
    drop(one);
    assert!(!handle.is_waiting() && registry.admit(None).is_none());
    drop(two);
    assert!(registry.admit(None).is_some() && !is_open(&handle));
}

#[test]
fn connections_that_negotiate_have_a_limit_of_their_own() {
    let limits = ConnectionLimits { negotiating: 2, ..ConnectionLimits::default() };
    let registry = ConnectionRegistry::new(limits);
    let all: Vec<_> = (0..5).map(|_| Arc::new(registry.admit(None).unwrap())).collect();
    all.iter().for_each(|one| one.begin_protocol());
    let open: Vec<bool> = all.iter().map(|one| is_open(one)).collect();
    assert_eq!(open, [false, false, false, true, true]);
    let request = all[3].begin_request();
    let next = registry.admit(None).unwrap();
    next.begin_protocol();
    assert!(is_open(&all[4]) && is_open(&next));
    drop((request, next, all));
    let table = lock(&registry.table);
    assert_eq!((table.open.len(), table.waiting, table.negotiating), (0, 0, 0));
}
