use moothall_core::sandbox::IsolationClass;

use super::*;

#[test]
fn one_command_names_every_package_that_a_microvm_needs() {
    let check = |obstacle, missing: &[&str], expected: &str| {
        assert_eq!(command_with(obstacle, missing), expected);
    };
    use MicrovmObstacle::{NoImage, NoQemu, Other};
    check(NoQemu, &[], "sudo apt install qemu-system-x86");
    let tools = &["mmdebstrap", "mksquashfs"];
    check(NoQemu, tools, "sudo apt install qemu-system-x86 mmdebstrap squashfs-tools");
    check(NoImage, tools, "sudo apt install mmdebstrap squashfs-tools");
    check(NoImage, &[], "moothall image build debate");
    check(NoImage, &["mmdebstrap", "apt-get"], "moothall image import moothall-images.tar");
    check(NoQemu, &["mmdebstrap", "apt-get"], "moothall doctor");
    check(Other, &[], "moothall doctor");
}

#[test]
fn the_first_line_names_the_class_the_reason_and_the_command() {
    let command = "sudo apt install qemu-system-x86";
    assert_eq!(
        weaker_class_line(IsolationClass::None, "QEMU is not installed", command),
        "debates run in isolation class none; to use a microVM, run \
         `sudo apt install qemu-system-x86` (QEMU is not installed)"
    );
}

#[test]
fn the_bundle_of_a_package_is_next_to_the_directory_of_the_program() {
    let prefix = tempfile::tempdir().unwrap();
    let program = prefix.path().join("bin/moothall");
    fs_err::create_dir_all(prefix.path().join("bin")).unwrap();
    assert_eq!(bundle_beside(&program), None);
    let images = prefix.path().join("share/moothall/images");
    fs_err::create_dir_all(&images).unwrap();
    fs_err::write(images.join("debate.tar"), "").unwrap();
    assert_eq!(bundle_beside(&program), Some(prefix.path().join("bin").join(BUNDLE)));
}
