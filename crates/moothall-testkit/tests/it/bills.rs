//! Tests of the statistics.

use std::{sync::Arc, time::Duration};

use moothall_testkit::{
    CallBill, FakeProvider, ProviderBehaviour, ProviderFault, ProviderProtocol, ProviderStats,
    ReplyUsage,
};
use tokio::sync::Barrier;

use crate::client::{Mode, ask};

fn usage(number: u64) -> ReplyUsage {
    ReplyUsage { input: 10 + number, cache_read: 1, cache_write: 2, output: 5 }
}

#[tokio::test]
async fn every_billed_call_has_one_bill_with_the_reported_usage() {
    let server = FakeProvider::start().await.unwrap();
    let faults = [
        None,
        Some(ProviderFault::ServerError),
        Some(ProviderFault::HalfBody),
        Some(ProviderFault::ConnectionReset),
        None,
    ];
    let behaviours = (0..).zip(&faults).map(|(number, fault)| {
        let behaviour = ProviderBehaviour::text("hello").with_usage(usage(number));
        fault.clone().into_iter().fold(behaviour, ProviderBehaviour::with_fault)
    });
    server.script(behaviours);
    for _ in &faults {
        ask(&server, ProviderProtocol::OpenAi, Mode::Unary).await;
    }
    assert_eq!(
        server.stats(),
        ProviderStats {
            received: 5,
            answered: 5,
            max_concurrent: 1,
            billed: ReplyUsage { input: 36, cache_read: 3, cache_write: 6, output: 15 },
            bills: vec![
                CallBill { call: 0, usage: usage(0), reported: Some(usage(0)) },
                CallBill { call: 2, usage: usage(2), reported: None },
                CallBill { call: 4, usage: usage(4), reported: Some(usage(4)) },
            ],
            ..ProviderStats::default()
        }
    );
}

#[tokio::test]
async fn usage_that_ollama_cannot_report_is_not_counted_as_reported() {
    let server = FakeProvider::start().await.unwrap();
    server.always(ProviderBehaviour::text("hello").with_usage(usage(0)));
    ask(&server, ProviderProtocol::Ollama, Mode::Streamed).await;
    let told = ReplyUsage { input: 13, output: 5, ..ReplyUsage::ZERO };
    assert_eq!(server.stats().bills, [CallBill { call: 0, usage: usage(0), reported: Some(told) }]);
}

#[tokio::test]
async fn totals_continue_when_calls_are_no_longer_recorded() {
    let server = FakeProvider::start().await.unwrap();
    server.always(ProviderBehaviour::text("hello").with_usage(usage(0)));
    ask(&server, ProviderProtocol::OpenAi, Mode::Unary).await;
    server.keep_only_totals();
    ask(&server, ProviderProtocol::OpenAi, Mode::Unary).await;
    assert_eq!((server.calls().len(), server.stats().bills), (0, vec![]));
    assert_eq!((server.stats().received, server.stats().billed), (2, usage(0).plus(usage(0))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_counted_concurrency_never_exceeds_the_clients() {
    const CLIENTS: usize = 50;
    const ROUNDS: usize = 20;
    let server = Arc::new(FakeProvider::start().await.unwrap());
    // The first round waits until all clients are connected concurrently; the others race.
    server.respond_with(|call| {
        let latency =
            if call.number < CLIENTS as u64 { Duration::from_millis(300) } else { Duration::ZERO };
        ProviderBehaviour::text("hello").with_latency(latency)
    });
    let barrier = Arc::new(Barrier::new(CLIENTS));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (server, barrier) = (Arc::clone(&server), Arc::clone(&barrier));
            let mode = if client % 2 == 0 { Mode::Unary } else { Mode::Streamed };
            tokio::spawn(async move {
                barrier.wait().await;
                for _ in 0..ROUNDS {
                    assert_eq!(
                        ask(&server, ProviderProtocol::ALL[client % 3], mode).await.status(),
                        200
                    );
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let stats = server.stats();
    let calls = (CLIENTS * ROUNDS) as u64;
    assert_eq!(
        (stats.received, stats.answered, stats.in_flight, stats.abandoned),
        (calls, calls, 0, 0)
    );
    assert_eq!(stats.max_concurrent, CLIENTS as u64);
    assert!(stats.bills.iter().map(|bill| bill.call).eq(0..calls));
}
