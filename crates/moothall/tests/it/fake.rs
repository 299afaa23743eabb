//! Runs the fake provider next to the program.

use std::ops::Deref;
use std::sync::mpsc;

use moothall_testkit::{FakeProvider, ProviderBehaviour, ProviderFault, ProviderProtocol};
use tokio::runtime::{Builder, Runtime};

use crate::world::World;

/// A fake provider with its runtime.
pub(crate) struct Fake {
    server: FakeProvider,
    _runtime: Runtime,
}

impl Fake {
    pub(crate) fn start() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = runtime.block_on(FakeProvider::start()).unwrap();
        Self { server, _runtime: runtime }
    }

    /// Answers every call with this text.
    pub(crate) fn saying(text: &str) -> Self {
        let fake = Self::start();
        fake.always(ProviderBehaviour::text(text));
        fake
    }

    /// Handles the first calls with these behaviors, in order.
    pub(crate) fn scripted<B: Into<ProviderBehaviour>>(
        behaviours: impl IntoIterator<Item = B>,
    ) -> Self {
        let fake = Self::start();
        fake.script(behaviours);
        fake
    }

    /// Never answers; the receiver gets a message for every call.
    pub(crate) fn hanging() -> (Self, mpsc::Receiver<()>) {
        let fake = Self::start();
        let (arrived, arrivals) = mpsc::channel();
        fake.respond_with(move |_| {
            let _ = arrived.send(());
            ProviderFault::Hang.into()
        });
        (fake, arrivals)
    }

    /// The `--base-url` for a provider with the OpenAI wire format.
    pub(crate) fn url(&self) -> String {
        self.base_url(ProviderProtocol::OpenAi)
    }

    /// Writes `fake.toml`, which points six providers to this one and shortens retry delays.
    /// Appends `more`.
    pub(crate) fn configure(&self, world: &World, more: &str) {
        let mut file = "[retry]\nfirst_delay = \"1ms\"\nmax_delay = \"2ms\"\n".to_owned();
        for (provider, wire) in [
            ("anthropic", ProviderProtocol::Anthropic),
            ("google", ProviderProtocol::OpenAi),
            ("groq", ProviderProtocol::OpenAi),
            ("ollama", ProviderProtocol::Ollama),
            ("openai", ProviderProtocol::OpenAi),
            ("openrouter", ProviderProtocol::OpenAi),
        ] {
            file.push_str(&format!(
                "[provider.{provider}]\nbase_url = \"{}\"\n",
                self.base_url(wire)
            ));
        }
        world.write("fake.toml", &(file + more));
    }
}

impl Deref for Fake {
    type Target = FakeProvider;

    fn deref(&self) -> &FakeProvider {
        &self.server
    }
}
