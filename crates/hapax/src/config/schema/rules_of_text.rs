//! The forms of text that fields hold.

use hapax_model::condition::Condition;
use hapax_model::delivery::{KeyTemplate, StrategyName};
use hapax_model::field::FieldPath;
use hapax_model::key::KeyHash;

use super::TextRule;
use crate::config::node::is_scheme;

const LONGEST_NAME: usize = 100;
const LONGEST_TEXT: usize = 4096;

/// A workflow's id or a sink's name: part of the progress key, of file names and of metrics, so it is kept plain.
pub(super) static ID: TextRule = TextRule {
    what: "a name of at most 100 letters, digits, points, hyphens and underscores",
    example: "orders-to-erp",
    check: |text| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        match text.chars().find(|c| !plain(*c)) {
            Some(odd) => Err(format!("it holds {odd:?}")),
            None if text.is_empty() => Err("it is empty".into()),
            None if text.len() > LONGEST_NAME => Err(format!("it has {} characters", text.len())),
            None => Ok(()),
        }
    },
    pattern: "^[A-Za-z0-9._-]{1,100}$",
};

pub(super) static PATH: TextRule =
    TextRule { what: "a path", example: "data/orders.jsonl", check: some_text, pattern: "" };

pub(super) static DELIMITER: TextRule = TextRule {
    what: "one character, or the word tab",
    example: "\";\"",
    check: |text| match text.as_bytes() {
        [b'\n' | b'\r' | b'"'] => Err("a line end or a quote cannot stand between fields".into()),
        [byte] if byte.is_ascii() => Ok(()),
        _ if text == "tab" => Ok(()),
        _ => Err("it is not one ASCII character".into()),
    },
    pattern: "",
};

pub(super) static QUOTE: TextRule = TextRule {
    what: "one character, or the word none",
    example: "none",
    check: |text| match text.as_bytes() {
        [b'\n' | b'\r'] => Err("a line end cannot be a quote".into()),
        [byte] if byte.is_ascii() => Ok(()),
        _ if text == "none" => Ok(()),
        _ => Err("it is not one ASCII character".into()),
    },
    pattern: "",
};

pub(super) static NULL_TEXT: TextRule =
    TextRule { what: "a text", example: "\"NULL\"", check: |_| Ok(()), pattern: "" };

/// A table or column may have any name that the database allows: it is always quoted, never pasted.
pub(super) static TABLE_NAME: TextRule =
    TextRule { what: "the name of a table", example: "orders", check: some_text, pattern: "" };

pub(super) static COLUMN_NAME: TextRule =
    TextRule { what: "the name of a column", example: "hapax_key", check: some_text, pattern: "" };

pub(super) static ANY_TEXT: TextRule =
    TextRule { what: "a text", example: "\"https://example.org\"", check: some_text, pattern: "" };

/// Its own compiler says what is wrong with it, with line and column.
pub(super) static PROGRAM: TextRule =
    TextRule { what: "a VRL program", example: "'.amount = to_int!(.cents) / 100'", check: |_| Ok(()), pattern: "" };

pub(super) static FIELD_PATH: TextRule = TextRule {
    what: "a path into the event",
    example: ".order.id",
    check: |text| text.parse::<FieldPath>().map(drop).map_err(|error| error.why.into()),
    pattern: "",
};

pub(super) static CONDITION: TextRule = TextRule {
    what: "a path, == and a literal",
    example: "'.op == \"d\"'",
    check: |text| text.parse::<Condition>().map(drop).map_err(|error| error.why),
    pattern: "==",
};

/// A key as every command prints it.
pub(super) static KEY: TextRule = TextRule {
    what: "a key",
    example: "h1_aaaaaaaaaaaaaaaaaaaaaaaaaa",
    check: |text| text.parse::<KeyHash>().map(drop).map_err(|error| error.to_string()),
    pattern: "^h1_[a-z2-7]{26}$",
};

/// A code that has a page.
pub(super) static CODE: TextRule = TextRule {
    what: "a code",
    example: "HX2001",
    check: |text| {
        let digits = text.strip_prefix("HX").unwrap_or_default();
        let known = digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_digit());
        if known { Ok(()) } else { Err("it is not HX and four digits".into()) }
    },
    pattern: "^HX[0-9]{4}$",
};

pub(super) static KEY_FORMAT: TextRule = TextRule {
    what: "names in braces",
    example: "\"{database}:{table}:{primaryKey}:{changeVersion}\"",
    check: |text| text.parse::<KeyTemplate>().map(drop).map_err(|error| error.why.into()),
    pattern: "\\{[^{}]+\\}",
};

pub(super) static STRATEGY: TextRule = TextRule {
    what: "a key strategy: content, content-with-epoch, composite, epoch-sequence, source-offset, change-key, derived, \
           window-sequence or custom:NAME",
    example: "content",
    check: |text| text.parse::<StrategyName>().map(drop).map_err(|_| "there is no such strategy".into()),
    pattern: "^(content|content-with-epoch|composite|epoch-sequence|source-offset|change-key|derived|window-sequence\
              |custom:.+)$",
};

