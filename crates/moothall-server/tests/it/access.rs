//! Access control, tested over HTTP.

mod matrix;
mod place;
mod signing_in;
mod telemetry;
