//! Credential formats, from vendor documentation.

use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder};

use super::SecretTier::{self, Generic, Specific};

pub(crate) struct SecretPattern {
    pub(crate) kind: &'static str,
    pub(crate) tier: SecretTier,
    /// Every match contains one of these keywords, in any case.
    pub(crate) words: &'static [&'static str],
    /// The value is the group `v`, or the whole match.
    text: &'static str,
    /// Minimum entropy of a value, in tenths of a bit per byte.
    entropy: u32,
    compiled: OnceLock<Option<Regex>>,
}

impl SecretPattern {
    const fn new(
        kind: &'static str,
        tier: SecretTier,
        words: &'static [&'static str],
        text: &'static str,
        entropy: u32,
    ) -> Self {
        Self { kind, tier, words, text, entropy, compiled: OnceLock::new() }
    }

    /// Compiled on first use, since most patterns are never needed.
    pub(crate) fn regex(&self) -> Option<&Regex> {
        let compile = || {
            let text = match self.text.strip_prefix(BOUNDARY) {
                // A distinctive prefix needs no word boundary before it.
                Some(rest) if self.words.iter().all(|word| is_distinctive(word)) => rest,
                _ => self.text,
            };
            RegexBuilder::new(text).unicode(false).size_limit(1 << 22).build().ok()
        };
        self.compiled.get_or_init(compile).as_ref()
    }

    /// Whether a match is a real value, an example or a name.
    pub(crate) fn classify(&self, value: &[u8], all: &[u8]) -> SecretMatch {
        if !is_example(value) || self.has_example_appended(value) {
            return match self.is_credential(value, all) {
                true => SecretMatch::Credential,
                false => SecretMatch::Other,
            };
        }
        match self.tier {
            Specific => SecretMatch::Example,
            Generic => SecretMatch::Other,
        }
    }

    fn is_credential(&self, value: &[u8], all: &[u8]) -> bool {
        let dense = entropy_tenths(value) >= self.entropy;
        match self.tier {
            Specific => dense,
            Generic => {
                let random = dense && value.len() >= MIN_RANDOM && looks_random(value);
                (random || looks_like_password(value)) && !is_reference(value, all)
            }
        }
    }
}

/// What a text in the format of a credential is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretMatch {
    Credential,
    /// A placeholder in a documented vendor format.
    Example,
    /// A name, a reference or a placeholder without a known format.
    Other,
}

/// Required before a token that could also occur inside a word.
const BOUNDARY: &str = r"(?:\b|_)";

/// Whether a keyword only occurs in tokens.
fn is_distinctive(word: &str) -> bool {
    word.len() >= 4 && word.contains(['_', '-'])
}

/// Shorter values without a known format count as names.
const MIN_RANDOM: usize = 12;

impl SecretPattern {
    /// Whether a value is a credential with a word such as `example` appended: the part before the
    /// word matches the whole format.
    fn has_example_appended(&self, value: &[u8]) -> bool {
        let lower = value.to_ascii_lowercase();
        let begins =
            |word: &&str| lower.windows(word.len()).rposition(|window| window == word.as_bytes());
        let Some(first) = EXAMPLE_WORDS.iter().filter_map(begins).min() else { return false };
        let left = value[..first].trim_ascii_end();
        let whole = |found: regex::bytes::Match<'_>| found.range() == (0..left.len());
        self.tier == Specific
            && !is_example(left)
            && self.regex().and_then(|regex| regex.find(left)).is_some_and(whole)
    }
}

/// Shannon entropy in tenths of a bit per byte, rounded down.
pub(crate) fn entropy_tenths(value: &[u8]) -> u32 {
    let mut counts = [0_u32; 256];
    for byte in value {
        counts[usize::from(*byte)] += 1;
    }
    let len = value.len() as f64;
    let bits: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / len)
        .map(|share| -share * share.log2())
        .sum();
    (bits * 10.0) as u32
}

/// Whether a value is a placeholder, as in documentation and tests.
fn is_example(value: &[u8]) -> bool {
    let lower: Vec<u8> = value.to_ascii_lowercase();
    let has = |word: &str| lower.windows(word.len()).any(|window| window == word.as_bytes());
    EXAMPLE_WORDS.iter().any(|word| has(word))
}

