use super::{HostInfo, ProgramFile, measure_tsc_khz};
use crate::SandboxError;
use crate::jail::{JailReport, LandlockCoverage};

#[test]
fn a_program_that_is_not_there_is_named() {
    let check = |name: &str| match ProgramFile::find(name.as_ref()) {
        Err(SandboxError::Missing { program }) => assert_eq!(program, name),
        other => panic!("{other:?}"),
    };
    check("qemu-system-of-nowhere");
    check("/nowhere/qemu");
    check("/usr");
    assert_eq!(
        ProgramFile::find("sh".as_ref()).unwrap(),
        ProgramFile::find("/bin/sh".as_ref()).unwrap()
    );
}

#[tokio::test]
async fn two_measurements_of_the_counter_agree() {
    let (first, second) = (measure_tsc_khz().await, measure_tsc_khz().await);
    assert!(first > 100_000, "{first} kHz is no CPU");
    assert!(first.abs_diff(second) < first / 200, "{first} and {second}");
}

#[test]
fn host_info_round_trips_through_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.json");
    let info = HostInfo {
        boot: "b".to_owned(),
        user: 0,
        qemu: ProgramFile::find("sh".as_ref()).unwrap(),
        jail: ProgramFile::find("sh".as_ref()).unwrap(),
        version: "7.2.22".to_owned(),
        walls: JailReport {
            uid: 65_534,
            no_new_privileges: true,
            landlock: LandlockCoverage::Full,
            landlock_abi: 7,
        },
        tsc_khz: 2_100_000,
        kvm: Some(false),
    };
    info.save(&file);
    let back: HostInfo = serde_json::from_slice(&fs_err::read(&file).unwrap()).unwrap();
    assert_eq!(back, info);
    assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 1);
}
