use super::*;

#[test]
fn an_id_is_a_metric_and_a_period() {
    let id = FactId::new("Revenue.yoy", FiscalPeriod::Quarter(2026, 1));
    assert_eq!(id.to_string(), "Revenue.yoy:FY2026Q1");
    assert_eq!(FactId::parse("Revenue.yoy:Q1 FY26"), Some(id.clone()));
    assert_eq!("Revenue.yoy:FY2026Q1".parse::<FactId>().unwrap(), id);
    assert_eq!(serde_json::to_string(&id).unwrap(), "\"Revenue.yoy:FY2026Q1\"");
}

#[test]
fn an_invalid_fact_id_is_refused() {
    let long = format!("{}:FY2025", "A".repeat(61));
    for text in [
        "Revenue",
        "Revenue:2025",
        ":FY2025",
        "Rev enue:FY2025",
        "Revenue:FY2025:x",
        "Ré:FY2025",
        &long,
    ] {
        assert_eq!(FactId::parse(text), None, "{text}");
    }
    assert!(serde_json::from_str::<FactId>("\"Revenue:FY25\"").is_err());
    assert_eq!(
        "x".parse::<FactId>().unwrap_err().to_string(),
        "invalid fact id: expected a form like Revenue:FY2025"
    );
}
