use super::*;

/// An ELF header with one program header of this type.
fn elf(kind: u8, header: u8) -> Vec<u8> {
    let mut elf = vec![0; 64 + 56];
    elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
    elf[16] = kind;
    elf[32] = 64;
    elf[54] = 56;
    elf[56] = 1;
    elf[64] = header;
    elf
}

#[track_caller]
fn check(elf: &[u8], expected: Result<(), &str>) {
    let checked = check_static(elf).map_err(|error| error.to_string());
    assert_eq!(checked.as_ref().map_err(String::as_str), expected.as_ref().map_err(|text| *text));
}

#[test]
fn a_static_position_independent_guest_binary_is_accepted() {
    check(&elf(3, 1), Ok(()));
}

#[test]
fn a_dynamically_linked_guest_binary_is_refused() {
    check(&elf(3, 3), Err("dynamically linked"));
}

#[test]
fn a_guest_binary_that_is_not_position_independent_is_refused() {
    check(&elf(2, 1), Err("not position-independent"));
}

#[test]
fn an_invalid_or_truncated_elf_file_is_refused() {
    check(b"#!/bin/sh", Err("not a 64-bit ELF file"));
    check(&elf(3, 1)[..60], Err("truncated ELF header"));
}
