//! The contract of all backends, tested on each of them.

use std::sync::Arc;

use moothall_core::model::{ModelRequest, UsageBasis};
use moothall_models::settings::ProviderSettings;
use moothall_models::{
    Catalog, Gateway, GatewayOptions, ProviderConnections, RecordingMode, RunLedger,
    ScriptedBackend, said,
};
use moothall_testkit::{FakeProvider, ProviderBehaviour, ProviderProtocol};

use crate::support::{Heard, gateway, model_of};

/// The same request gives the same text, streamed or not, and a cost that matches the ledger.
async fn check(gateway: &Gateway, model: &str) {
    let request = ModelRequest::ask(model.parse().unwrap(), "What is a moot hall?", 200);
    let ledger = RunLedger::unlimited();
    let read = gateway.call(&request, &ledger, None).await.result.unwrap();
    let mut heard = Heard::default();
    let again = gateway.call(&request, &ledger, Some(&mut heard)).await.result.unwrap();
    assert_eq!(again, read);
    assert_eq!((heard.text, heard.restarts), (read.text, 0));
    match read.usage_basis {
        UsageBasis::Reported => assert_eq!(ledger.spent().tokens, read.usage.total() * 2),
        // Without usage data the upper bound counts.
        _ => assert!(ledger.spent().tokens > read.usage.total() * 2),
    }
}

#[tokio::test]
async fn provider_backends_satisfy_the_backend_contract() {
    let server = FakeProvider::start().await.unwrap();
    server.always(ProviderBehaviour::text("A hall where a town argued a matter."));
    let gateway = gateway(&server, ProviderSettings::default());
    for wire in ProviderProtocol::ALL {
        check(&gateway, &model_of(wire).to_string()).await;
    }
}

#[tokio::test]
async fn demo_and_scripted_backends_satisfy_the_backend_contract() {
    let gateway = Gateway::new(GatewayOptions {
        catalog: Catalog::built_in().unwrap(),
        keys: Default::default(),
        retry: Default::default(),
        recording: RecordingMode::Off,
        connections: ProviderConnections::default(),
    })
    .with_backend("openai", Arc::new(ScriptedBackend::function(|_| Ok(said("A hall.")))));
    check(&gateway, "demo").await;
    check(&gateway, "openai/gpt-4.1-mini").await;
}