pub(super) static STATE: TextRule = TextRule {
    what: "the word none or a URL of a state store",
    example: "\"sqlite://hapax-data/state.db\"",
    check: |text| match text.split_once("://") {
        None if text == "none" => Ok(()),
        None => Err("it has no ://".into()),
        Some(("sqlite", "")) => Err("the path is missing".into()),
        Some(("sqlite", path)) => some_text(path),
        // The rules read the rest, and know whether this edition has PostgreSQL.
        Some(("postgres" | "postgresql", _)) => some_text(text),
        Some((scheme, _)) if is_scheme(scheme) => Err(format!("{scheme:?} is no state store")),
        Some(_) => Err("it does not begin with the kind of a state store and ://".into()),
    },
    pattern: "^(none$|sqlite://.+|postgres(ql)?://.+)",
};

/// Only the scheme: the rules read the rest with the connector's own words, and never quote it.
pub(super) static POSTGRES_URL: TextRule = TextRule {
    what: "the URL of a PostgreSQL database",
    example: "\"postgres://user@localhost/shop\"",
    check: some_text,
    pattern: "^postgres(ql)?://.+",
};

pub(super) static POSTGRES_TABLE: TextRule = TextRule {
    what: "the name of a table, with or without its schema",
    example: "orders",
    check: some_text,
    pattern: "",
};

/// Only the scheme: the rules read the rest with the connector's own words, and never quote it.
pub(super) static MYSQL_URL: TextRule = TextRule {
    what: "the URL of a MySQL or MariaDB database",
    example: "\"mysql://user@localhost/shop\"",
    check: some_text,
    pattern: "^(mysql|mariadb)://.+",
};

pub(super) static MYSQL_TABLE: TextRule = TextRule {
    what: "the name of a table, with or without its database",
    example: "orders",
    check: some_text,
    pattern: "",
};

pub(super) static LISTEN: TextRule = TextRule {
    what: "an IP address and a port",
    example: "\"127.0.0.1:8077\"",
    check: |text| match text.parse::<std::net::SocketAddr>() {
        Ok(_) => Ok(()),
        Err(_) if !text.contains(':') => Err("the port is missing".into()),
        Err(_) => Err("it is no address with a port; names are not looked up".into()),
    },
    pattern: ":[0-9]{1,5}$",
};

/// Names are looked up when the broker starts; that only this machine is meant is a rule of its own.
pub(super) static BROKER_LISTEN: TextRule = TextRule {
    what: "an address of this machine and a port",
    example: "\"127.0.0.1:9092\"",
    check: |text| match text.rsplit_once(':') {
        None => Err("the port is missing".into()),
        Some(("", _)) => Err("the address is missing".into()),
        Some((host, _)) if host.contains('@') => Err("it holds an @; nobody logs in to the broker".into()),
        Some((_, port)) if port.parse::<u16>().is_err() => Err("the port is no number up to 65535".into()),
        Some(_) => some_text(text),
    },
    pattern: ":[0-9]{1,5}$",
};

pub(super) static BROKER_STORE: TextRule = TextRule {
    what: "the word embedded or the URL of a PostgreSQL database",
    example: "embedded",
    check: |text| match text.split_once("://") {
        None if text == "embedded" => Ok(()),
        None => Err("it is neither the word embedded nor a URL".into()),
        // The rules read the rest, and know whether this edition has PostgreSQL.
        Some(("postgres" | "postgresql", _)) => some_text(text),
        Some((scheme, _)) if is_scheme(scheme) => Err(format!("{scheme:?} is no store of the broker")),
        Some(_) => Err("it does not begin with postgres://".into()),
    },
    pattern: "^(embedded$|postgres(ql)?://.+)",
};

const SHORTEST_TOKEN: usize = 16;

pub(super) static TOKEN: TextRule = TextRule {
    what: "a secret of 16 to 4096 visible ASCII characters",
    example: "\"${HAPAX_HTTP_TOKEN}\"",
    check: |text| match text.chars().find(|c| !c.is_ascii_graphic()) {
        Some(_) => Err("it holds a character that a header cannot carry".into()),
        None if text.len() < SHORTEST_TOKEN => Err(format!("it has {} characters, and is easily guessed", text.len())),
        None => some_text(text),
    },
    pattern: "^[!-~]{16,4096}$",
};

pub(super) static WEBHOOK: TextRule = TextRule {
    what: "a URL that begins with https:// or http://",
    example: "\"https://chat.example.org/hooks/${HOOK}\"",
    check: |text| {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let Some(rest) = rest else { return Err("it begins neither with https:// nor with http://".into()) };
        match rest.split(['/', '?', '#']).next() {
            None | Some("") => Err("the host is missing".into()),
            Some(authority) if authority.contains('@') => {
                Err("it holds a user or a password, which are not sent; put a secret into the path".into())
            }
            Some(_) if text.chars().any(|c| !c.is_ascii_graphic()) => {
                Err("it holds a space or another character that must be written with %".into())
            }
            Some(_) => some_text(text),
        }
    },
    pattern: "^https?://[^/@]+",
};

fn some_text(text: &str) -> Result<(), String> {
    match text {
        "" => Err("it is empty".into()),
        _ if text.contains('\0') => Err("it holds a NUL character".into()),
        _ if text.len() > LONGEST_TEXT => Err(format!("it has {} bytes, more than {LONGEST_TEXT}", text.len())),
        _ => Ok(()),
    }
}
