//! Addresses with parts that belong to the customer, such as the resource of Azure OpenAI.

use super::catalog_file::{CatalogError, checked_address};
use crate::settings::ProviderSettings;

/// An address whose `{resource}`, `{project}` and `{region}` are replaced by settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AddressTemplate {
    text: String,
    resource: Option<String>,
    project: Option<String>,
    region: Option<String>,
}

impl AddressTemplate {
    pub(crate) fn new(
        provider: &str,
        text: &str,
        region: Option<String>,
    ) -> Result<Self, CatalogError> {
        let filled = ["{resource}", "{project}", "{region}"]
            .iter()
            .fold(text.to_owned(), |text, part| text.replace(part, "x"));
        let checked = checked_address(provider, &filled)?;
        let has_parts = filled != text;
        let text = if has_parts { text.trim_end_matches('/').to_owned() } else { checked };
        Ok(Self { text, region, ..Self::default() })
    }

    /// Whether customers have their own addresses.
    pub(crate) fn has_parts(&self) -> bool {
        self.text.contains('{')
    }

    pub(crate) fn has_resource(&self) -> bool {
        self.text.contains("{resource}")
    }

    pub(crate) fn set(
        &mut self,
        provider: &str,
        own: &ProviderSettings,
    ) -> Result<(), CatalogError> {
        for (setting, value) in
            [("resource", &own.resource), ("project", &own.project), ("region", &own.region)]
        {
            if value.as_deref().is_some_and(|value| !is_address_part(value)) {
                return Err(CatalogError::BadAddressPart {
                    provider: provider.to_owned(),
                    setting,
                });
            }
        }
        self.resource = own.resource.clone().or_else(|| self.resource.take());
        self.project = own.project.clone().or_else(|| self.project.take());
        self.region = own.region.clone().or_else(|| self.region.take());
        Ok(())
    }

    pub(crate) fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    /// The address, as far as its parts are known.
    pub(crate) fn address(&self) -> String {
        self.parts().into_iter().fold(self.text.clone(), |text, (name, value)| match value {
            Some(value) => text.replace(&format!("{{{name}}}"), value),
            None => text,
        })
    }

    /// The address, or `other` for a provider without a template.
    pub(crate) fn address_or(&self, other: &str) -> String {
        if self.text.is_empty() { other.to_owned() } else { self.address() }
    }

    /// The first setting without which the address is incomplete.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        self.parts()
            .into_iter()
            .find(|(name, value)| value.is_none() && self.text.contains(&format!("{{{name}}}")))
            .map(|(name, _)| name)
    }

    fn parts(&self) -> [(&'static str, Option<&str>); 3] {
        [
            ("resource", self.resource.as_deref()),
            ("project", self.project.as_deref()),
            ("region", self.region.as_deref()),
        ]
    }
}

/// Nothing that could end a host name or a segment of a path.
fn is_address_part(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
