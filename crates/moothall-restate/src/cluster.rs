//! Restate as its clients see it: over HTTP, on a network that nobody else can reach.

use std::time::Duration;

use moothall_core::RunId;
use moothall_core::money::Spent;
use moothall_models::Budget;
use reqwest::{Client, Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::budget::{Room, Settle, Wish};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Nothing that is asked here takes long: runs are started, not waited for.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A Restate server or cluster.
#[derive(Debug, Clone)]
pub struct Cluster {
    client: Client,
    ingress: String,
    admin: String,
}

/// Restate did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// Nobody answered.
    #[error("Restate cannot be reached at {address}")]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// It said no.
    #[error("Restate answered {status}: {words}")]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// What it said, cut to a bearable length.
        words: String,
    },
    /// It answered something else than it should.
    #[error("Restate's answer cannot be understood")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A run as Restate's own tables know it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Invocation {
    /// The service and the key: `Debate/…/run`.
    pub target: String,
    /// `running`, `suspended`, `backing-off`, …
    pub status: String,
}

impl Cluster {
    /// A cluster at these addresses: where it takes requests, and where it is administered.
    pub fn new(ingress: &str, admin: &str) -> Result<Self, ClusterError> {
        // The first caller in the process decides; any provider will do, so a refusal is not an error.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .tcp_nodelay(true)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|source| ClusterError::Unreachable { address: ingress.to_owned(), source })?;
        let address = |address: &str| address.trim_end_matches('/').to_owned();
        Ok(Self { client, ingress: address(ingress), admin: address(admin) })
    }

    /// Starts a run that the store knows. To start it twice is to start it once.
    pub async fn start(&self, run_id: &RunId) -> Result<(), ClusterError> {
        let url = format!("{}/Consultation/{run_id}/run/send", self.ingress);
        self.ask(Method::POST, &url, None::<&()>).await.map(drop)
    }

    /// Lets a run go on after its pause, counted from 1; what is absent of the budget stays.
    pub async fn go_on(
        &self,
        run_id: &RunId,
        pause: u32,
        budget: Budget,
    ) -> Result<(), ClusterError> {
        let url = format!("{}/Consultation/{run_id}/go_on", self.ingress);
        self.ask(Method::POST, &url, Some(&(pause, budget))).await.map(drop)
    }

    /// Makes workers at this address known: runs that begin from now on go to them, and runs under
    /// way stay where they are. To do it twice is to do it once.
    pub async fn register(&self, url: &str) -> Result<(), ClusterError> {
        let body = json!({ "uri": url, "force": false });
        match self.ask(Method::POST, &format!("{}/deployments", self.admin), Some(&body)).await {
            Err(ClusterError::Refused { status, .. }) if status == StatusCode::CONFLICT => Ok(()),
            registered => registered.map(drop),
        }
    }

    /// Whether it answers, on both addresses.
    pub async fn healthy(&self) -> Result<(), ClusterError> {
        for url in [format!("{}/restate/health", self.ingress), format!("{}/health", self.admin)] {
            self.ask(Method::GET, &url, None::<&()>).await?;
        }
        Ok(())
    }

    /// Where workers are.
    pub async fn workers(&self) -> Result<Vec<String>, ClusterError> {
        let url = format!("{}/deployments", self.admin);
        let found: Value = self.read(Method::GET, &url, None::<&()>).await?;
        let found = found.get("deployments").and_then(Value::as_array).cloned();
        let uri = |one: &Value| one.get("uri").and_then(Value::as_str).map(str::to_owned);
        Ok(found.unwrap_or_default().iter().filter_map(uri).collect())
    }

    /// Everything that is not done yet.
    pub async fn under_way(&self) -> Result<Vec<Invocation>, ClusterError> {
        #[derive(serde::Deserialize)]
        struct Rows {
            rows: Vec<Invocation>,
        }
        let query = "SELECT target, status FROM sys_invocation WHERE status <> 'completed' \
                     ORDER BY target LIMIT 1000";
        let url = format!("{}/query", self.admin);
        let found: Rows = self.read(Method::POST, &url, Some(&json!({ "query": query }))).await?;
        Ok(found.rows)
    }

    pub(crate) async fn reserve(&self, run_id: &RunId, wish: &Wish) -> Result<Room, ClusterError> {
        let url = format!("{}/Purse/{run_id}/reserve", self.ingress);
        self.read(Method::POST, &url, Some(wish)).await
    }

    pub(crate) async fn settle(
        &self,
        run_id: &RunId,
        settle: &Settle,
    ) -> Result<Spent, ClusterError> {
        let url = format!("{}/Purse/{run_id}/settle", self.ingress);
        self.read(Method::POST, &url, Some(settle)).await
    }

    async fn read<T: DeserializeOwned>(
        &self,
        method: Method,
        url: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, ClusterError> {
        let bytes = self.ask(method, url, body).await?.bytes().await;
        let bytes = bytes.map_err(|error| ClusterError::Unreadable(error.into()))?;
        serde_json::from_slice(&bytes).map_err(|error| ClusterError::Unreadable(error.into()))
    }

    async fn ask(
        &self,
        method: Method,
        url: &str,
        body: Option<&impl Serialize>,
    ) -> Result<reqwest::Response, ClusterError> {
        let mut request = self.client.request(method, url).header("accept", "application/json");
        if let Some(body) = body {
            let body = serde_json::to_vec(body);
            let body = body.map_err(|error| ClusterError::Unreadable(error.into()))?;
            request = request.header("content-type", "application/json").body(body);
        }
        let unreachable = |source| ClusterError::Unreachable { address: url.to_owned(), source };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let words = response.text().await.unwrap_or_default();
        let words = words.chars().take(300).collect();
        Err(ClusterError::Refused { status: status.as_u16(), words })
    }
}
