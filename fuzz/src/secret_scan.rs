//! The work of the credential scan grows linearly with the text, not quadratically. Counts steps,
//! because seconds depend on the machine.

use moothall_core::gate::{FingerprintKey, scan_secrets};

const SHORT: usize = 8 << 10;

pub fn secret_scan(data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let key = FingerprintKey::new([1; 32]);
    // Repeated, because quadratic growth shows only in a long text.
    let steps = |bytes: usize| {
        let scan = scan_secrets(&data.repeat(bytes.div_ceil(data.len())), &key);
        assert!(scan.complete);
        scan.steps
    };
    let (short, long) = (steps(SHORT), steps(4 * SHORT));
    assert!(long <= 5 * short, "{short} steps, then {long}");
}
