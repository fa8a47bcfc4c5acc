//! The cells of the table: what every client is asked to do, and what came of it.

use std::fmt;

/// One thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cell {
    /// Produce and read back without compression, without idempotence.
    Plain,
    /// The same compressed by gzip.
    Gzip,
    /// The same compressed by snappy.
    Snappy,
    /// The same compressed by lz4.
    Lz4,
    /// The same compressed by zstd.
    Zstd,
    /// Produce with idempotence through a proxy that loses answers: each record is in the log once.
    Idempotent,
    /// A group whose members come and go: no record is lost, all are committed.
    Group,
    /// Create, list, describe, change, delete.
    Admin,
    /// Find offsets by time, and read from there.
    Time,
    /// Produce in a transaction, or be told at once that there are none. Not in the table.
    Transaction,
}

impl Cell {
    /// All of the table, in its order.
    pub const ALL: [Self; 9] = [
        Self::Plain,
        Self::Gzip,
        Self::Snappy,
        Self::Lz4,
        Self::Zstd,
        Self::Idempotent,
        Self::Group,
        Self::Admin,
        Self::Time,
    ];

    /// Its word on the programs' command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Plain => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
            Self::Idempotent => "idempotent",
            Self::Group => "group",
            Self::Admin => "admin",
            Self::Time => "time",
            Self::Transaction => "transaction",
        }
    }

    /// The codec's number in a batch's attributes, for cells that are about one.
    #[must_use]
    pub const fn codec(self) -> Option<i16> {
        match self {
            Self::Plain => Some(0),
            Self::Gzip => Some(1),
            Self::Snappy => Some(2),
            Self::Lz4 => Some(3),
            Self::Zstd => Some(4),
            Self::Idempotent | Self::Group | Self::Admin | Self::Time | Self::Transaction => None,
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

/// What came of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done; what was seen.
    Pass(String),
    /// The client has no such thing; why.
    Cannot(String),
    /// Not done; what went wrong.
    Fail(String),
}

/// Reads a program's line, `CELL pass|cannot|fail DETAIL`; nothing for other lines.
#[must_use]
pub fn read_line(line: &str) -> Option<(Cell, Outcome)> {
    let mut words = line.splitn(3, ' ');
    let (cell, verdict) = (words.next()?, words.next()?);
    let detail = words.next().unwrap_or_default().trim().to_owned();
    let mut known = Cell::ALL.into_iter().chain([Cell::Transaction]);
    let cell = known.find(|known| known.word() == cell)?;
    let outcome = match verdict {
        "pass" => Outcome::Pass(detail),
        "cannot" => Outcome::Cannot(detail),
        "fail" => Outcome::Fail(detail),
        _ => return None,
    };
    Some((cell, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only lines of the programs count. Method: one of each, and others.
    #[test]
    fn lines_are_read_and_others_left_alone() {
        assert_eq!(read_line("gzip pass 600 records"), Some((Cell::Gzip, Outcome::Pass("600 records".to_owned()))));
        assert_eq!(
            read_line("admin cannot it has none"),
            Some((Cell::Admin, Outcome::Cannot("it has none".to_owned())))
        );
        assert_eq!(read_line("time fail"), Some((Cell::Time, Outcome::Fail(String::new()))));
        for other in ["", "gzip", "gzip maybe x", "brotli pass x", "Processed a total of 5 messages"] {
            assert_eq!(read_line(other), None, "{other}");
        }
    }
}
