//! A measured process: makes calls, reports its progress, and waits while the parent reads its
//! usage.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use moothall_core::MicroUsd;
use moothall_core::model::{ModelName, ModelRequest};
use moothall_models::catalog::ModelCard;
use moothall_models::settings::ProviderSettings;
use moothall_models::wire::{self, ReplyDelivery};
use moothall_models::{
    ApiKey, Budget, Catalog, Gateway, GatewayOptions, ProviderConnections, RecordingMode, RunLedger,
};
use tokio::sync::Barrier;

use super::Subject;
use crate::say;

const MODEL: &str = "openai/gpt-4.1-mini";

#[derive(Debug, clap::Args)]
pub(crate) struct ClientArgs {
    #[arg(long)]
    subject: Subject,
    #[arg(long)]
    url: String,
    #[arg(long)]
    at_once: u32,
    /// Make this many calls each; 0 makes one call that is never answered
    #[arg(long)]
    calls_each: u32,
}

pub(crate) fn run(args: &ClientArgs) -> Result<()> {
    // One thread, for both the baseline and the gateway: the benchmark measures CPU, not speed.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(call(args))
}

async fn call(args: &ClientArgs) -> Result<()> {
    let caller = Arc::new(Caller::new(args)?);
    caller.warm_up(args).await?;
    if args.calls_each == 0 {
        say("idle");
        // Gives the parent time to read the memory usage before the calls start.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let calls: Vec<_> = (0..args.at_once)
            .map(|_| {
                let caller = Arc::clone(&caller);
                tokio::spawn(async move { caller.once().await })
            })
            .collect();
        for call in calls {
            call.await??;
        }
        bail!("a call that is never answered was answered");
    }
    let (ready, done) = (
        Arc::new(Barrier::new(args.at_once as usize)),
        Arc::new(Barrier::new(args.at_once as usize)),
    );
    let calls: Vec<_> = (0..args.at_once)
        .map(|_| {
            let (caller, ready, done) =
                (Arc::clone(&caller), Arc::clone(&ready), Arc::clone(&done));
            let calls_each = args.calls_each;
            tokio::spawn(async move {
                caller.once().await?;
                if ready.wait().await.is_leader() {
                    say("ready");
                }
                for _ in 0..calls_each {
                    caller.once().await?;
                }
                if done.wait().await.is_leader() {
                    say("done");
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for call in calls {
        call.await??;
    }
    // The parent reads the CPU time and ends this process.
    std::future::pending().await
}

/// Makes calls with the bare client or through the gateway.
enum Caller {
    Bare { client: reqwest::Client, url: String, body: Vec<u8> },
    Gateway { gateway: Box<Gateway>, ledger: RunLedger, request: Box<ModelRequest> },
}

impl Caller {
    fn new(args: &ClientArgs) -> Result<Self> {
        let model: ModelName = MODEL.parse()?;
        let prompt = "The board asks whether the plan holds. ".repeat(105);
        let request = ModelRequest {
            timeout_ms: Some(600_000),
            ..ModelRequest::ask(model.clone(), prompt, 200)
        };
        let mut catalog = Catalog::built_in()?;
        let at_once = if args.subject == Subject::GatewayQueued { 1 } else { args.at_once };
        let settings = ProviderSettings {
            base_url: Some(args.url.clone()),
            concurrent: NonZeroU32::new(at_once),
            ..ProviderSettings::default()
        };
        catalog.configure(&[("openai".to_owned(), settings)].into())?;
        if args.subject == Subject::Bare {
            let provider = catalog.provider("openai").context("no provider")?;
            let card: ModelCard = catalog.card(&model);
            let encoded = wire::encode(provider, &card, &request, ReplyDelivery::Whole)?;
            // The gateway does the same for its own client; the error for a second installation is
            // harmless.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let client = reqwest::Client::builder().no_proxy().build()?;
            return Ok(Self::Bare {
                client,
                url: format!("{}{}", args.url, wire::endpoint(provider.wire).path),
                body: encoded.body,
            });
        }
        let keys = [("openai".to_owned(), ApiKey::new("sk-bench".to_owned()).into())].into();
        let gateway = Gateway::new(GatewayOptions {
            catalog,
            keys,
            retry: Default::default(),
            recording: RecordingMode::Off,
            connections: ProviderConnections::default(),
        });
        Ok(Self::Gateway {
            gateway: Box::new(gateway),
            // With a limit that is never reached, so reserving budget is part of the measurement.
            ledger: RunLedger::new(Budget { usd: Some(MicroUsd::new(u64::MAX)), tokens: None }),
            request: Box::new(request),
        })
    }

    /// Does all one-time work of the process before the measurement starts.
    async fn warm_up(&self, args: &ClientArgs) -> Result<()> {
        if args.calls_each == 0 {
            // The server never answers in this case, so the warm-up stops after a short time.
            let _ = tokio::time::timeout(Duration::from_millis(200), self.once()).await;
            return Ok(());
        }
        self.once().await
    }

    async fn once(&self) -> Result<()> {
        match self {
            Self::Bare { client, url, body } => {
                let request = client
                    .post(url)
                    .header("content-type", "application/json")
                    .header("authorization", "Bearer sk-bench");
                let answer =
                    request.body(body.clone()).send().await?.error_for_status()?.bytes().await?;
                if answer.is_empty() { bail!("an empty answer") } else { Ok(()) }
            }
            Self::Gateway { gateway, ledger, request } => {
                gateway.call(request, ledger, None).await.result?;
                Ok(())
            }
        }
    }
}
