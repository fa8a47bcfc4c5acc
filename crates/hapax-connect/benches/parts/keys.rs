//! What `ON CONFLICT … DO UPDATE` costs over a plain insert when no key is there yet, by the kind of the key: a number in
//! order, and the digest of it as bytes and as text (what `hapax_key` holds). Bare loops: this is the server's price.

use std::ops::Range;

use sha2::{Digest as _, Sha256};
use tokio_postgres::types::ToSql;

use super::contest::{Mode, ROWS, measure, per_commit, rows};
use super::rounds::{Ratio, Run, median};
use super::{Bench, bare, tables};

/// The keys of all rows, sorted within each transaction as Hapax sorts them.
struct Keys {
    name: &'static str,
    declared: &'static str,
    array: Box<dyn Fn(Range<usize>) -> Box<dyn ToSql + Sync + Send>>,
}

fn all_keys(rows: usize) -> [Keys; 4] {
    let mut digests: Vec<Vec<u8>> = (0..rows as u64).map(|n| Sha256::digest(n.to_be_bytes()).to_vec()).collect();
    bare::pieces(0..rows, per_commit()).for_each(|piece| digests[piece].sort_unstable());
    let hex = |digest: &Vec<u8>| data_encoding::HEXLOWER.encode(digest);
    let texts: Vec<String> = digests.iter().map(hex).collect();
    let again = texts.clone();
    [
        Keys {
            name: "bigint, ascending",
            declared: "bigint",
            array: Box::new(|piece| Box::new(piece.map(|n| n as i64).collect::<Vec<i64>>())),
        },
        Keys {
            name: "bytea, 32 bytes",
            declared: "bytea",
            array: Box::new(move |piece| Box::new(digests[piece].to_vec())),
        },
        Keys {
            name: "text, 64 digits",
            declared: "text",
            array: Box::new(move |piece| Box::new(texts[piece].to_vec())),
        },
        Keys {
            name: "text, 64 digits, COLLATE \"C\"",
            declared: "text COLLATE \"C\"",
            array: Box::new(move |piece| Box::new(again[piece].to_vec())),
        },
    ]
}

pub(super) async fn contest(bench: &Bench<'_>) {
    let all = all_keys(rows(bench, Mode::Upsert) as usize);
    let mut runs = vec![(Vec::new(), Vec::new()); all.len()];
    for round in 0..bench.rounds {
        for (keys, (inserts, upserts)) in all.iter().zip(&mut runs) {
            inserts.push(run(bench, keys, "").await);
            upserts.push(run(bench, keys, UPDATE).await);
        }
        println!("round {round} done");
    }
    for (keys, (inserts, upserts)) in all.iter().zip(&runs) {
        println!("median: {}", median(inserts).told(&format!("insert, {}", keys.name)));
        println!("median: {}", median(upserts).told(&format!("upsert, {}", keys.name)));
        let walls = inserts.iter().zip(upserts).map(|(a, b)| b.wall.as_secs_f64() / a.wall.as_secs_f64()).collect();
        println!(
            "{:<60} {}",
            format!("bench_upsert_vs_plain_insert: time against time, {}", keys.name),
            Ratio::of(walls)
        );
    }
}

const UPDATE: &str = "ON CONFLICT (key) DO UPDATE SET customer = excluded.customer, amount_cents = \
                      excluded.amount_cents, status = excluded.status";

async fn run(bench: &Bench<'_>, keys: &Keys, conflict: &str) -> Run {
    let declared = keys.declared;
    let sql = format!(
        "CREATE TABLE keyed (key {declared} PRIMARY KEY, customer text NOT NULL, amount_cents bigint NOT NULL, \
         status text NOT NULL)"
    );
    bench.admin.batch_execute(&sql).await.expect("makes the table");
    bench.admin.batch_execute("CHECKPOINT").await.expect("a checkpoint");
    let client = &bare::connect(&bench.url).await;
    let wire = declared.split(' ').next().expect("a name");
    let sql = format!(
        "INSERT INTO keyed SELECT unnest($1::{wire}[]), unnest($2::text[]), unnest($3::int8[]), unnest($4::text[]) {conflict}"
    );
    let statement = &client.prepare(&sql).await.expect("prepares");
    let columns = &bare::Columns::share(&bench.orders, rows(bench, Mode::Upsert), 0, 1);
    let arrays: Vec<_> = bare::pieces(0..columns.len(), ROWS).map(|piece| (keys.array)(piece)).collect();
    let work = async {
        for epoch in bare::pieces(0..columns.len(), per_commit()) {
            let one = |piece: Range<usize>| {
                let key = &arrays[piece.start / ROWS];
                async move {
                    let (customers, amounts) = (&columns.customers[piece.clone()], &columns.amounts[piece.clone()]);
                    let parameters: [&(dyn ToSql + Sync); 4] =
                        [key.as_ref(), &customers, &amounts, &&columns.statuses[piece]];
                    client.execute(statement, &parameters).await.expect("writes");
                }
            };
            bare::transaction(client, bare::pieces(epoch, ROWS).map(one)).await;
        }
    };
    let run = measure(bench, rows(bench, Mode::Upsert), work).await;
    tables::remove(&bench.admin, "keyed").await;
    run
}
