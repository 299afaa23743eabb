//! Calculations of the demo model: one from facts alone by the first decision maker, and one with an
//! assumed constant by the critic in some debates.

use serde::Serialize;
use serde_json::{Value, json};

use super::facts::DemoFacts;
use crate::debate::CalculationRequest;
use crate::model::ModelRequest;

/// The field of an answer, in the schema and in the answer itself.
const FIELD: &str = "calculation";

/// Whether the request allows a calculation.
pub(crate) fn are_allowed(request: &ModelRequest) -> bool {
    request.schema.as_ref().is_some_and(|schema| schema.text().contains("\"calculation\""))
}

/// A turn as JSON, with its calculation if the request allows one.
pub(crate) fn turn_json<T: Serialize>(
    request: &ModelRequest,
    turn: &T,
    calculation: Option<CalculationRequest>,
) -> Option<String> {
    let mut value = serde_json::to_value(turn).ok()?;
    if !are_allowed(request) {
        return serde_json::to_string(turn).ok();
    }
    value[FIELD] = json!(calculation);
    serde_json::to_string(&value).ok()
}

/// A turn of the demo model without its calculation.
pub(crate) fn without_calculation(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove(FIELD);
    }
    value
}

/// The net margin of the newest year, from two facts.
pub(crate) fn margin(facts: &DemoFacts<'_>) -> Option<CalculationRequest> {
    let (income, revenue) = newest(facts)?;
    Some(CalculationRequest {
        purpose: "The net margin that the move has to protect.".to_owned(),
        code: format!(
            "margin = facts[\"{income}\"] / facts[\"{revenue}\"] * 100\n\
             result(\"net margin\", round(margin, 1), \"%\")\n"
        ),
    })
}

/// What a fall in revenue costs, with an assumed fall.
pub(crate) fn stress(facts: &DemoFacts<'_>) -> Option<CalculationRequest> {
    let (income, revenue) = newest(facts)?;
    Some(CalculationRequest {
        purpose: "The profit that a fall in revenue of five percent costs at the present margin."
            .to_owned(),
        code: format!(
            "fall = 5  # percent, assumed\n\
             margin = facts[\"{income}\"] / facts[\"{revenue}\"]\n\
             lost = facts[\"{revenue}\"] * fall / 100 * margin\n\
             result(\"lost profit\", round(lost))\n"
        ),
    })
}

fn newest(facts: &DemoFacts<'_>) -> Option<(String, String)> {
    let id = |metric: &str| {
        let id = facts.ids(&[metric]).into_iter().next()?;
        Some(id.strip_prefix("F0:")?.to_owned())
    };
    Some((id("NetIncome")?, id("Revenue")?))
}

/// A sentence about each calculation that the question reports, with its first value.
pub(crate) fn quotes(question: &str) -> Vec<String> {
    let reported = question.lines().filter(|line| line.starts_with("X0:"));
    let quote = |line: &str| {
        let (id, behind) = line.split_once(" (")?;
        let (_, result) = behind.split_once("Result: ")?;
        let result = result.split(". Basis:").next()?.trim_end_matches('.');
        let first = result.split(", ").next()?;
        let has_values = !result.starts_with("failed:") && !result.starts_with("not run:");
        Some(match has_values {
            true => format!("The calculation gives {first} [{id}]."),
            false => "The calculation has no result, so the point stays as it was.".to_owned(),
        })
    };
    reported.filter_map(quote).collect()
}
