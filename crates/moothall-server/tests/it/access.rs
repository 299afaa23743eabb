//! Who may do what, tried from outside.

mod matrix;
mod place;
mod signing_in;
mod telemetry;
