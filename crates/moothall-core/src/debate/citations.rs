//! Extracts citations from a turn: `[F0:Revenue:FY2025]` in prose, `F0:Revenue:FY2025` in an
//! evidence list. Whether the cited facts exist is not checked here.

/// The maximum number of citations kept per turn.
const MAX_CITES: usize = 24;

const MAX_CITE_BYTES: usize = 80;

/// The citations of one turn, without duplicates, in order of appearance.
pub(crate) fn cites<'a>(
    prose: &str,
    evidence: impl IntoIterator<Item = &'a String>,
) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let in_brackets = prose.split('[').skip(1).filter_map(|rest| Some(rest.split_once(']')?.0));
    let listed = evidence.into_iter().map(|id| id.trim().trim_matches(['[', ']']));
    // `[F0:Revenue:FY2025; F0:Revenue:FY2024]` holds two citations.
    let ids = in_brackets.chain(listed).flat_map(|ids| ids.split([';', ','])).map(str::trim);
    for id in ids.filter(|id| is_cite(id)) {
        if !found.iter().any(|known| known == id) {
            found.push(id.to_owned());
        }
        if found.len() == MAX_CITES {
            break;
        }
    }
    found
}

/// Whether this is a kind (a capital letter and digits), a colon and a name, in characters that are
/// safe in a prompt.
fn is_cite(id: &str) -> bool {
    let Some((kind, name)) = id.split_once(':') else { return false };
    let mut signs = kind.bytes();
    // Assumptions such as `[A1: we guess]` are not evidence.
    let is_kind = signs.next().is_some_and(|letter| letter.is_ascii_uppercase() && letter != b'A')
        && (1..=2).contains(&signs.len())
        && signs.all(|digit| digit.is_ascii_digit());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b":.-_#&/".contains(&byte);
    is_kind && !name.is_empty() && id.len() <= MAX_CITE_BYTES && name.bytes().all(plain)
}

#[cfg(test)]
#[path = "citations_tests.rs"]
mod tests;
