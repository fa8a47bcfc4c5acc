//! How the configuration names a key strategy, a key template and a hash.

use std::fmt;
use std::str::FromStr;

use super::guarantee::{UnknownName, by_name};

/// `deduplication.strategy`, by name. What each one means is the key module's affair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StrategyName {
    /// `content`: the key fields, and the version unless `unique: true`.
    Content,
    /// `content-with-epoch`: the key fields and the epoch.
    ContentWithEpoch,
    /// `composite`: key fields, epoch and sequence together.
    Composite,
    /// `epoch-sequence`: the epoch and a count within it.
    EpochSequence,
    /// `source-offset`: the source's position and the emit index.
    SourceOffset,
    /// `change-key`: database, schema, table, primary key, change version.
    ChangeKey,
    /// `derived`: the sorted keys of all contributors.
    Derived,
    /// `window-sequence`: the window and a count within it.
    WindowSequence,
    /// `custom:NAME`: a function that the embedding program registered under that name.
    Custom {
        /// Its name.
        name: String,
    },
}

const CUSTOM: &str = "custom:";
const NAMED: [(&str, StrategyName); 8] = [
    ("content", StrategyName::Content),
    ("content-with-epoch", StrategyName::ContentWithEpoch),
    ("composite", StrategyName::Composite),
    ("epoch-sequence", StrategyName::EpochSequence),
    ("source-offset", StrategyName::SourceOffset),
    ("change-key", StrategyName::ChangeKey),
    ("derived", StrategyName::Derived),
    ("window-sequence", StrategyName::WindowSequence),
];

/// A text that names no key strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no key strategy; there are {}, and custom:NAME", NAMED.map(|(name, _)| name).join(", "))]
pub struct NoStrategy {
    /// What was written.
    pub text: String,
}

impl FromStr for StrategyName {
    type Err = NoStrategy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let custom = text.strip_prefix(CUSTOM).map(str::trim).filter(|name| !name.is_empty());
        if let Some(name) = custom {
            return Ok(Self::Custom { name: name.to_owned() });
        }
        let found = NAMED.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, strategy)| strategy).ok_or_else(|| NoStrategy { text: text.to_owned() })
    }
}

impl fmt::Display for StrategyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Custom { name } => write!(f, "{CUSTOM}{name}"),
            Self::Content => f.write_str("content"),
            Self::ContentWithEpoch => f.write_str("content-with-epoch"),
            Self::Composite => f.write_str("composite"),
            Self::EpochSequence => f.write_str("epoch-sequence"),
            Self::SourceOffset => f.write_str("source-offset"),
            Self::ChangeKey => f.write_str("change-key"),
            Self::Derived => f.write_str("derived"),
            Self::WindowSequence => f.write_str("window-sequence"),
        }
    }
}

/// `idempotencyKey.hashAlgorithm`: there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HashAlgorithm {
    /// SHA-256.
    #[default]
    Sha256,
}

impl HashAlgorithm {
    /// The name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SHA256",
        }
    }
}

impl FromStr for HashAlgorithm {
    type Err = UnknownName;

    /// Reads `SHA256`, in any case, with or without a hyphen.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = text.replace('-', "").to_ascii_uppercase();
        by_name("hash algorithm", &[Self::Sha256], Self::name, &plain)
            .map_err(|unknown| UnknownName { text: text.to_owned(), ..unknown })
    }
}

/// `idempotencyKey.format`: names in braces. What stands between them is for the eye and never enters the hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTemplate {
    text: String,
    names: Vec<String>,
}

/// A text that is no key template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no key format: {why}; write names in braces, such as {{table}}:{{primaryKey}}")]
pub struct NoTemplate {
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl KeyTemplate {
    /// The default: `{database}:{table}:{primaryKey}:{changeVersion}`.
    #[must_use]
    pub fn change_key() -> Self {
        let names = ["database", "table", "primaryKey", "changeVersion"].map(str::to_owned).to_vec();
        Self { text: "{database}:{table}:{primaryKey}:{changeVersion}".to_owned(), names }
    }

    /// The names, in order; never empty.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

impl fmt::Display for KeyTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for KeyTemplate {
    type Err = NoTemplate;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let no_template = |why| NoTemplate { text: text.to_owned(), why };
        let mut names: Vec<String> = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find(['{', '}']) {
            if rest[open..].starts_with('}') {
                return Err(no_template("a brace is closed that was not opened"));
            }
            let inside = &rest[open + 1..];
            let close = inside.find(['{', '}']).filter(|at| inside[*at..].starts_with('}'));
            let close = close.ok_or_else(|| no_template("a brace is not closed"))?;
            match inside[..close].trim() {
                "" => return Err(no_template("a name is empty")),
                name if names.iter().any(|known| known == name) => return Err(no_template("a name is there twice")),
                name => names.push(name.to_owned()),
            }
            rest = &inside[close + 1..];
        }
        if names.is_empty() {
            return Err(no_template("there is no name in it"));
        }
        Ok(Self { text: text.to_owned(), names })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every strategy reads back as it prints. Method: the list, a custom one, and what is none.
    #[test]
    fn strategies_are_read_by_name() {
        for (name, strategy) in NAMED {
            assert_eq!((name.parse(), strategy.to_string()), (Ok(strategy), name.to_owned()));
        }
        let custom = StrategyName::Custom { name: "invoice".into() };
        assert_eq!((custom.to_string().as_str(), "custom:invoice".parse()), ("custom:invoice", Ok(custom)));
        for text in ["", "custom", "custom:", "Content", "offset"] {
            assert!(text.parse::<StrategyName>().is_err(), "{text}");
        }
    }

    /// Goal: a template gives its names, whatever stands between them. Method: the spec's, others, and broken ones.
    #[test]
    fn a_template_names_the_parts_of_a_key() {
        let spec: KeyTemplate = "{database}:{table}:{primaryKey}:{changeVersion}".parse().expect("the spec's format");
        assert_eq!(spec, KeyTemplate::change_key());
        let other: KeyTemplate = "orders-{ id }__{line}!".parse().expect("a template");
        assert_eq!(
            (other.names(), other.to_string().as_str()),
            (&["id".into(), "line".into()][..], "orders-{ id }__{line}!")
        );
        for text in ["", "id", "{", "}", "{}", "{ }", "{a}{a}", "{a{b}}", "{a}}"] {
            assert!(text.parse::<KeyTemplate>().is_err(), "{text}");
        }
    }

    /// Goal: the one hash there is, as people write it, and no other.
    #[test]
    fn only_sha256_is_known() {
        for text in ["SHA256", "sha256", "SHA-256"] {
            assert_eq!(text.parse(), Ok(HashAlgorithm::Sha256));
        }
        assert_eq!("md5".parse::<HashAlgorithm>().map_err(|e| e.text), Err("md5".to_owned()));
    }
}
