use super::*;

#[test]
fn containers_have_the_restate_that_is_installed_elsewhere() {
    let version = RESTATE.lines().find_map(|line| line.strip_prefix("version=")).unwrap();
    let version = version.split(' ').next().unwrap();
    let compose = include_str!("../../../../../deploy/compose.yaml");
    let image = format!("image: restatedev/restate:{version}");
    assert!(compose.lines().any(|line| line.trim() == image), "{image}");
}
