//! What a proxy can do to a transaction, and by which of its statements it knows it.

/// The transactions that are watched, told by a statement that only they send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Watch {
    /// An epoch where progress is in the target: the one that writes the epoch log.
    Epoch,
    /// An epoch where progress is elsewhere: the one that writes the user's table.
    Rows,
    /// The claim at a start.
    Claim,
    /// The claim after doubt.
    Reclaim,
    /// A replay of dead letters.
    Replay,
    /// A part of an epoch that commits by itself: the one that takes the position back to where the part ends.
    Prefix,
}

impl Watch {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Epoch, Self::Rows, Self::Claim, Self::Reclaim, Self::Replay, Self::Prefix];

    /// Its name in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Epoch => "epoch",
            Self::Rows => "rows",
            Self::Claim => "claim",
            Self::Reclaim => "reclaim",
            Self::Replay => "replay",
            Self::Prefix => "prefix",
        }
    }

    /// Whether a transaction that sends `statement`, which is [`normal`], is one of these.
    pub(super) fn knows(self, statement: &str) -> bool {
        let raises = statement.contains("generation + 1");
        // PostgreSQL has our tables in a schema, MariaDB beside the user's.
        let ours = |verb: &str, table: &str| {
            let rest = statement.strip_prefix(verb).and_then(|rest| rest.strip_prefix(" hapax"));
            rest.is_some_and(|rest| rest.starts_with(['.', '_']) && rest[1..].starts_with(table))
        };
        match self {
            Self::Epoch => ours("insert into", "epochs"),
            Self::Rows => {
                // Where rows are counted while they are written, the statement is inside of another.
                let statement =
                    statement.find(" as (insert into ").map_or(statement, |at| &statement[at + " as (".len()..]);
                let table = ["insert into ", "copy "].iter().find_map(|verb| statement.strip_prefix(verb));
                let table = table.and_then(|rest| rest.split([' ', '(']).next()).unwrap_or_default();
                table.rsplit('.').next() == Some("orders")
            }
            Self::Claim => ours("insert into", "progress") && raises,
            Self::Reclaim => ours("update", "progress") && raises,
            Self::Replay => ours("update", "dead_letters"),
            Self::Prefix => ours("update", "progress") && statement.contains("progress set position ="),
        }
    }
}

/// What is done when the COMMIT of a watched transaction passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deed {
    /// The server never gets the COMMIT, and the connection is cut.
    LoseRequest,
    /// The server commits; its answer is dropped and the connection is cut.
    DropAnswer,
    /// The server commits; its answer is held back until it is released.
    HoldAnswer,
    /// The transaction fails at its COMMIT. PostgreSQL answers that of a failed transaction with the tag ROLLBACK and without
    /// an error; MariaDB rolls back and says so with the error of a deadlock, as a cluster does in which another node was first.
    Spoil,
}

impl Deed {
    /// Its name in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LoseRequest => "lost the request of",
            Self::DropAnswer => "dropped the answer to",
            Self::HoldAnswer => "held the answer to",
            Self::Spoil => "spoiled",
        }
    }
}

/// Something that shall go wrong once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// In which kind of transaction.
    pub watch: Watch,
    /// The first, second, third… of them: counted from 1.
    pub pass: u64,
    /// What.
    pub deed: Deed,
}

/// A statement without quotes around names, in lower case, with single spaces: as [`Watch::knows`] wants it.
pub(super) fn normal(statement: &str) -> String {
    let lower = statement.replace(['"', '`'], "").to_lowercase();
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each transaction is known by its own statement and no other. Method: one of each, as drivers send them.
    #[test]
    fn each_transaction_is_known_by_its_statement() {
        let statements = [
            (
                Some(Watch::Claim),
                "INSERT INTO hapax.progress (workflow) VALUES ($1)\n ON CONFLICT (workflow) DO UPDATE SET generation = progress.generation + 1",
            ),
            (Some(Watch::Reclaim), "UPDATE hapax.progress SET generation = generation + 1 WHERE generation = $6"),
            (None, "UPDATE hapax.progress SET epoch = $4 WHERE generation = $13"),
            (Some(Watch::Prefix), "UPDATE hapax.progress SET position = $4, incarnation = $5 WHERE lane = $3"),
            (Some(Watch::Prefix), "UPDATE hapax_progress SET position = ?, incarnation = ? WHERE lane = ?"),
            (Some(Watch::Epoch), "INSERT INTO \"hapax\".\"epochs\" (epoch) VALUES ($1)"),
            (Some(Watch::Rows), "COPY \"public\".\"orders\" (n) FROM STDIN BINARY"),
            (
                Some(Watch::Rows),
                "WITH known AS (SELECT count(*) AS there FROM orders), written AS (INSERT INTO \"public\".\"orders\" AS present (n) SELECT n \
                 FROM hapax_rows ON CONFLICT (n) DO NOTHING RETURNING true) SELECT (SELECT count(*) FROM written) FROM known",
            ),
            (None, "WITH known AS (SELECT 1) INSERT INTO hapax_dead_letters (lane) SELECT lane FROM orders"),
            (Some(Watch::Replay), "update hapax.dead_letters set state = 'replayed'"),
            (
                Some(Watch::Claim),
                "INSERT INTO hapax_progress (lane) VALUES (?) ON DUPLICATE KEY UPDATE generation = generation + 1",
            ),
            (Some(Watch::Reclaim), "UPDATE hapax_progress SET generation = generation + 1 WHERE generation = ?"),
            (Some(Watch::Epoch), "INSERT INTO `hapax_epochs` (epoch) VALUES (?)"),
            (Some(Watch::Rows), "INSERT INTO `target_3`.`orders` (`n`) VALUES (?)"),
            (Some(Watch::Replay), "UPDATE hapax_dead_letters FORCE INDEX (PRIMARY) SET state = 'replayed'"),
            (None, "INSERT INTO hapax_dead_letters (lane) VALUES (?)"),
            (None, "INSERT INTO orders_of_others (n) VALUES (?)"),
            (None, "SELECT 1"),
        ];
        for (watch, text) in statements {
            let known: Vec<Watch> = Watch::ALL.into_iter().filter(|watch| watch.knows(&normal(text))).collect();
            assert_eq!(known, watch.into_iter().collect::<Vec<_>>(), "{text}");
        }
    }
}
