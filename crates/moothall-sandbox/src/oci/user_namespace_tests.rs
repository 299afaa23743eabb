use super::*;

#[test]
fn containers_get_distinct_ranges_of_unused_ids() {
    let ranges: Vec<u32> = (0..200).map(|n| IdRange::of(&format!("mh{n:012x}")).first).collect();
    for first in &ranges {
        assert_eq!((first - FIRST_ID) % IDS_PER_CONTAINER, 0);
        assert!(*first >= FIRST_ID && first + (IDS_PER_CONTAINER - 1) < 2_147_352_576, "{first}");
    }
    let distinct: std::collections::BTreeSet<_> = ranges.iter().collect();
    assert!(distinct.len() > 180, "{}", distinct.len());
}

#[test]
fn a_host_without_unused_ids_is_detected() {
    assert!(has_ids("         0          0 4294967295\n"));
    assert!(!has_ids("         0     100000      65536\n"));
    assert!(!has_ids("0 1000 1\n1 100000 65536\n"));
    assert!(!has_ids(""));
    assert!(!has_ids("x y z\n"));
}

#[test]
fn the_staging_directory_hides_no_path_a_container_needs() {
    let staging = UserNamespaceSupport { unshare: PathBuf::from("/usr/bin/unshare") };
    let stage = |needed: &[&str]| {
        let needed: Vec<&Path> = needed.iter().map(Path::new).collect();
        staging.stage(&needed).map(|stage| stage.folder)
    };
    let first = stage(&["/nonexistent/images"]).unwrap();
    let below = first.join("images");
    assert_ne!(stage(&[below.to_str().unwrap()]), Some(first));
    assert_eq!(stage(&STAGE_FOLDERS), None);
}
