//! The table of clients and cells, as the documents have it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::cells::{Cell, Outcome};
use crate::client::Client;

/// What came of all cells of all clients.
pub type Outcomes = BTreeMap<Client, BTreeMap<Cell, Outcome>>;

const HEAD: &str = "# Clients: what was tried\n\n\
    Made by `HAPAX_BLESS=1 cargo test -p hapax-conform`; do not edit. Every cell is a run of the unmodified client against\n\
    our broker; the same programs (`crates/hapax-conform/clients`) pass against Apache Kafka 4.3.1 in the same test.\n\n\
    - **none** … **zstd**: 600 records with that compression, without idempotence, read back: each once, in order, with\n  \
      key, value and header (kcat and the tools: key and value); the log holds batches of that codec.\n\
    - **idempotent**: 600 records with `enable.idempotence=true` through a proxy that loses every fourth answer to Produce:\n  \
      each record is in the log once, and the batches' sequences have no gap and no repetition.\n\
    - **group**: members come and go while records are produced; how strict the check is, the client decides (below).\n\
    - **admin**: create, list, describe, grow, change a setting, create again (refused), delete.\n\
    - **time**: offsets by time (before, at, between, after), and a read from there.\n\n";

/// The document.
#[must_use]
pub fn document(outcomes: &Outcomes) -> String {
    let mut text = HEAD.to_owned();
    let titles = Cell::ALL.map(|cell| cell.to_string()).join(" | ");
    writeln!(text, "| client | {titles} |\n|---|{}", "---|".repeat(Cell::ALL.len())).expect("a string takes text");
    let mut notes = String::new();
    for (client, cells) in outcomes {
        write!(text, "| {} |", client.title()).expect("a string takes text");
        for cell in Cell::ALL {
            let word = match cells.get(&cell) {
                Some(Outcome::Pass(_)) => "yes",
                Some(Outcome::Cannot(_)) => "client cannot",
                Some(Outcome::Fail(_)) => "**no**",
                None => "not tried",
            };
            write!(text, " {word} |").expect("a string takes text");
            match cells.get(&cell) {
                Some(Outcome::Cannot(why)) => writeln!(notes, "- {}, {cell}: {why}.", client.title()),
                Some(Outcome::Pass(seen)) if cell == Cell::Group => {
                    writeln!(notes, "- {}, {cell}: {seen}.", client.title())
                }
                _ => Ok(()),
            }
            .expect("a string takes text");
        }
        text.push('\n');
    }
    write!(text, "\n{notes}").expect("a string takes text");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the table says what was seen and hides nothing. Method: one client with one cell of each outcome.
    #[test]
    fn the_table_shows_every_outcome() {
        let cells = BTreeMap::from([
            (Cell::Plain, Outcome::Pass("600 records".to_owned())),
            (Cell::Group, Outcome::Pass("900 records, none lost".to_owned())),
            (Cell::Admin, Outcome::Cannot("it has none".to_owned())),
            (Cell::Time, Outcome::Fail("an error".to_owned())),
        ]);
        let text = document(&BTreeMap::from([(Client::Kcat, cells)]));
        let row = text.lines().find(|line| line.starts_with("| kcat")).expect("a row");
        let tried =
            "| yes | not tried | not tried | not tried | not tried | not tried | yes | client cannot | **no** |";
        assert!(row.ends_with(tried), "{row}");
        assert!(text.contains("group: 900 records, none lost.") && text.contains("admin: it has none."), "{text}");
    }
}
