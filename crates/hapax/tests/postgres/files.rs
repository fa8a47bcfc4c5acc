//! CSV and patterns of files into PostgreSQL: types, and more files than sessions.

use super::world::Shop;

/// Goal: texts of CSV become what the columns hold, or letters. Method: columns of many types, good and bad records.
#[test]
fn csv_arrives_by_the_types_of_postgres() {
    let shop = Shop::ready("", "guarantee: exactly-once, deduplication: { keyFields: [id] }, maxRejects: 100%");
    shop.sql("ALTER TABLE orders ADD COLUMN price numeric(10,2), ADD COLUMN ok boolean, ADD COLUMN at timestamptz, ADD COLUMN doc jsonb, ADD COLUMN tags int[]");
    shop.world.write("hapax.yaml", shop.world.read("hapax.yaml").replace("orders.jsonl", "orders.csv"));
    shop.world.write(
        "orders.csv",
        "id,customer,amount,price,ok,at,doc,tags\n\
         1,ann,007,12.50,t,2026-11-16 03:25:42Z,\"{\"\"a\"\": [1]}\",\"[1,2]\"\n\
         2,\"\",,,,,,\n\
         3,ann,1.5,1,t,,,\n\
         4,ann,1,1,maybe,,,\n\
         5,ann,1,1,f,yesterday,,\n",
    );
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(
        shop.ask("SELECT amount || '|' || price || '|' || ok || '|' || (at AT TIME ZONE 'UTC') || '|' || (doc->'a'->0) || '|' || tags[2] FROM orders WHERE id = 1"),
        "7|12.50|true|2026-11-16 03:25:42|1|2"
    );
    assert_eq!(shop.ask("SELECT (customer = '') || ' ' || (amount IS NULL) FROM orders WHERE id = 2"), "true true");
    assert_eq!(shop.ask("SELECT string_agg(id::text, ' ' ORDER BY id) FROM orders"), "1 2");
    assert_eq!(shop.ask("SELECT count(*) FROM hapax.dead_letters"), "3");
}

/// Goal: more files than sessions are all read once, and rotation inside the pattern too. Method: sixty files, twice.
#[test]
fn many_files_share_the_sessions_of_postgres() {
    let shop = Shop::ready("onConflict: append, connections: 2", "guarantee: exactly-once");
    shop.sql("ALTER TABLE orders DROP CONSTRAINT orders_pkey");
    std::fs::create_dir(shop.world.path("in")).expect("a folder");
    shop.world.write("hapax.yaml", shop.world.read("hapax.yaml").replace("orders.jsonl", "'in/*'"));
    for n in 1..=60 {
        shop.world.write(&format!("in/{n}"), format!("{{\"id\":{n}}}\n"));
    }
    shop.hapax(&["run", "--once"]).exits(0);
    crate::world::rename(&shop.world.path("in/1"), &shop.world.path("in/1.1"));
    shop.world.write("in/1", "{\"id\":61}\n");
    shop.hapax(&["run", "--once"]).exits(0).says(&["read_before=59", "new=1"]);
    assert_eq!(shop.ask("SELECT count(*) || ' ' || count(DISTINCT id) FROM orders"), "61 61");
    shop.hapax(&["status"]).exits(0).says(&["60 lane(s) read to their end: 61 read, 61 delivered"]);
}
