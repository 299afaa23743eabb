//! A thousand concurrent calls, a third of them faulty: no reply is lost or duplicated, and no
//! limit is exceeded.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use moothall_core::MicroUsd;
use moothall_core::model::{FailureKind, ModelRequest, UsageBasis};
use moothall_models::settings::ProviderSettings;
use moothall_models::{Budget, ReplyListener, RunLedger};
use moothall_testkit::{
    ProviderBehaviour, ProviderFault, ProviderProtocol, ReplyUsage, RetryAfter,
};

use crate::support::{Desk, Heard, model_of};

const CALLS: u64 = 1000;
const CONCURRENT: u32 = 48;

/// SplitMix64, to avoid a dependency for a seeded sequence.
fn random(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn behaviour(seed: u64, call: u64) -> ProviderBehaviour {
    let good = ProviderBehaviour::text("a short answer")
        .with_latency(Duration::from_millis(random(seed, call) % 8));
    if random(seed, call ^ 0xfa17) % 100 >= 30 {
        return good;
    }
    let fault = match random(seed, call ^ 0x517e) % 9 {
        0 => ProviderFault::RateLimited { retry_after: Some(RetryAfter::Milliseconds(5)) },
        1 => ProviderFault::RateLimited { retry_after: None },
        2 => ProviderFault::ServerError,
        3 => ProviderFault::Overloaded,
        4 => ProviderFault::ConnectionReset,
        5 => ProviderFault::HalfBody,
        6 => ProviderFault::InvalidJson,
        7 => ProviderFault::ResetMidBody,
        _ => ProviderFault::SlowDrip { chunk: 64, every: Duration::from_millis(1) },
    };
    good.with_fault(fault)
}

fn request(wire: ProviderProtocol, number: u64) -> ModelRequest {
    ModelRequest::ask(model_of(wire), format!("Question number {number}: how many?"), 40)
}

async fn storm(wire: ProviderProtocol, seed: u64, budget: Budget) -> Outcome {
    let settings =
        ProviderSettings { concurrent: NonZeroU32::new(CONCURRENT), ..ProviderSettings::default() };
    let desk = Desk::with(settings, RunLedger::new(budget)).await;
    desk.server.respond_with(move |call| behaviour(seed, call.number));
    let Desk { server, gateway, ledger } = desk;
    let (gateway, ledger) = (Arc::new(gateway), Arc::new(ledger));
    let calls: Vec<_> = (0..CALLS)
        .map(|number| {
            let (gateway, ledger) = (Arc::clone(&gateway), Arc::clone(&ledger));
            tokio::spawn(async move {
                let mut heard = Heard::default();
                // Every other call is streamed.
                let listener = (number % 2 == 1).then_some(&mut heard as &mut dyn ReplyListener);
                let report = gateway.call(&request(wire, number), &ledger, listener).await;
                (report.result, ledger.spent())
            })
        })
        .collect();
    let (mut answered, mut told_to, mut refused, mut failed) = (0, 0, 0, 0);
    let mut replied = ReplyUsage::ZERO;
    for call in calls {
        let (result, spent) = call.await.unwrap();
        assert!(budget.usd.is_none_or(|cap| spent.usd <= cap), "{spent:?} exceeds {budget:?}");
        assert!(
            budget.tokens.is_none_or(|cap| spent.tokens <= cap),
            "{spent:?} exceeds {budget:?}"
        );
        match result {
            Ok(reply) => {
                // A stream may break after its last word and before its usage, which is then
                // unknown.
                if reply.usage_basis == UsageBasis::Reported {
                    replied.input += reply.usage.prompt();
                    replied.output += reply.usage.output;
                    told_to += 1;
                }
                answered += 1;
            }
            Err(failure) if failure.kind == FailureKind::OverBudget => refused += 1,
            Err(failure) => {
                assert!(failure.kind.is_retryable(), "{failure}");
                failed += 1;
            }
        }
    }
    let stats = server.stats();
    // Usage of complete replies: each was reported to exactly one caller.
    let told: Vec<_> = stats.bills.iter().filter_map(|bill| bill.reported).collect();
    assert_eq!(told.len() as u64, told_to, "every whole answer reached one caller");
    let told_tokens: u64 = told.iter().map(|usage| usage.prompt() + usage.output).sum();
    assert_eq!(told_tokens, replied.input + replied.output, "no usage is lost or doubled");
    assert_eq!(answered + refused + failed, CALLS);
    assert!(stats.max_concurrent <= u64::from(CONCURRENT), "{} at once", stats.max_concurrent);
    let spent = ledger.spent();
    let billed = stats.billed.prompt() + stats.billed.output;
    assert!(
        spent.tokens >= billed,
        "what the provider bills is covered: {} < {billed}",
        spent.tokens
    );
    if let Some(prices) = gateway.catalog().card(&model_of(wire)).prices {
        let bill = |usage: &ReplyUsage| {
            let (input, output) = (usage.prompt(), usage.output);
            prices.cost(&moothall_core::model::TokenUsage { input, output, ..Default::default() })
        };
        let billed: MicroUsd = stats.bills.iter().map(|one| bill(&one.usage)).sum();
        assert!(spent.usd >= billed, "dollars billed are covered: {} < {billed}", spent.usd);
    }
    Outcome { answered, refused, failed, received: stats.received }
}

#[derive(Debug)]
struct Outcome {
    answered: u64,
    refused: u64,
    failed: u64,
    received: u64,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_with_faults_are_neither_lost_nor_duplicated() {
    for wire in ProviderProtocol::ALL {
        let outcome = storm(wire, 7, Budget::default()).await;
        assert_eq!(outcome.refused, 0, "{outcome:?}");
        assert!(outcome.answered >= CALLS * 95 / 100, "{outcome:?}");
        assert!(outcome.received > CALLS, "faults were really injected: {outcome:?}");
        assert!(outcome.failed < CALLS / 20, "{outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dollar_budget_is_never_overshot_by_a_thousand_calls_with_faults() {
    // Ollama is free, so a dollar budget never stops it.
    for (wire, micros) in
        [(ProviderProtocol::Anthropic, 60_000), (ProviderProtocol::OpenAi, 20_000)]
    {
        let budget = Budget { usd: Some(MicroUsd::new(micros)), tokens: None };
        let outcome = storm(wire, 11, budget).await;
        assert!(
            outcome.refused > 0 && outcome.answered > 0,
            "{wire:?} ends on the way: {outcome:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_budget_is_never_overshot_by_a_thousand_calls_with_faults() {
    for wire in ProviderProtocol::ALL {
        let budget = Budget { usd: None, tokens: Some(100_000) };
        let outcome = storm(wire, 13, budget).await;
        assert!(
            outcome.refused > 0 && outcome.answered > 0,
            "{wire:?} ends on the way: {outcome:?}"
        );
    }
}
