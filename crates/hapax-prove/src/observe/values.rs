//! Values as servers send them as text, and text as they take it.

use hapax_services::ServiceError;

type Result<T> = std::result::Result<T, ServiceError>;
/// A row.
pub(super) type Values = [Option<String>];

/// A text as a literal.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

pub(super) fn text(row: &Values, column: usize) -> Result<String> {
    row.get(column).cloned().flatten().ok_or_else(|| ServiceError::Protocol(format!("NULL in column {column}")))
}

pub(super) fn value<T: std::str::FromStr>(row: &Values, column: usize) -> Result<T> {
    parsed(row.get(column).cloned().flatten())
}

pub(super) fn parsed<T: std::str::FromStr>(text: Option<String>) -> Result<T> {
    let number = text.as_deref().and_then(|text| text.parse().ok());
    number.ok_or_else(|| ServiceError::Protocol(format!("{text:?} in place of a number")))
}

pub(super) fn bytes(hex: &str) -> Result<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(pair).collect::<Option<_>>().ok_or_else(|| ServiceError::Protocol("bytes that are no hex".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: bytes come back as they were, and nothing breaks on what are none. Method: some of each.
    #[test]
    fn hex_is_read_or_refused() {
        assert_eq!(bytes("007bff").expect("it is hex"), [0, 123, 255]);
        assert!(bytes("0g").is_err() && bytes("é").is_err());
        assert_eq!(quoted("it's"), "'it''s'");
    }
}
