use super::*;

#[test]
fn only_a_valid_traceparent_header_is_used() {
    let parent = Some(TraceParent {
        trace_id: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
        span_id: 0x00f0_67aa_0ba9_02b7,
    });
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
    for (text, expected) in [
        (format!("00-{trace}-01"), parent),
        (format!("00-{trace}-00"), parent),
        (format!("cc-{trace}-01-more"), parent),
        (format!("00-{trace}-01-more"), None),
        (format!("ff-{trace}-01"), None),
        (format!("00-{trace}"), None),
        (format!("00-{}-01", trace.to_uppercase()), None),
        (format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)), None),
        (format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", "0".repeat(16)), None),
        (String::new(), None),
        ("00-é-é-é".to_owned(), None),
    ] {
        assert_eq!(TraceParent::parse(&text), expected, "{text:?}");
    }
}

/// Processes of different builds must agree on the ids, so they never change.
#[test]
fn ids_of_a_run_are_the_same_in_every_process() {
    let run = "01932b5c-7d4e-7a31-9c55-3f6f0e8a4b01";
    assert_eq!(trace_id_of_run(run), 0x361f_c6d9_e9a2_0560_457a_6135_7dc3_2f7f);
    assert_eq!(span_id_of_run(run, "run"), 0x3d8c_aa77_7d49_ec97);
    assert_eq!(span_id_of_run(run, "m1"), 0x6df6_d7b6_a935_e3de);
    let parent = TraceParent { trace_id: trace_id_of_run(run), span_id: 1 };
    assert_eq!(TraceParent::parse(&parent.to_string()), Some(parent));
}