const EXAMPLE_WORDS: &[&str] = &[
    "example",
    "xxxx",
    "your_",
    "your-",
    "yourtoken",
    "yourkey",
    "placeholder",
    "changeme",
    "redacted",
    "dummy",
    "sample",
    "insert",
    "00000000",
    "11111111",
    "12345678",
    "abcdefgh",
    "aaaaaa",
    "......",
    "******",
    "<",
    "${",
    "{{",
    "}}",
    "fakekey",
    "fake_",
    "fake-",
    "not-a-",
    "notreal",
    "deadbeef",
    "testtest",
    "foobar",
    "lorem",
];

/// Whether a value looks like a password chosen by a person: letters, a digit, and a symbol that
/// names, paths and URLs do not contain. Passphrases of plain words cannot be distinguished from
/// prose.
fn looks_like_password(value: &[u8]) -> bool {
    value.iter().filter(|byte| byte.is_ascii_alphabetic()).count() >= 4
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(|byte| matches!(byte, b'!' | b'^' | b'&'))
        && !value.contains(&b'=')
}

/// Whether a value without a known format looks random: a mix of letters and digits that names do
/// not have.
fn looks_random(value: &[u8]) -> bool {
    let count = |is: fn(&u8) -> bool| value.iter().filter(|byte| is(byte)).count();
    let digits = count(u8::is_ascii_digit);
    let lower = count(u8::is_ascii_lowercase);
    let upper = count(u8::is_ascii_uppercase);
    let letters = lower + upper;
    let other = value.len() - digits - letters;
    if letters == 0 || digits == 0 && other == 0 {
        return false;
    }
    // Words joined by separators, such as `my-service-token-name`, are names.
    let words = value.split(|byte| !byte.is_ascii_alphanumeric());
    let wordy = words.clone().filter(|word| !word.is_empty()).all(|word| {
        word.iter().all(u8::is_ascii_digit)
            || word.iter().all(u8::is_ascii_lowercase)
            || word.iter().all(u8::is_ascii_uppercase)
            || (word[0].is_ascii_uppercase() && word[1..].iter().all(u8::is_ascii_lowercase))
    });
    if wordy && words.filter(|word| word.len() > 1).count() <= 6 && digits < 6 && other < 6 {
        return value.len() >= 12 && other >= 2 && digits >= 2 && has_symbol(value);
    }
    // Frequent changes between letters and digits indicate a random value.
    let turns = value.windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count();
    turns * 4 >= value.len()
}

fn has_symbol(value: &[u8]) -> bool {
    value.iter().any(|byte| {
        matches!(byte, b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'?' | b'~')
    })
}

fn class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    }
}

/// Whether a value refers to a secret instead of being one, or is a digest.
fn is_reference(value: &[u8], all: &[u8]) -> bool {
    let has =
        |text: &[u8], word: &str| text.windows(word.len()).any(|window| window == word.as_bytes());
    let uuid = value.len() == 36 && value.iter().filter(|byte| **byte == b'-').count() == 4;
    let lower = all.to_ascii_lowercase();
    let about_hash =
        ["sha1", "sha256", "sha512", "checksum", "digest", "integrity", "hash", "commit", "public"]
            .iter()
            .any(|word| has(&lower, word));
    let code = value.contains(&b'(')
        || value.starts_with(b"/")
        || value.starts_with(b"./")
        || has(value, "://")
        || has(value, "::")
        || value.starts_with(b"$")
        || value.starts_with(b"%")
        || value.starts_with(b"env.")
        || value.starts_with(b"process.env")
        || value.starts_with(b"os.environ")
        || value.starts_with(b"arn:")
        || value.starts_with(b"AAAAB3NzaC1");
    uuid || about_hash || code
}

macro_rules! table {
    ($($kind:literal $tier:ident $entropy:literal [$($word:literal),+] $text:expr;)*) => {
        pub(crate) static TABLE: LazyLock<Vec<SecretPattern>> = LazyLock::new(|| vec![
            $(SecretPattern::new($kind, $tier, &[$($word),+], $text, $entropy),)*
        ]);
    };
}

