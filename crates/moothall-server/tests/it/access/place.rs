//! A test server with two teams, each with a run and tokens, and a stub that executes no runs.

use std::sync::Arc;

use moothall_core::Sha256Hex;
use moothall_core::access::{CredentialLimits, RunOwner, ScopeSet, TeamName, TokenId};
use moothall_server::{
    AccessControl, AccessMode, AppState, EventFeed, OriginGuard, ServerLimits, ServerMetrics, serve,
};
use moothall_store::{
    AccountStore as _, Credential, NewRun, NewToken, SqliteStore, Store, random_token_id,
};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::run_service::StubRunService;

pub(crate) const OWN_RUN: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
pub(crate) const FOREIGN_RUN: &str = "02890a5d-ac96-774b-bcce-b302099a8057";
pub(crate) const NO_RUN: &str = "03890a5d-ac96-774b-bcce-b302099a8057";

pub(crate) struct Place {
    pub(crate) base: String,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) metrics: Arc<ServerMetrics>,
    pub(crate) client: Client,
    _folder: TempDir,
}

impl Place {
    pub(crate) async fn new(admits: AccessMode) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&folder.path().join("runs.db")).await.unwrap());
        store.create_team(&team("south"), 1).await.unwrap();
        for (run, name) in [(OWN_RUN, "local"), (FOREIGN_RUN, "south")] {
            store
                .create_run(NewRun {
                    run_id: run.parse().unwrap(),
                    owner: RunOwner { team: team(name), token: None },
                    cap: None,
                    spec: moothall_core::StoredSpec::from_columns("consult", Value::Null),
                    title: "HLXI".to_owned(),
                    model: "demo".to_owned(),
                    build: "0".to_owned(),
                    created_at_ms: 1,
                    inherited: Vec::new(),
                })
                .await
                .unwrap();
        }
        let closing = CancellationToken::new();
        let feed = EventFeed::new(store.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let base = format!("http://{address}");
        let access = AccessControl::new(store.clone(), admits, &base);
        let metrics = Arc::<ServerMetrics>::default();
        let app = AppState::new(
            store.clone(),
            Arc::new(StubRunService { drives: false }),
            feed,
            access,
            closing,
        )
        .with_metrics(Arc::clone(&metrics));
        tokio::spawn(serve(listener, app, OriginGuard::local(address), ServerLimits::default()));
        // Fails if another test has installed a provider; any provider is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let no_redirect = reqwest::redirect::Policy::none();
        let client = Client::builder().no_proxy().redirect(no_redirect).build().unwrap();
        Self { base, store, metrics, client, _folder: folder }
    }

    /// Creates a token for a team.
    pub(crate) async fn token(&self, name: &str, scopes: &str) -> (TokenId, Credential) {
        self.limited_token(name, scopes, None, CredentialLimits::default()).await
    }

    pub(crate) async fn limited_token(
        &self,
        name: &str,
        scopes: &str,
        expires_at_ms: Option<u64>,
        limits: CredentialLimits,
    ) -> (TokenId, Credential) {
        let (id, secret) = (random_token_id().unwrap(), Credential::token().unwrap());
        let scopes: ScopeSet = scopes.parse().unwrap();
        let token = NewToken {
            id: id.clone(),
            team: team(name),
            label: String::new(),
            secret: secret.sha256(),
            scopes,
            limits,
            created_at_ms: 1,
            expires_at_ms,
        };
        self.store.create_token(token).await.unwrap();
        (id, secret)
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.base))
    }

    pub(crate) fn post(&self, path: &str) -> RequestBuilder {
        let request = self.client.post(format!("{}{path}", self.base));
        // A body that parses, so that requests are refused only because of the caller.
        let body = match path {
            path if path.starts_with("/api/drafts/") => r#"{"seal":"0"}"#,
            path if path.ends_with("/moves") => r#"{"undo":{}}"#,
            path if path.ends_with("/fork") => r#"{"from":"moves"}"#,
            path if path.ends_with("/approve") => r#"{"move":"m1"}"#,
            _ => "{}",
        };
        request.header("content-type", "application/json").body(body)
    }

    /// Reports whether this session exists.
    pub(crate) async fn is_signed_in(&self, session: &str) -> bool {
        let secret = Sha256Hex::of(session.as_bytes());
        self.store.session(&secret).await.unwrap().is_some()
    }
}

pub(crate) fn team(name: &str) -> TeamName {
    name.parse().unwrap()
}

/// Returns the status and error code of a response; `-` if it is not a problem document.
pub(crate) async fn told(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    // A stream stays open until its run ends.
    if response.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream") {
        return (status, "-".to_owned());
    }
    let text = response.text().await.unwrap();
    let body: Value = serde_json::from_str(&text).unwrap_or_default();
    (status, body["code"].as_str().unwrap_or("-").to_owned())
}
