//! The agent that runs inside sandboxes, as bytes. `build.rs` says where it comes from.

include!(concat!(env!("OUT_DIR"), "/guest_bytes.rs"));
