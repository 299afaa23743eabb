use std::os::fd::OwnedFd;

use super::super::VmAccelerator;
use super::super::memory::blank;
use super::{QemuConfig, QemuStartMode, arguments};

fn file() -> OwnedFd {
    blank("test", 0).unwrap()
}

#[test]
fn the_command_line_of_an_emulated_boot_is_stable() {
    let (ram, root, kernel, initramfs) = (file(), file(), file(), file());
    let plan = QemuConfig {
        accel: VmAccelerator::Tcg,
        ram: &ram,
        ram_bytes: 352 << 20,
        root: Some(&root),
        start: QemuStartMode::Boot {
            kernel: &kernel,
            initramfs: &initramfs,
            command_line: "quiet",
        },
    };
    insta::assert_snapshot!(arguments(&plan).join(" "));
}

#[test]
fn the_command_line_of_a_kvm_clone_is_stable() {
    let ram = file();
    let plan = QemuConfig {
        accel: VmAccelerator::Kvm,
        ram: &ram,
        ram_bytes: 128 << 20,
        root: None,
        start: QemuStartMode::Clone,
    };
    insta::assert_snapshot!(arguments(&plan).join(" "));
}