/// A token with a distinctive format. The pattern has no trailing boundary, so appending a
/// character does not hide a token.
macro_rules! token {
    ($body:literal) => {
        concat!(r"(?:\b|_)(?P<v>", $body, r")")
    };
}

table! {
    // Cloud providers.
    "aws-access-key" Specific 25 ["AKIA", "ASIA", "ABIA", "ACCA"] token!(r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}");
    "aws-secret-key" Specific 40 ["aws", "secret_access_key", "secretaccesskey"] r#"(?i:aws.{0,20}secret.{0,20}|secret_?access_?key.{0,5})["'\s:=>]{1,8}(?P<v>[A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"#;
    "aws-bedrock-key" Specific 30 ["ABSK"] token!(r"ABSK[A-Za-z0-9+/]{100,}={0,2}");
    "google-api-key" Specific 35 ["AIza"] token!(r"AIza[0-9A-Za-z_-]{35}");
    "google-oauth-secret" Specific 35 ["GOCSPX-"] token!(r"GOCSPX-[A-Za-z0-9_-]{28}");
    "google-access-token" Specific 35 ["ya29."] token!(r"ya29\.[0-9A-Za-z_-]{30,}");
    "google-refresh-token" Specific 35 ["1//0"] token!(r"1//0[0-9A-Za-z_-]{40,}");
    "azure-storage-key" Specific 40 ["AccountKey="] r"AccountKey=(?P<v>[A-Za-z0-9+/]{86}==)";
    "azure-client-secret" Specific 35 ["8Q~", "7Q~"] r"(?:^|[^A-Za-z0-9_~.-])(?P<v>[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{31,34})(?:[^A-Za-z0-9_~.-]|$)";
    "azure-sas" Specific 35 ["sig="] r"[?&]sv=\d{4}-\d\d-\d\d[^\s]{0,200}?&sig=(?P<v>[A-Za-z0-9%+/]{40,}={0,2})";
    "alibaba-access-key" Specific 30 ["LTAI"] token!(r"LTAI[A-Za-z0-9]{17,21}");
    "tencent-secret-id" Specific 30 ["AKID"] token!(r"AKID[A-Za-z0-9]{32}");
    "yandex-api-key" Specific 35 ["AQVN"] token!(r"AQVN[A-Za-z0-9_-]{35,38}");
    "digitalocean-token" Specific 30 ["dop_v1_", "doo_v1_", "dor_v1_"] token!(r"do[opr]_v1_[0-9a-f]{64}");
    "heroku-key" Specific 30 ["HRKU-"] token!(r"HRKU-[A-Za-z0-9_-]{36,60}");
    "fly-token" Specific 35 ["fo1_", "fm2_", "fm1"] token!(r"(?:fo1_[A-Za-z0-9_-]{43}|fm[12]_?[A-Za-z0-9+/]{100,}={0,2})");
    "netlify-token" Specific 30 ["nfp_"] token!(r"nfp_[A-Za-z0-9]{36,40}");
    "vercel-token" Specific 30 ["vcp_", "vci_", "vca_"] token!(r"vc[pia]_[A-Za-z0-9]{24,60}");
    "render-key" Specific 30 ["rnd_"] token!(r"rnd_[A-Za-z0-9]{32}");
    "supabase-token" Specific 30 ["sbp_", "sb_secret_"] token!(r"(?:sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{31,})");
    "planetscale-token" Specific 30 ["pscale_"] token!(r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}");
    "databricks-token" Specific 30 ["dapi"] token!(r"dapi[0-9a-f]{32}(?:-\d)?");
    "cloudflare-ca-key" Specific 30 ["v1.0-"] token!(r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}");
    "tailscale-key" Specific 30 ["tskey-"] token!(r"tskey-(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}");
    // Code hosting and package registries.
    "github-token" Specific 30 ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"] token!(r"gh[pousr]_[0-9A-Za-z]{36,251}");
    "github-fine-grained-token" Specific 30 ["github_pat_"] token!(r"github_pat_[0-9A-Za-z]{22}_[0-9A-Za-z]{59}");
    "gitlab-token" Specific 30 ["glpat-", "gldt-", "glptt-", "glrt-", "glsoat-", "glcbt-", "glft-", "glimt-", "glagent-"] token!(r"gl(?:pat|dt|ptt|rt|soat|cbt|ft|imt|agent)-[0-9A-Za-z_.-]{20,64}");
    "npm-token" Specific 30 ["npm_"] token!(r"npm_[A-Za-z0-9]{36}");
    "pypi-token" Specific 30 ["pypi-AgE"] token!(r"pypi-AgE[A-Za-z0-9_-]{60,}");
    "rubygems-key" Specific 30 ["rubygems_"] token!(r"rubygems_[0-9a-f]{48}");
    "crates-token" Specific 35 ["cio"] token!(r"cio[A-Za-z0-9]{32}");
    "clojars-token" Specific 30 ["CLOJARS_"] r"(?i:CLOJARS_)[a-z0-9]{60}";
    "nuget-key" Specific 35 ["oy2"] token!(r"oy2[a-z0-9]{43}");
    "docker-token" Specific 30 ["dckr_pat_", "dckr_oat_"] token!(r"dckr_[po]at_[A-Za-z0-9_-]{27,32}");
    "artifactory-key" Specific 35 ["AKCp"] token!(r"AKCp[A-Za-z0-9]{65,}");
    "sourcegraph-token" Specific 30 ["sgp_"] token!(r"sgp_(?:[0-9a-fA-F]{16}_|local_)?[0-9a-fA-F]{40}");
    "buildkite-token" Specific 30 ["bkua_"] token!(r"bkua_[0-9a-f]{40}");
    "circleci-token" Specific 30 ["CCIPAT_", "CCIPRJ_"] token!(r"CCI(?:PAT|PRJ)_[A-Za-z0-9]{20,24}_[0-9a-f]{40}");
    "terraform-token" Specific 35 [".atlasv1."] token!(r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}");
    "pulumi-token" Specific 30 ["pul-"] token!(r"pul-[0-9a-f]{40}");
    "vault-token" Specific 35 ["hvs.", "hvb.", "hvr."] token!(r"hv[sbr]\.[A-Za-z0-9_-]{24,}");
    "doppler-token" Specific 30 ["dp.pt.", "dp.st.", "dp.ct.", "dp.sa."] token!(r"dp\.(?:pt|st|ct|sa)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}");
    "onepassword-token" Specific 35 ["ops_eyJ"] token!(r"ops_eyJ[A-Za-z0-9+/]{200,}={0,3}");
    "infisical-token" Specific 35 ["st."] token!(r"st\.[0-9a-f]{24}\.[0-9a-f]{32}\.[0-9a-f]{32}");
    // Model providers.
    "openai-key" Specific 35 ["T3BlbkFJ"] token!(r"sk-(?:(?:proj|svcacct|admin)-)?[A-Za-z0-9_-]{20,80}T3BlbkFJ[A-Za-z0-9_-]{20,80}");
    "openai-project-key" Specific 35 ["sk-proj-", "sk-svcacct-", "sk-admin-"] token!(r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,200}");
    "anthropic-key" Specific 35 ["sk-ant-"] token!(r"sk-ant-(?:api03|admin01|oat01|sid01)-[A-Za-z0-9_-]{80,120}");
    "openrouter-key" Specific 30 ["sk-or-"] token!(r"sk-or-v1-[0-9a-f]{64}");
    "huggingface-token" Specific 30 ["hf_", "api_org_"] token!(r"(?:hf_|api_org_)[A-Za-z]{34}");
    "groq-key" Specific 35 ["gsk_"] token!(r"gsk_[A-Za-z0-9]{52}");
    "xai-key" Specific 35 ["xai-"] token!(r"xai-[A-Za-z0-9]{80}");
    "perplexity-key" Specific 30 ["pplx-"] token!(r"pplx-[A-Za-z0-9]{48}");
    "replicate-token" Specific 30 ["r8_"] token!(r"r8_[A-Za-z0-9]{37}");
    "fireworks-key" Specific 30 ["fw_"] token!(r"fw_[A-Za-z0-9]{22,24}");
    "nvidia-key" Specific 35 ["nvapi-"] token!(r"nvapi-[A-Za-z0-9_-]{64}");
    "langsmith-key" Specific 30 ["lsv2_"] token!(r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}");
    "cerebras-key" Specific 30 ["csk-"] token!(r"csk-[a-z0-9]{48}");
    // Payment.
    "stripe-key" Specific 30 ["sk_live_", "rk_live_", "sk_test_", "rk_test_", "sk_prod_"] token!(r"[sr]k_(?:live|test|prod)_[0-9A-Za-z]{20,247}");
    "stripe-webhook-secret" Specific 30 ["whsec_"] token!(r"whsec_[A-Za-z0-9+/]{32,64}=?");
    "square-token" Specific 30 ["sq0atp-", "sq0csp-", "sq0idp-"] token!(r"sq0(?:atp-[0-9A-Za-z_-]{22}|csp-[0-9A-Za-z_-]{43})");
    "square-access-token" Specific 35 ["EAAA"] token!(r"EAAA[a-zA-Z0-9_-]{60}");
    "braintree-token" Specific 30 ["access_token$production$"] r"access_token\$production\$[0-9a-z]{16}\$[0-9a-f]{32}";
    "shopify-token" Specific 30 ["shpat_", "shpca_", "shppa_", "shpss_"] token!(r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}");
    "plaid-token" Specific 30 ["access-sandbox-", "access-development-", "access-production-"] token!(r"access-(?:sandbox|development|production)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
    "flutterwave-key" Specific 30 ["FLWSECK"] r"FLWSECK(?:_TEST)?-[0-9a-hA-H]{12,32}(?:-X)?";
    "razorpay-key" Specific 30 ["rzp_live_", "rzp_test_"] token!(r"rzp_(?:live|test)_[A-Za-z0-9]{14}");
    "adyen-key" Specific 35 ["AQE"] token!(r"AQE[A-Za-z0-9+/]{60,}={0,2}");
    // Messaging and email.
    "slack-token" Specific 28 ["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe."] token!(r"xox(?:[bpars]|e(?:\.xox[bp])?)-[0-9A-Za-z-]{20,260}");
    "slack-app-token" Specific 28 ["xapp-"] token!(r"xapp-\d-[A-Z0-9]{9,13}-\d{10,14}-[0-9a-f]{64}");
    "slack-webhook" Specific 30 ["hooks.slack.com"] r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<v>[A-Za-z0-9]{8,14}/[A-Za-z0-9]{8,14}/[A-Za-z0-9]{20,48})";
    "discord-token" Specific 35 ["discord", "bot", "token"] r"(?:^|[^A-Za-z0-9_.-])(?P<v>[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38})(?:[^A-Za-z0-9_.-]|$)";
    "discord-webhook" Specific 35 ["discord.com/api/webhooks", "discordapp.com/api/webhooks"] r"discord(?:app)?\.com/api/webhooks/\d{17,20}/(?P<v>[A-Za-z0-9_-]{60,72})";
    "telegram-token" Specific 35 [":AA"] r"(?:^|[^A-Za-z0-9_])(?P<v>\d{8,10}:AA[A-Za-z0-9_-]{33})(?:[^A-Za-z0-9_-]|$)";
    "teams-webhook" Specific 30 ["webhook.office.com"] r"[a-z0-9-]+\.webhook\.office\.com/webhookb2/(?P<v>[0-9a-f-]{36}@[0-9a-f-]{36}/IncomingWebhook/[0-9a-f]{32}/[0-9a-f-]{36})";
    "sendgrid-key" Specific 35 ["SG."] token!(r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}");
    "mailgun-key" Specific 30 ["key-"] token!(r"key-[0-9a-f]{32}");
    "mailchimp-key" Specific 30 ["-us"] token!(r"[0-9a-f]{32}-us\d{1,2}");
    "brevo-key" Specific 30 ["xkeysib-", "xsmtpsib-"] token!(r"x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}");
    "resend-key" Specific 30 ["re_"] token!(r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}");
    "twilio-key" Specific 30 ["SK", "AC"] r"(?i:twilio)[^\n]{0,60}?[^A-Za-z0-9](?P<v>(?:SK|AC)[0-9a-f]{32})(?:[^A-Za-z0-9]|$)";
    // Productivity and business tools.
    "atlassian-token" Specific 35 ["ATATT3xFf"] token!(r"ATATT3xFf[A-Za-z0-9_=-]{100,250}");
    "linear-key" Specific 30 ["lin_api_", "lin_oauth_"] token!(r"lin_(?:api|oauth)_[A-Za-z0-9]{40,64}");
    "notion-token" Specific 30 ["ntn_", "secret_"] token!(r"(?:ntn_[A-Za-z0-9]{43,50}|secret_[A-Za-z0-9]{43})");
    "figma-token" Specific 30 ["figd_", "figp_"] token!(r"fig[dp]_[A-Za-z0-9_-]{40,44}");
    "airtable-token" Specific 30 ["pat"] token!(r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}");
    "asana-token" Specific 28 ["asana"] r#"(?i:asana)[^\n]{0,40}?["'\s=:](?P<v>[0-9]/[0-9]{13,17}:[0-9a-f]{32})"#;
    "dropbox-token" Specific 35 ["sl."] token!(r"sl\.(?:u\.)?[A-Za-z0-9_-]{130,}");
    "hubspot-token" Specific 30 ["pat-na", "pat-eu", "pat-ap"] token!(r"pat-(?:na|eu|ap)\d-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
    "typeform-token" Specific 35 ["tfp_"] token!(r"tfp_[A-Za-z0-9_.=-]{50,64}");
    "contentful-token" Specific 35 ["CFPAT-"] token!(r"CFPAT-[A-Za-z0-9_-]{43}");
    "postman-key" Specific 30 ["PMAK-"] token!(r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}");
    "readme-key" Specific 30 ["rdme_"] token!(r"rdme_[a-z0-9]{70}");
    "mapbox-token" Specific 35 ["sk.eyJ"] token!(r"sk\.eyJ[A-Za-z0-9_-]{60,}\.[A-Za-z0-9_-]{20,}");
    "shippo-token" Specific 30 ["shippo_live_", "shippo_test_"] token!(r"shippo_(?:live|test)_[0-9a-f]{40}");
    "duffel-token" Specific 30 ["duffel_live_", "duffel_test_"] token!(r"duffel_(?:live|test)_[A-Za-z0-9_=-]{43}");
    "easypost-key" Specific 30 ["EZAK", "EZTK"] token!(r"EZ[AT]K[A-Za-z0-9]{54}");
    "prefect-key" Specific 30 ["pnu_"] token!(r"pnu_[A-Za-z0-9]{36}");
    "frameio-token" Specific 35 ["fio-u-"] token!(r"fio-u-[A-Za-z0-9_=-]{64}");
    "adobe-secret" Specific 30 ["p8e-", "p8-"] token!(r"p8e?-[A-Za-z0-9_-]{32}");
    "okta-token" Specific 35 ["okta"] r#"(?i:okta)[^\n]{0,40}?["'\s=:](?P<v>00[A-Za-z0-9_-]{40})(?:[^A-Za-z0-9_-]|$)"#;
    // Monitoring.
    "grafana-token" Specific 30 ["glsa_", "glc_"] token!(r"(?:glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_eyJ[A-Za-z0-9+/]{40,400}={0,2})");
    "newrelic-key" Specific 30 ["NRAK-", "NRII-", "NRJS-"] token!(r"(?:NRAK-[A-Z0-9]{27}|NRII-[A-Za-z0-9_-]{32}|NRJS-[0-9a-f]{19})");
    "sentry-token" Specific 30 ["sntrys_", "sntryu_"] token!(r"(?:sntryu_[0-9a-f]{64}|sntrys_eyJ[A-Za-z0-9+/=_]{80,}_[A-Za-z0-9+/]{43})");
    "dynatrace-token" Specific 30 ["dt0c01.", "dt0s0"] token!(r"dt0[cs]0[0-9]\.[A-Z0-9]{24}\.[A-Z0-9]{64}");
    "datadog-key" Specific 30 ["datadog", "dd_api", "dd_app", "dd-api"] r#"(?i:datadog|dd[_-]a(?:pi|pp))[^\n]{0,40}?["'\s=:](?P<v>[0-9a-f]{32}(?:[0-9a-f]{8})?)(?:[^0-9A-Za-z]|$)"#;
    "pagerduty-key" Specific 28 ["pagerduty", "pd_api"] r#"(?i:pagerduty|pd_api)[^\n]{0,40}?["'\s=:](?P<v>[uy]\+[A-Za-z0-9_-]{18}|[A-Za-z0-9_-]{20})(?:[^0-9A-Za-z_-]|$)"#;
    "posthog-key" Specific 30 ["phx_"] token!(r"phx_[A-Za-z0-9]{43,48}");
    // Social networks.
    "facebook-token" Specific 35 ["EAA"] token!(r"EAA[MC][A-Za-z0-9]{100,}");
    "twitter-bearer" Specific 30 ["AAAAAAAAAAAAAAAAAAAAA"] r"(?:^|[^A-Za-z0-9])A{21,22}(?P<v>[A-Za-z0-9%]{60,100})";
    "linkedin-secret" Specific 30 ["WPL_AP1"] token!(r"WPL_AP1\.[A-Za-z0-9]{16}\.[A-Za-z0-9+/=]{8}");
    // Private keys and logins.
    "private-key" Specific 0 ["PRIVATE KEY"] r"-----(?i:BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?)-----(?:\s|\\n|\\r|[A-Za-z-]+: ?[^\n]*\n)*(?P<v>[A-Za-z0-9+/]{20,})";
    "putty-key" Specific 0 ["PuTTY-User-Key-File"] r"PuTTY-User-Key-File-\d: [^\n]+\n(?s:.{0,4000}?)Private-Lines: \d+\r?\n(?P<v>[A-Za-z0-9+/=]{20,})";
    "age-key" Specific 30 ["AGE-SECRET-KEY-1"] r"AGE-SECRET-KEY-1[A-Z0-9]{58}";
    "jwt" Specific 40 ["eyJ"] r"(?:^|[^A-Za-z0-9_-])(?P<v>eyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{20,})";
    "login-in-url" Specific 25 ["://"] r#"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@"'<>{}$]{1,64}:(?P<v>[^\s/:@"'<>{}$%*\[\]()]{6,128})@[a-z0-9.-]+\b"#;
    "docker-login" Specific 30 ["\"auth\""] r#""auth"\s*:\s*"(?P<v>[A-Za-z0-9+/]{20,}={0,2})""#;
    "netrc-login" Specific 25 ["machine"] r"(?m)^\s*machine\s+\S+\s+login\s+\S+\s+password\s+(?P<v>\S{8,})";
    "basic-auth-header" Specific 30 ["Basic "] r#"(?i:authorization)["']?\s*[:=,]\s*["']?Basic (?P<v>[A-Za-z0-9+/]{16,}={0,2})"#;
    "bearer-header" Specific 35 ["Bearer "] r#"(?i:authorization)["']?\s*[:=,]\s*["']?Bearer (?P<v>[A-Za-z0-9_.~+/-]{24,}=*)"#;
    // Generic patterns.
    "assigned-secret" Generic 33 ["passw", "passphrase", "secret", "token", "api_key", "apikey", "api-key", "access_key", "accesskey", "private_key", "auth_key", "credential", "signing_key", "encryption_key", "pwd"]
        r#"(?i)(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key|signing[_-]?key|encryption[_-]?key|credentials?)[a-z0-9_.-]{0,24}["'`\])]{0,2}\s{0,4}(?::\s{0,3}(?:&?'?[a-z]{1,10}\s{0,3}=)|:=|=>|=|:)\s{0,4}[bru]?["'`](?P<v>[^\s"'`\\]{8,200})["'`]"#;
    "assigned-secret-plain" Generic 35 ["passw", "secret", "token", "api_key", "apikey", "access_key", "private_key", "auth_key", "credential"]
        r#"(?m)^\s*(?:export\s+|-\s+)?[A-Za-z0-9_.-]{0,40}(?i:passw(?:or)?d|secret|token|api_?key|access_?key|private_?key|auth_?key|credential)[A-Za-z0-9_.-]{0,24}\s{0,2}[=:]\s{0,2}(?P<v>[A-Za-z0-9+/_.~!@#%^*-]{16,200}={0,2})\s*$"#;
    "secret-argument" Generic 35 ["--password", "--token", "--api-key", "--secret"]
        r#"--(?:password|token|api-key|secret)[ =]["']?(?P<v>[A-Za-z0-9+/_.~!@#%^*-]{12,200}={0,2})"#;
}
