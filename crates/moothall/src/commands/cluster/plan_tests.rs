use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[test]
fn a_cluster_plan_is_stored_privately_and_printed_without_its_password() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(ClusterPlan::read(folder.path()).unwrap(), None);
    let mut plan = ClusterPlan::new(3).unwrap();
    plan.activate_build(folder.path(), "one", Some(4)).unwrap();
    plan.write(folder.path()).unwrap();
    assert_eq!(ClusterPlan::read(folder.path()).unwrap(), Some(plan.clone()));
    let mode = fs_err::metadata(folder.path().join(FILE_NAME)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(plan.database.password.len(), 32);
    assert!(!format!("{plan:?}").contains(&plan.database.password));
}

#[test]
fn each_build_of_a_cluster_has_its_own_port() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = ClusterPlan::new(1).unwrap();
    plan.activate_build(folder.path(), "one", None).unwrap();
    let one = plan.workers.clone();
    assert_eq!(one.iter().map(|set| (&*set.build, set.count)).collect::<Vec<_>>(), [("one", 2)]);
    plan.activate_build(folder.path(), "one", Some(3)).unwrap();
    let three = vec![WorkerSet { count: 3, ..one[0].clone() }];
    assert_eq!(plan.workers, three);
    // No worker of the first set is alive.
    plan.activate_build(folder.path(), "two", None).unwrap();
    let two = plan.workers.clone();
    assert_eq!(two.iter().map(|set| (&*set.build, set.count)).collect::<Vec<_>>(), [("two", 3)]);
    assert_ne!(two[0].port, one[0].port);
}

#[test]
fn a_cluster_plan_of_another_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plan = ClusterPlan { schema: 2, ..ClusterPlan::new(1).unwrap() };
    plan.write(folder.path()).unwrap();
    let refused = ClusterPlan::read(folder.path()).unwrap_err();
    assert!(refused.message.contains("its format is 2, not 1"), "{}", refused.message);
    assert!(refused.hint.unwrap().contains("`moothall cluster down`"));
}
