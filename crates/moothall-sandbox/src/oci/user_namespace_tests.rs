use super::*;

#[test]
fn containers_are_spread_over_ranges_inside_the_unused_ids() {
    let ranges: Vec<u32> = (0..200).map(|n| IdRange::of(&format!("mh{n:012x}")).first).collect();
    for first in &ranges {
        assert_eq!((first - FIRST_ID) % IDS, 0);
        assert!(*first >= FIRST_ID && first + (IDS - 1) < 2_147_352_576, "{first}");
    }
    let distinct: std::collections::BTreeSet<_> = ranges.iter().collect();
    assert!(distinct.len() > 180, "{}", distinct.len());
}

#[test]
fn host_without_the_ids_of_containers_is_known() {
    assert!(has_ids("         0          0 4294967295\n"));
    assert!(!has_ids("         0     100000      65536\n"));
    assert!(!has_ids("0 1000 1\n1 100000 65536\n"));
    assert!(!has_ids(""));
    assert!(!has_ids("x y z\n"));
}

#[test]
fn stage_covers_nothing_that_a_container_needs() {
    let staging = UserNamespaceSupport { unshare: PathBuf::from("/usr/bin/unshare") };
    let stage = |needed: &[&str]| {
        let needed: Vec<&Path> = needed.iter().map(Path::new).collect();
        staging.stage(&needed).map(|stage| stage.folder)
    };
    let first = stage(&["/nonexistent/images"]).unwrap();
    let below = first.join("images");
    assert_ne!(stage(&[below.to_str().unwrap()]), Some(first));
    assert_eq!(stage(&STAGES), None);
}
