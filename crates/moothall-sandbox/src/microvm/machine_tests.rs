use std::os::fd::OwnedFd;

use super::super::Accel;
use super::super::memory::blank;
use super::{Plan, Start, arguments};

fn file() -> OwnedFd {
    blank("test", 0).unwrap()
}

#[test]
fn a_boot_under_emulation_has_this_command_line() {
    let (ram, root, kernel, initramfs) = (file(), file(), file(), file());
    let plan = Plan {
        accel: Accel::Tcg,
        ram: &ram,
        ram_bytes: 352 << 20,
        root: Some(&root),
        start: Start::Boot { kernel: &kernel, initramfs: &initramfs, command_line: "quiet" },
    };
    insta::assert_snapshot!(arguments(&plan).join(" "));
}

#[test]
fn a_clone_on_kvm_has_this_command_line() {
    let ram = file();
    let plan = Plan {
        accel: Accel::Kvm,
        ram: &ram,
        ram_bytes: 128 << 20,
        root: None,
        start: Start::Clone,
    };
    insta::assert_snapshot!(arguments(&plan).join(" "));
}
