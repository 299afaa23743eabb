use super::*;

#[test]
fn the_compose_file_uses_the_installed_restate_version() {
    let version = RESTATE.lines().find_map(|line| line.strip_prefix("version=")).unwrap();
    let version = version.split(' ').next().unwrap();
    let compose = include_str!("../../../../../deploy/compose.yaml");
    let image = format!("image: restatedev/restate:{version}");
    assert!(compose.lines().any(|line| line.trim() == image), "{image}");
}
