//! The wire format of events for browsers: numbered, dated, and tagged with `type`.

use serde::de::Error as _;
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::RunEventBody;
use crate::RunId;

/// The tag of an event's kind in files.
const FILE_TAG: &str = "event";

/// The tag on the wire.
const WIRE_TAG: &str = "type";

/// One event of a run as sent to clients: the unit of the event stream and of `events.json`.
///
/// The tag is `type` on the wire and `event` in files. The time is only here; events themselves
/// have none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct EventEnvelope {
    /// The sequence number, starting at 1, without gaps; also the id in the event stream.
    pub seq: u64,
    /// The run.
    pub run_id: RunId,
    /// When it was committed: RFC 3339 in UTC with milliseconds.
    pub at: String,
    /// The event itself.
    #[cfg_attr(test, ts(flatten))]
    pub body: RunEventBody,
}

impl Serialize for EventEnvelope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let body = serde_json::to_value(&self.body).map_err(S::Error::custom)?;
        let Value::Object(fields) = body else {
            return Err(S::Error::custom("event body is not a JSON object"));
        };
        let mut map = serializer.serialize_map(Some(fields.len().saturating_add(3)))?;
        map.serialize_entry("seq", &self.seq)?;
        map.serialize_entry("run_id", &self.run_id)?;
        map.serialize_entry("at", &self.at)?;
        for (name, value) in &fields {
            map.serialize_entry(if name == FILE_TAG { WIRE_TAG } else { name }, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for EventEnvelope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct RawEnvelope {
            seq: u64,
            run_id: RunId,
            at: String,
            #[serde(flatten)]
            body: Map<String, Value>,
        }
        let RawEnvelope { seq, run_id, at, mut body } = RawEnvelope::deserialize(deserializer)?;
        let kind = body.remove(WIRE_TAG).ok_or_else(|| D::Error::missing_field(WIRE_TAG))?;
        body.insert(FILE_TAG.to_owned(), kind);
        let body = RunEventBody::deserialize(Value::Object(body)).map_err(D::Error::custom)?;
        Ok(Self { seq, run_id, at, body })
    }
}

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod tests;
